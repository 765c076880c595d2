"""Sources of hosts are found from their names alone, politely, and by whatever they are there."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import msgspec
import pytest

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Route, Server, reply
from salticus.config import Config
from salticus.crawl.discovery import Discovered, discover
from salticus.errors import ConfigError, InputError

from .conftest import Street, finished

HOUR = timedelta(hours=1)
RSS = (
    b"<rss><channel><item><link>/a/1</link>"
    b"<pubDate>Mon, 01 Jun 2026 10:00:00 GMT</pubDate></item></channel></rss>"
)
ATOM = b'<feed><entry><link href="/a/2"/></entry></feed>'
MAP = b"<urlset><url><loc>/a/1</loc></url><url><loc>/a/2</loc></url></urlset>"


def html(*paths: str, head: str = "") -> bytes:
    links = "".join(f'<a href="{path}">{path}</a>' for path in paths)
    page = f"<html><head>{head}</head><body>{links}</body></html>"
    return reply(page.encode(), Content_Type="text/html")


def alternate(path: str) -> str:
    return f'<link rel="alternate" type="application/rss+xml" href="{path}">'


def polite(tmp_path: Path) -> Config:
    config = settings(timeout=60.0)
    fetch = msgspec.structs.replace(config.fetch, contact="me@example.org")
    store = f"sqlite:{tmp_path / 'none.db'}"
    return msgspec.structs.replace(config, fetch=fetch, store=store, folder=str(tmp_path))


def found(
    tmp_path: Path, routes: dict[str, Route], sections: int = 20
) -> tuple[Discovered, list[str]]:
    """What is discovered on a host with these pages, and the paths that were asked for."""

    async def main() -> tuple[Discovered, list[str]]:
        async with Server(routes) as server:
            told = await discover(polite(tmp_path), [f"http://{server.host}"], sections=sections)
            return told, [path for path, _ in server.arrivals]

    return asyncio.run(main())


def by_path(told: Discovered) -> dict[str, tuple[str, int, str]]:
    return {
        "/" + each.url.split("/", 3)[3]: (each.format, each.links, each.by) for each in told.sources
    }


ARTICLES = tuple(f"/a/{n}" for n in range(8))
SPORT = tuple(f"/s/{n}" for n in range(8))


def test_all_that_a_site_says_of_its_sources_is_found(tmp_path: Path) -> None:
    told, asked = found(
        tmp_path,
        {
            "/robots.txt": reply(b"Sitemap: /map.xml\nUser-agent: *\nDisallow: /no/"),
            "/": html(*ARTICLES, "/sport/", "/no/", "/about", head=alternate("/all.rss")),
            "/sport/": html(*SPORT, head=alternate("/sport/rss")),
            "/about": html(*ARTICLES[:3]),
            "/all.rss": reply(RSS),
            "/sport/rss": reply(ATOM),
            "/map.xml": reply(MAP),
        },
    )
    assert told.failed == {}
    home = told.sources[0].url
    assert by_path(told) == {
        "/": ("html", 11, "the main page"),
        "/map.xml": ("sitemap", 2, "robots.txt"),
        "/sport/": ("html", 8, "one hop from the main page"),
        "/all.rss": ("rss", 1, "announced by the main page"),
        "/sport/rss": ("atom", 1, f"announced by {home}sport/"),
    }
    assert "/no/" not in asked, "law: robots.txt is obeyed"
    assert len(asked) == len(set(asked)), "law: nothing is asked for twice"
    newest = {each.url.rpartition("/")[2]: each.newest for each in told.sources}
    assert newest["all.rss"] == "2026-06-01T10:00:00Z"


def test_usual_places_are_tried_where_nothing_is_announced(tmp_path: Path) -> None:
    told, asked = found(
        tmp_path,
        {"/": html(*ARTICLES), "/rss.xml": reply(RSS), "/sitemap.xml": reply(MAP)},
    )
    assert by_path(told) == {
        "/": ("html", 8, "the main page"),
        "/rss.xml": ("rss", 1, "a usual place"),
        "/sitemap.xml": ("sitemap", 2, "a usual place"),
    }
    assert "/atom.xml" not in asked, "one is enough"


def test_a_page_that_is_there_for_every_address_is_no_feed(tmp_path: Path) -> None:
    same = html(*ARTICLES)
    paths = ("/", "/feed", "/rss", "/rss.xml", "/sitemap.xml", "/sitemap_index.xml")
    told, _ = found(tmp_path, dict.fromkeys(paths, same))
    assert list(by_path(told)) == ["/"]


def test_a_feed_that_every_page_announces_is_that_of_the_main_page(tmp_path: Path) -> None:
    head = alternate("/all.rss")
    told, _ = found(
        tmp_path,
        {
            "/": html(*ARTICLES, "/sport/", head=head),
            "/sport/": html(*SPORT, head=head),
            "/all.rss": reply(RSS),
        },
    )
    assert by_path(told)["/all.rss"][2] == "announced by the main page"


def test_sections_count_by_the_pages_that_are_theirs_alone(tmp_path: Path) -> None:
    """The main page still shows all pages of `sport` and of `art`; a box with the latest stands on
    `about` and `help`; and `town` has but two, of which a feed tells that they are pages."""
    art, town = tuple(f"/k/{n}" for n in range(5)), ("/t/1", "/t/2")
    items = "".join(f"<item><link>{path}</link></item>" for path in town)
    names = ("/sport/", "/art/", "/town/", "/about", "/help")
    pages = {
        "/": html(*ARTICLES, *SPORT, *art, *town, *names, head=alternate("/all.rss")),
        "/sport/": html(*SPORT),
        "/art/": html(*art),
        "/town/": html(*town),
        "/about": html(*ARTICLES, "/jobs", "/press"),
        "/help": html(*ARTICLES),
        "/all.rss": reply(f"<rss><channel>{items}</channel></rss>".encode()),
    }
    undated, _ = found(tmp_path, dict(pages))
    sections = {path for path, told in by_path(undated).items() if "one hop" in told[2]}
    assert sections == {"/sport/", "/art/"}
    date = "<pubDate>Mon, 01 Jun 2026 10:00:00 GMT</pubDate></item>"
    pages["/all.rss"] = reply(
        f"<rss><channel>{items}</channel></rss>".replace("</item>", date).encode()
    )
    dated, _ = found(tmp_path, dict(pages))
    sections = {path for path, told in by_path(dated).items() if "one hop" in told[2]}
    assert sections == {"/sport/", "/art/", "/town/"}


def test_hosts_that_make_more_new_pages_come_first(tmp_path: Path) -> None:
    """By the dates in their feeds: one has a page every two hours, the other one a day."""

    def site(hours: int) -> dict[str, Route]:
        now = datetime.now(UTC)
        items = "".join(
            f"<item><link>/a/{n}</link><pubDate>{format_datetime(now - n * hours * HOUR)}</pubDate>"
            "</item>"
            for n in range(1, 9)
        )
        feed = f"<rss><channel>{items}</channel></rss>".encode()
        return {"/": html(*ARTICLES, head=alternate("/rss")), "/rss": reply(feed)}

    async def main() -> Discovered:
        async with Server(site(24)) as slow, Server(site(2)) as fast:
            hosts = [f"http://{server.host}" for server in (slow, fast)]
            return await discover(polite(tmp_path), hosts)

    told = asyncio.run(main())
    rates = [host.per_day for host in told.hosts]
    assert rates == [pytest.approx(7 / (16 / 24), rel=0.01), pytest.approx(7 / 8, rel=0.01)]
    assert [each.url.split("/")[2] for each in told.sources] == [
        host.url.split("/")[2] for host in told.hosts for _ in range(2)
    ]
    assert all(each.per_day for each in told.sources), "main pages, too: by what feeds say of them"


def test_no_more_sections_are_looked_at_than_asked_for(tmp_path: Path) -> None:
    names = [f"/{c}/" for c in "abcdefgh"]
    routes: dict[str, Route] = {name: html(*(f"{name}{n}" for n in range(9))) for name in names}
    told, asked = found(tmp_path, {"/": html(*names), **routes}, sections=3)
    assert len([path for path in asked if path in names]) == 3
    assert len(told.sources) == 4


def test_a_site_that_names_too_many_is_not_asked_for_all(tmp_path: Path) -> None:
    """A main page, its robots.txt and its sections each name hundreds of feeds and sitemaps."""
    names = [f"/{c}/" for c in "abcdef"]
    heads = {name: "".join(alternate(f"{name}{n}.rss") for n in range(300)) for name in names}
    maps = b"".join(b"Sitemap: /%d.xml\n" % n for n in range(300))
    _, asked = found(
        tmp_path,
        {
            "/robots.txt": reply(maps),
            "/": html(*names, head=alternate("/x.rss") * 300),
            **{name: html(*ARTICLES, head=heads[name]) for name in names},
        },
    )
    assert len(asked) < 130


def test_a_host_that_does_not_answer_is_named(tmp_path: Path) -> None:
    told, _ = found(tmp_path, {})
    assert told.sources == []
    assert list(told.failed.values()) == ["gone: the server answered 404"]


def test_hosts_come_from_a_file_too_and_there_must_be_one(street: Street) -> None:
    street.open(shops=1, offers=30, days=30, speed=3600.0, delay=0.01)
    code, _, err = finished(street.start("discover", "-c", street.settings))
    assert code == 2
    assert "no host is given; name some, or use --file or --known" in err
    home = "/".join((street.folder / "urls.txt").read_text().split()[0].split("/")[:3])
    hosts = street.folder / "hosts.txt"
    hosts.write_text(f"# shops\n{home}\n\n")
    words = ("discover", "--file", str(hosts), "-c", street.settings, "--json", "--dry-run")
    code, out, err = finished(street.start(*words))
    assert code == 0, err
    assert [host["url"] for host in json.loads(out)["hosts"]] == [home + "/"]


@pytest.mark.parametrize("name", ["", "news.example/sport", "ftp://news.example", "no host"])
def test_what_is_no_host_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        asyncio.run(discover(polite(tmp_path), [name]))


def test_someone_must_be_there_to_turn_to() -> None:
    with pytest.raises(ConfigError, match=r"fetch\.contact is empty"):
        asyncio.run(discover(Config(), ["news.example"]))


def test_the_command_adds_what_it_finds(street: Street) -> None:
    street.open(shops=1, offers=30, days=30, speed=3600.0, delay=0.01)
    home = "/".join((street.folder / "urls.txt").read_text().split()[0].split("/")[:3])
    words = ("discover", home, "-c", street.settings)
    code, out, err = finished(street.start(*words, "--dry-run", "--json"))
    assert code == 0, err
    told = json.loads(out)
    assert told["added"] == 0
    assert {each["format"] for each in told["sources"]} >= {"sitemap"}
    code, out, err = finished(street.start(*words, "--tag", "mall"))
    assert code == 0, err
    assert f"{len(told['sources'])} of them new; the crawl will read them" in out
    kept = street.sql("SELECT url FROM pages WHERE kind = 'source'")
    assert {url for (url,) in kept} == {each["url"] for each in told["sources"]}
    code, out, _ = finished(street.start("sources", "-c", street.settings, "--json"))
    assert {each["url"] for each in json.loads(out)} == {url for (url,) in kept}
    words = ("discover", "--known", "-c", street.settings)
    code, out, _ = finished(street.start(*words, "--json"))
    assert (code, json.loads(out)["added"]) == (0, 0)
    assert [host["url"] for host in json.loads(out)["hosts"]] == [home + "/"]
    assert all(each["known"] for each in json.loads(out)["sources"])
