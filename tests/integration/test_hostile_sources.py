"""Sources that mean ill: what they cost is bounded and said, and the crawl of others goes on."""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

from salticus.checks.fetch_server import Route, Server, pouring, reply, then
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.manual import visit_now
from salticus.crawl.opening import stored
from salticus.store.nouns import PageState
from salticus.types import NewPage

CAPS = {"source_pages": 600, "visit_pages": 40, "day_pages": 100}
SHOWN = 450  # links of a hub that are new at every visit


def settings(folder: Path, **said: Any) -> Config:
    fetch = {"contact": "a@example.org", "delay": 0, "allow_private": ["127.0.0.1"]}
    return parse(
        {
            "store": str(folder / "s.db"),
            "fetch": {**fetch, "max_size": "3 MB", "timeout": "60s"},
            "extract": {"deadline": "60s"},
            "explore": 0,
            "caps": CAPS,
            **said,
        }
    )


def urlset(*paths: str) -> bytes:
    urls = "".join(f"<url><loc>{path}</loc></url>" for path in paths)
    return f"<urlset>{urls}</urlset>".encode()


def rss(*items: str) -> bytes:
    entries = "".join(f"<item>{item}</item>" for item in items)
    return f"<rss><channel>{entries}</channel></rss>".encode()


def hub(*links: str) -> bytes:
    return "".join(f'<a href="{link}">x</a>' for link in links).encode()


LAUGHS = b'<!ENTITY a0 "ha">' + b"".join(
    b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10)
)
# What each source says, the status of a visit to it, and a word of the fault that is told.
BROKEN: dict[str, tuple[Route, str, str]] = {
    "/laughs.rss": (
        reply(b"<!DOCTYPE rss [%s]>" % LAUGHS + rss("<link>/&a9;</link>")),
        "broken",
        "definitions of its own",
    ),
    "/endless.xml": (
        then(b"HTTP/1.1 200 OK\r\n\r\n<urlset>", pouring(b"<url><loc>/x</loc></url>" * 500)),
        "too_large",
        "3",
    ),
    "/gigabyte.xml": (reply(b"<urlset>", Content_Length=str(10**9)), "too_large", "3"),
    "/bomb.xml.gz": (reply(gzip.compress(b"<urlset>" + b" " * 70_000_000)), "broken", "too much"),
    "/deep.xml": (reply(b"<urlset>" + b"<url>" * 200_000), "broken", ""),
    "/deep.html": (reply(b"<div>" * 100_000 + hub("/x")), "broken", "no links"),
    "/deep.json": (reply(b'{"items":' + b"[" * 200_000), "broken", "JSON"),
    "/addresses.html": (
        reply(hub("javascript:void(0)", "data:text/html,x", "mailto:a@b", "http://[", "#")),
        "broken",
        "no links",
    ),
}


async def read(config: Config, *urls: str) -> list[PageState]:
    """The states of sources that are added and visited."""
    async with stored(config) as store:
        await store.add([NewPage(url, kind="source") for url in urls], at=1)
    await visit_now(config, urls)
    async with stored(config) as store:
        return [await store.page(url) for url in urls]


async def paths(config: Config, server: Server) -> Counter[str]:
    """How many visits each page of a server got."""
    async with stored(config) as store:
        urls = {row["page_id"]: row["url"] for row in store.scan("pages")}
        found = Counter(dict.fromkeys(urls.values(), 0))
        found.update(urls[row["page_id"]] for row in store.scan("visits"))
    start = server.url("")
    return Counter({u.removeprefix(start): n for u, n in found.items() if u.startswith(start)})


def test_what_cannot_be_read_is_said_and_adds_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        async with Server({path: route for path, (route, *_) in BROKEN.items()}) as server:
            states = await read(config, *map(server.url, BROKEN))
            for state, (path, (_, status, word)) in zip(states, BROKEN.items(), strict=True):
                assert (path, state.status) == (path, status)
                assert state.fault is not None
                assert word in state.fault
                assert len(state.fault) < 1000
            assert set(await paths(config, server)) == set(BROKEN), "nothing is added"
        async with stored(config) as store:
            assert [(alert.host, alert.kind) for alert in await store.alerts()] == [
                (server.host, "broken")
            ]

    asyncio.run(main())


