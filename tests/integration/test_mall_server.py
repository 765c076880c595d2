"""The mall over real sockets: what it serves is the truth, and its log says so."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import numpy as np
import pytest
import uvloop
from protego import Protego

from salticus.clock import SystemClock, VirtualClock
from salticus.errors import ConfigError
from salticus.extract.base import Content
from salticus.extract.offer import Offer
from salticus.extract.text import Text
from salticus.lab.worlds.mall.audit import audit, read_entries
from salticus.lab.worlds.mall.faults import Fault
from salticus.lab.worlds.mall.server import Mall, serve
from salticus.lab.worlds.mall.stock import MallPage, Stock, generate
from salticus.types import moment

START = datetime(2026, 1, 1, tzinfo=UTC)
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param  # type: ignore[no-any-return]


@asynccontextmanager
async def opened(mall: Mall) -> AsyncIterator[aiohttp.ClientSession]:
    await mall.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield session
    finally:
        await mall.stop()


async def true(condition: Callable[[], bool]) -> None:
    """Let others work until the condition holds, for two seconds at most."""
    async with asyncio.timeout(2):
        while not condition():  # noqa: ASYNC110 - the log has no event to wait on
            await asyncio.sleep(0.001)


def history(*points: tuple[float, str | None], kind: str = "offer") -> Stock:
    """One page with values from so many seconds after START on."""
    seconds = np.array([round(second * 1e6) for second, _ in points], dtype="timedelta64[us]")
    page = MallPage("p", 0, "/o/0", "A <b>thing</b> & more", "Häagen", "A > B", kind=kind)
    offsets = np.array([0, len(points)], dtype=np.int64)
    times = np.datetime64(START.replace(tzinfo=None), "us") + seconds
    return Stock([page], offsets, times, [value for _, value in points])


def offer(body: bytes, url: str) -> str | None:
    value = Offer().extract(Content(url, body, "text/html"))
    return value.text if value else None


def test_pages_show_the_truth_of_their_time_on_a_clock_that_jumps(run: Run) -> None:
    async def main() -> None:
        stock, clock, rng = generate(shops=3, offers=40), VirtualClock(START), random.Random(0)
        mall = Mall(stock, clock)
        async with opened(mall) as session:
            for _ in range(300):
                clock.advance(timedelta(days=rng.random() * 0.1))
                row = rng.randrange(len(stock))
                async with session.get(mall.urls[row]) as response:
                    body = await response.read()
                truth = stock.value(row, clock.now())
                assert response.status == (410 if truth is None else 200)
                assert offer(body, mall.urls[row]) == truth
                entry = mall.log[-1]
                assert (entry.value, entry.status) == (truth, response.status)
                assert moment(np.datetime64(entry.world, "us")) == clock.now()
        assert len(mall.log) == 300
        assert len({entry.value for entry in mall.log}) > 60

    run(main())


def test_pages_show_the_truth_of_their_arrival_on_a_clock_that_races(run: Run) -> None:
    async def main() -> None:
        stock = generate(shops=4, offers=60, days=30)
        clock = SystemClock(speed=2_000_000, world_origin=START, wall_origin=SystemClock().now())
        mall = Mall(stock, clock)
        async with opened(mall) as session:

            async def look(row: int) -> tuple[str, str | None]:
                async with session.get(mall.urls[row]) as response:
                    return urlsplit(mall.urls[row]).path, offer(
                        await response.read(), mall.urls[row]
                    )

            rng = random.Random(1)
            seen = [
                one
                for _ in range(20)
                for one in await asyncio.gather(*(look(rng.randrange(60)) for _ in range(20)))
            ]
        rows = {page.path: row for row, page in enumerate(stock.pages)}
        for entry in mall.log:
            world = moment(np.datetime64(entry.world, "us"))
            assert entry.value == stock.value(rows[entry.path], world)
        assert sorted(map(str, seen)) == sorted(str((e.path, e.value)) for e in mall.log)
        assert len({entry.world for entry in mall.log}) > 100

    run(main())


def test_a_page_that_is_not_there_yet_or_no_more(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock(START)
        mall = Mall(history((10, "1 EUR InStock"), (20, None), (30, "2 EUR InStock")), clock)
        statuses = []
        async with opened(mall) as session:
            for _ in range(4):
                async with session.get(mall.urls[0]) as response:
                    statuses.append(response.status)
                clock.advance(timedelta(seconds=10))
        assert statuses == [404, 200, 410, 200]

    run(main())


def test_validators_follow_the_value() -> None:
    async def main() -> None:
        clock = VirtualClock(START)
        points = [(0, "1 EUR InStock"), (10, "2 EUR InStock"), (20, "1 EUR InStock")]
        mall = Mall(history(*points), clock)
        async with opened(mall) as session:

            async def get(**headers: str) -> aiohttp.ClientResponse:
                sent = {name.replace("_", "-"): value for name, value in headers.items()}
                async with session.get(mall.urls[0], headers=sent) as response:
                    body = await response.read()
                    assert bool(body) == (response.status == 200)
                    return response

            first = await get()
            tag, modified = first.headers["ETag"], first.headers["Last-Modified"]
            assert modified == "Thu, 01 Jan 2026 00:00:00 GMT"
            assert (await get(If_None_Match=tag)).status == 304
            assert (await get(If_None_Match=f'"x", {tag.removeprefix("W/")}')).status == 304
            assert (await get(If_Modified_Since=modified)).status == 304
            assert mall.log[-1].value == "1 EUR InStock"
            clock.advance(timedelta(seconds=10))
            assert (await get(If_None_Match=tag)).status == 200
            assert (await get(If_Modified_Since=modified)).status == 200
            assert (
                await get(If_None_Match=tag, If_Modified_Since=first.headers["Date"])
            ).status == 200
            clock.advance(timedelta(seconds=10))
            back = await get(If_None_Match=tag)
            assert (back.status, back.headers["ETag"]) == (304, tag)
            assert (await get(If_Modified_Since=modified)).status == 200
            later = "Fri, 02 Jan 2026 00:00:00 GMT"
            assert (await get(If_Modified_Since=later)).status == 200
        assert [entry.conditional for entry in mall.log] == [False] + [True] * 9

    asyncio.run(main())


def test_a_date_does_not_hide_the_second_change_of_a_second() -> None:
    async def main() -> None:
        clock = VirtualClock(START + timedelta(seconds=0.5))
        mall = Mall(history((0.1, "1 EUR InStock"), (0.6, "2 EUR InStock")), clock)
        async with opened(mall) as session:
            async with session.get(mall.urls[0]) as response:
                headers = {"If-Modified-Since": response.headers["Last-Modified"]}
            clock.advance(timedelta(seconds=0.5))
            async with session.get(mall.urls[0], headers=headers) as response:
                assert response.status == 200
                assert response.headers["Last-Modified"] == headers["If-Modified-Since"]

    asyncio.run(main())


def test_bytes_differ_from_visit_to_visit_and_the_value_does_not() -> None:
    async def main() -> None:
        clock = VirtualClock(START)
        mall = Mall(history((0, "19.9 EUR InStock")), clock, page_size=68_000)
        bodies = []
        async with opened(mall) as session:
            for _ in range(2):
                async with session.get(mall.urls[0]) as response:
                    bodies.append(await response.read())
                clock.advance(timedelta(seconds=5))
        assert [len(body) for body in bodies] == [68_000, 68_000]
        assert bodies[0] != bodies[1]
        found = Offer().extract(Content(mall.urls[0], bodies[0], "text/html"))
        assert found is not None
        assert found.text == "19.9 EUR InStock"
        assert found.fields["title"] == "A <b>thing</b> & more"
        assert found.fields["brand"] == "Häagen"
        assert found.fields["category"] == "A > B"
        assert b'"price": "19.90"' in bodies[0]

    asyncio.run(main())


@pytest.mark.parametrize("page_size", [None, 20_000])
def test_the_main_text_of_an_article_is_its_value(page_size: int | None) -> None:
    async def main() -> None:
        text = "The council <agreed> & adjourned. " * 5
        stock = history((0, text.strip()), kind="article")
        mall = Mall(stock, VirtualClock(START), page_size=page_size)
        async with opened(mall) as session, session.get(mall.urls[0]) as response:
            value = Text().extract(Content(mall.urls[0], await response.read(), "text/html"))
        assert value is not None
        assert value.text == text.strip() == mall.log[0].value

    asyncio.run(main())


def links(body: bytes) -> list[str]:
    return re.findall(r'href="([^"]+)"', body.decode())


def test_every_page_is_found_from_the_home_page_and_in_the_sitemap() -> None:
    async def main() -> None:
        stock = generate(shops=2, offers=1400)
        mall = Mall(stock, VirtualClock(START))
        async with opened(mall) as session:

            async def read(url: str) -> bytes:
                async with session.get(url) as response:
                    assert response.status == 200
                    return await response.read()

            found: set[str] = set()
            todo = [f"http://{host}/" for host in mall.hosts]
            for listing in todo:
                base = listing[: listing.index("/", 7)]
                paths = links(await read(listing))
                todo += [base + path for path in paths if path.startswith("/c/")]
                found |= {base + path for path in paths if path.startswith("/o/")}
            sitemaps = [(await read(f"http://{host}/sitemap.xml")).decode() for host in mall.hosts]
        assert found == set(mall.urls)
        assert set(re.findall("<loc>(.*?)</loc>", "".join(sitemaps))) == set(mall.urls)
        assert set(re.findall("<lastmod>(.*?)</lastmod>", sitemaps[0])) == {"2026-01-01T00:00:00Z"}

    asyncio.run(main())


def test_long_categories_go_on_and_end() -> None:
    async def main() -> None:
        pages = [MallPage(str(n), 0, f"/o/{n}", f"Thing {n}", category="A") for n in range(1001)]
        offsets = np.arange(1002, dtype=np.int64)
        times = np.full(1001, np.datetime64("2026-01-01", "us"))
        mall = Mall(Stock(pages, offsets, times, ["1 EUR InStock"] * 1001), VirtualClock(START))
        async with opened(mall) as session:
            seen = []
            for path in ("/c/a", "/c/a/2", "/c/a/3", "/c/a/4", "/c/a/0", "/c/a/x", "/c/b"):
                async with session.get(f"http://{mall.hosts[0]}{path}") as response:
                    seen.append((response.status, len(links(await response.read()))))
        assert seen == [(200, 501), (200, 501), (200, 1), *[(404, 0)] * 4]

    asyncio.run(main())


def test_listings_leave_out_what_is_gone() -> None:
    async def main() -> None:
        mall = Mall(history((0, "1 EUR InStock"), (10, None)), VirtualClock(START))
        async with opened(mall) as session:
            for expected in (1, 0):
                for path in ("/c/a-b", "/sitemap.xml"):
                    async with session.get(f"http://{mall.hosts[0]}{path}") as response:
                        assert (await response.text()).count("/o/0") == expected
                mall.clock.advance(timedelta(seconds=20))  # type: ignore[attr-defined]

    asyncio.run(main())


def test_robots_txt_closes_private_paths_and_states_the_crawl_delay() -> None:
    async def main() -> None:
        mall = Mall(generate(shops=2, offers=4), VirtualClock(START), crawl_delays={1: 0.5})
        async with opened(mall) as session:
            rules = []
            for host in mall.hosts:
                async with session.get(f"http://{host}/robots.txt") as response:
                    rules.append(Protego.parse(await response.text()))
            async with session.get(f"http://{mall.hosts[0]}/private/1") as response:
                assert response.status == 200
        assert [parsed.crawl_delay("any") for parsed in rules] == [None, 0.5]
        assert not rules[0].can_fetch(f"http://{mall.hosts[0]}/private/1", "any")
        assert rules[0].can_fetch(mall.urls[0], "any")
        assert list(rules[0].sitemaps) == [f"http://{mall.hosts[0]}/sitemap.xml"]
        assert [entry.crawl_delay for entry in mall.log] == [None, 0.5, None]
        assert audit(mall.log, delay=0.0).counts == {"disallowed": 1}

    asyncio.run(main())


def test_other_methods_and_other_shops_pages_are_refused() -> None:
    async def main() -> None:
        mall = Mall(generate(shops=2, offers=4), VirtualClock(START))
        async with opened(mall) as session:
            async with session.post(mall.urls[0]) as response:
                assert response.status == 405
            async with session.head(mall.urls[0]) as response:
                assert response.status == 200
            async with session.get(f"http://{mall.hosts[1]}/o/0?x=1") as response:
                assert response.status == 404
            async with session.get(f"{mall.urls[0]}?utm_source=x") as response:
                assert response.status == 200
        assert [entry.path for entry in mall.log] == ["/o/0"] * 4

    asyncio.run(main())


def test_the_log_is_also_a_file(tmp_path: Path, run: Run) -> None:
    async def main() -> None:
        path = tmp_path / "access.jsonl"
        mall = Mall(
            generate(shops=2, offers=20),
            VirtualClock(START),
            faults=[Fault("hang", 1.0, paths="/o/7")],
            log_path=path,
        )
        async with opened(mall) as session:
            for url in mall.urls[:5]:
                async with session.get(url):
                    pass
            assert read_entries(path) == mall.log
            waiting = asyncio.create_task(session.get(mall.urls[7]).__aenter__())
            await true(lambda: len(mall.log) == 6)
            assert mall.log[-1].ended is None
            with path.open("ab") as file:
                file.write(b'{"host": "half a li')
            assert len(read_entries(path)) == 5
            path.write_bytes(path.read_bytes().rpartition(b"\n")[0] + b"\n")
            await mall.stop()
            with pytest.raises(aiohttp.ClientError):
                await waiting
        assert read_entries(path) == mall.log
        assert mall.log[-1].ended is not None
        assert mall.log[-1].status == 0

    run(main())


def test_a_polite_crawler_passes_the_audit_and_a_hasty_one_does_not(run: Run) -> None:
    delay = 0.02

    async def crawl(session: aiohttp.ClientSession, urls: list[str], pause: float) -> None:
        for url in urls:
            async with session.get(url) as response:
                await response.read()
            await asyncio.sleep(pause)

    async def main() -> None:
        mall = Mall(generate(shops=5, offers=50), VirtualClock(START), page_size=68_000)
        async with opened(mall) as session:
            mine = [[u for u in mall.urls if u.startswith(f"http://{h}/")] for h in mall.hosts]
            pause = 1.2 * delay  # timers may fire a millisecond early
            await asyncio.gather(*(crawl(session, urls, pause) for urls in mine))
            polite = audit(mall.log, delay=delay)
            assert polite.clean, str(polite)
            assert polite.requests == 50
            await crawl(session, mine[0], 0.0)
        assert audit(mall.log[50:], delay=600.0).counts == {"gap": 9}

    run(main())


def test_requests_one_after_the_other_never_seem_to_overlap(run: Run) -> None:
    async def main() -> None:
        mall = Mall(generate(shops=1, offers=20), VirtualClock(START), page_size=300_000)
        async with opened(mall) as session:
            for n in range(300):
                async with session.get(mall.urls[n % 20]) as response:
                    await response.read()
                if n % 3 == 0:  # a new connection for the next
                    response.close()
        found = audit(mall.log, delay=0.0)
        assert found.clean, str(found)

    run(main())


def test_a_taken_port_is_refused_and_nothing_stays_open() -> None:
    async def main() -> None:
        first = Mall(generate(shops=1, offers=1), VirtualClock(START))
        async with opened(first):
            port = int(first.hosts[0].rpartition(":")[2])
            second = Mall(generate(shops=2, offers=2), VirtualClock(START), port=port - 1)
            with pytest.raises(ConfigError, match="has no port"):
                await second.start()

    asyncio.run(main())


def test_ports_can_be_chosen_and_used_again() -> None:
    async def main() -> None:
        probe = Mall(generate(shops=1, offers=1), VirtualClock(START))
        await probe.start()
        port = int(probe.hosts[0].rpartition(":")[2])
        await probe.stop()
        for _ in range(2):
            mall = Mall(generate(shops=1, offers=1), VirtualClock(START), port=port)
            async with opened(mall) as session, session.get(mall.urls[0]) as response:
                assert mall.hosts == [f"127.0.0.1:{port}"]
                assert response.status == 200

    asyncio.run(main())


def test_serve_keeps_the_mall_open_until_it_is_told() -> None:
    async def main() -> None:
        mall = Mall(generate(shops=1, offers=1), VirtualClock(START))
        done = asyncio.Event()
        serving = asyncio.create_task(serve(mall, done.wait()))
        await true(lambda: bool(mall.urls))
        async with aiohttp.ClientSession() as session:
            async with session.get(mall.urls[0]) as response:
                assert response.status == 200
            done.set()
            await serving
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.get(mall.urls[0])

    asyncio.run(main())
