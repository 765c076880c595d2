"""Publishers of the mall over HTTP, read by our own extractor and found by our own discovery."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import aiohttp
from protego import Protego

from salticus.clock import VirtualClock
from salticus.extract.announced import announced_feeds
from salticus.extract.base import Content
from salticus.extract.source import Source
from salticus.extract.text import Text
from salticus.lab.worlds.mall.folder import Plot, urls_of
from salticus.lab.worlds.mall.press import Press, PressSettings
from salticus.lab.worlds.mall.server import Mall
from salticus.types import Reading
from salticus.types.dates import epoch_us
from salticus.urls import without_tracking

from .conftest import Street, finished

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=3, hours=7)
PLOT = Plot(
    shops=2,
    offers=6,
    days=5,
    press=PressSettings(publishers=6, articles=40.0, shown=12, dead=2, flood=900),
)
TRACKED = re.compile(r"http[^\s<>\"']+\?utm_[^\s<>\"']+")
Get = Callable[[str], Awaitable[Content | int]]


def read(check: Callable[[Press, Mall, Get], Awaitable[None]]) -> None:
    """Let a test read the mall, which gives the body of a page, or its status if it is not 200."""

    async def main() -> None:
        press = PLOT.truth()
        mall = Mall(press.stock, VirtualClock(NOW), publishers=press.publishers)
        await mall.start()
        try:
            async with aiohttp.ClientSession() as session:

                async def get(url: str) -> Content | int:
                    async with session.get(url) as answer:
                        body = await answer.read()
                        kind = answer.headers["Content-Type"]
                        return Content(url, body, kind) if answer.status == 200 else answer.status

                await check(press, mall, get)
        finally:
            await mall.stop()

    asyncio.run(main())


def entries(content: Content | int) -> Reading:
    assert isinstance(content, Content)
    return Source().extract(content)


def test_sources_name_the_articles_that_stand_there() -> None:
    """Law: whatever its form, our extractor reads from a source the URLs that the truth has, each
    once, and of feeds and sitemaps the time of birth."""

    async def check(press: Press, mall: Mall, get: Get) -> None:
        links, now = press.links(), epoch_us(NOW)
        gone = links.vanished.view("i8")
        stand = (links.appeared.view("i8") <= now) & ((gone > now) | (gone == -(2**63)))
        formats = set()
        for number, source in enumerate(press.sources):
            rows = links.row[stand & (links.source == number)].tolist()
            content = await get(f"http://{mall.hosts[source.shop]}{source.path}")
            if not rows:
                assert content in (404, 410), source
                continue
            found = entries(content)
            assert found.value is not None
            formats.add(found.value.fields["format"])
            named = {without_tracking(each.url): each for each in found.entries}
            flood = {url for url in named if "/live/" in url}
            hubs = {
                f"http://{host}/{name}/"
                for host, own in zip(mall.hosts[PLOT.shops :], press.publishers, strict=True)
                for name in own.categories
            }
            assert set(named) - hubs - flood == {mall.urls[row] for row in rows}, source
            assert not flood or source.path == "/"
            if source.form not in ("main", "category"):
                assert {named[mall.urls[row]].at // 10**6 for row in rows} == {
                    int(press.stock.times[press.stock.offsets[row]].view("i8")) // 10**6
                    for row in rows
                }
        assert formats == {"html", "rss", "atom", "json feed", "sitemap"}

    read(check)


def test_some_links_track_and_all_lead_to_one_article() -> None:
    async def check(press: Press, mall: Mall, get: Get) -> None:
        host = mall.hosts[press.publishers[2].shop]
        content = await get(f"http://{host}/feed.xml")
        assert isinstance(content, Content)
        tracked = [html.unescape(url) for url in TRACKED.findall(content.body.decode())]
        feed = {each.url for each in entries(content).entries}
        assert 0 < len(tracked) < len(feed)
        assert {without_tracking(url) for url in tracked} < feed, "law: none is a page of its own"
        bodies = [await get(url) for url in (tracked[0], without_tracking(tracked[0]))]
        assert all(isinstance(body, Content) for body in bodies)
        assert [entry.value for entry in mall.log[-2:]] == [mall.log[-1].value] * 2

    read(check)


def test_an_article_is_there_from_its_birth_on_with_title_text_and_date() -> None:
    async def check(press: Press, mall: Mall, get: Get) -> None:
        now = epoch_us(NOW)
        born = press.born.view("i8")
        row = press.first + int((born <= now).nonzero()[0][-1])
        unborn = press.first + int((born > now).nonzero()[0][0])
        assert await get(mall.urls[unborn]) == 404
        content = await get(mall.urls[row])
        assert isinstance(content, Content)
        value = Text().extract(content)
        assert value is not None
        page = press.stock.pages[row]
        assert value.text == press.stock.values[press.stock.offsets[row]]
        assert f"<title>{page.title}</title>".encode() in content.body
        assert page.published is not None
        assert f'"datePublished": "{page.published}"'.encode() in content.body

    read(check)


def test_feeds_and_sitemaps_are_announced() -> None:
    async def check(press: Press, mall: Mall, get: Get) -> None:
        for own in press.publishers:
            home = f"http://{mall.hosts[own.shop]}"
            content, robots = await get(f"{home}/"), await get(f"{home}/robots.txt")
            assert isinstance(content, Content)
            assert isinstance(robots, Content)
            named = announced_feeds(content) + list(Protego.parse(robots.body.decode()).sitemaps)
            forms = {"feed", "sitemap", "news sitemap"}
            assert named == [f"{home}{path}" for path, form in own.sources.items() if form in forms]

    read(check)


def test_the_command_opens_publishers_whose_sources_can_be_discovered(street: Street) -> None:
    words = ("--publishers=2", "--articles=60", "--dead-feeds=1", "--shops=1", "--offers=5")
    mall = street.start("mall", street.folder, *words, "--seed=3", "--json")
    street.opened(mall)
    press = Plot(
        shops=1, offers=5, seed=3, press=PressSettings(publishers=2, articles=60.0, dead=1)
    ).truth()
    told = (street.folder / "sources.txt").read_text().split()
    urls = urls_of(street.folder, press)
    assert len(urls) == len(press.stock)
    assert len((street.folder / "urls.txt").read_text().split()) == 5
    homes = sorted({"/".join(url.split("/")[:3]) for url in told})
    code, out, err = finished(street.start("discover", *homes, "-c", street.settings, "--json"))
    assert code == 0, err
    dead = f"{urls[press.first].split('/', 3)[2]}/feed.xml"
    found = {each["url"] for each in json.loads(out)["sources"]}
    alive = {url for url in told if not url.endswith(dead)}
    assert found <= alive, "law: a dead feed is no source"
    assert {url for url in alive if not url.endswith("/")} <= found, "all feeds and sitemaps"
    assert {f"{home}/" for home in homes} <= found