def test_odd_dates_and_addresses_are_left_out(tmp_path: Path) -> None:
    dates = ("9999-12-31T00:00:00Z", "0000-00-00", "0001-01-01", "Fri, 99 Foo 99999", "x" * 10**5)
    items = [f"<link>/{n}</link><pubDate>{date}</pubDate>" for n, date in enumerate(dates)]
    odd = ("javascript:alert(1)", "data:text/html,x", "mailto:a@b.example", "file:///etc/passwd")
    items += [f"<link>{link}</link>" for link in odd]

    async def main() -> None:
        config = settings(tmp_path)
        async with Server({"/feed.rss": reply(rss(*items))}) as server:
            (state,) = await read(config, server.url("/feed.rss"))
            assert state.status == "ok"
            assert state.fault == "4 entries have no web address"
            expected = {"/feed.rss", *(f"/{n}" for n in range(len(dates)))}
            assert set(await paths(config, server)) == expected
        async with stored(config) as store:
            assert list(store.scan("signals")) == [], "a wrong time is none"

    asyncio.run(main())


def test_rings_of_sources_end(tmp_path: Path) -> None:
    def index(*named: str) -> bytes:
        places = "".join(f"<sitemap><loc>{name}</loc></sitemap>" for name in named)
        return reply(f"<sitemapindex>{places}</sitemapindex>".encode())

    routes: dict[str, Route] = {
        "/one.xml": index("/one.xml", "/two.xml"),
        "/two.xml": index("/one.xml", "/two.xml", "/three.xml"),
        "/three.xml": index("/one.xml"),
        "/a": reply(hub("/b")),
        "/b": reply(hub("/a")),
    }

    async def main() -> None:
        config = settings(tmp_path, extract={"links": True, "deadline": "60s"}, budget=100)
        async with Server(routes) as server:
            await read(config, server.url("/one.xml"), server.url("/a"))
            async with crawler(config, once=True) as loop:
                await loop.run(once=True)
            seen = await paths(config, server)
        assert set(seen) == set(routes)
        assert sum(seen.values()) <= 2 * len(routes)

    asyncio.run(main())


def fresh() -> Route:
    """A hub with links that are new at every visit."""
    numbers = map(str, count())

    def route(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
        names = (next(numbers).translate(LETTERS) for _ in range(SHOWN))
        return reply(hub(*(f"/{name}" for name in names)))

    return route


def test_a_site_that_makes_up_pages_is_slowed_down(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        crowd = reply(urlset(*(f"/p/{n}" for n in range(100_000))))
        async with Server({"/hub": fresh(), "/crowd.xml": crowd}) as server:
            sizes = []
            for _ in range(5):
                await read(config, server.url("/hub"))
                sizes.append(len(await paths(config, server)) - 1)
            assert sizes == [450, 490, 530, 550, 550], "an import, two visits, and the day is over"
            async with stored(config) as store:
                (alert,) = await store.alerts()
            assert (alert.host, alert.kind) == (server.host, "flood")
            assert alert.fault.startswith(server.url("/hub: 450 of its entries"))
            assert alert.fault.endswith("caps.day_pages = 100")
            (state,) = await read(config, server.url("/crowd.xml"))
            assert "it names more than 60,000 pages, and was cut" in (state.fault or "")
            assert len(await paths(config, server)) == 550 + 600 + 2
            async with stored(config) as store:
                (alert,) = await store.alerts()
            assert alert.fault.startswith(server.url("/crowd.xml: "))
            assert alert.fault.endswith("caps.source_pages = 600")

    asyncio.run(main())


def test_a_crawl_of_others_goes_on(tmp_path: Path) -> None:
    """Every hostile source, and a site that is well: all of its pages are visited in one tick."""
    links = [f"/{name}" for name in "abcdefgh"]
    good: dict[str, Route] = {link: reply(b"<p>Some words to read.") for link in links}
    good |= {"/feed.rss": reply(rss(*(f"<link>{link}</link>" for link in links)))}
    bad = {path: route for path, (route, *_) in BROKEN.items()} | {"/hub": fresh()}

    async def main() -> None:
        config = settings(tmp_path, budget=BUDGET)
        async with Server(bad) as enemy, Server(good) as friend:
            sources = [*map(enemy.url, bad), friend.url("/feed.rss")]
            await read(config, *sources)
            async with crawler(config, once=True) as loop:
                await loop.run(once=True)
            ours, theirs = await paths(config, friend), await paths(config, enemy)
        print(sorted(ours.items()), sum(theirs.values()), sum(ours.values()))
        assert set(ours) == set(good)
        assert sum(ours.values()) + sum(theirs.values()) <= BUDGET + len(sources)
        assert all(ours.values())

    asyncio.run(main())


BUDGET = 200
LETTERS = str.maketrans("0123456789", "ghijklmnop")
