"""Sources of hosts: where a site shows its new pages, found from nothing but its name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

import msgspec
from protego import Protego

from salticus.clock import Clock, passing
from salticus.config import Config
from salticus.crawl.assembly import check_contact, fetching
from salticus.crawl.opening import alone, clock_of
from salticus.errors import ExtractError, InputError, PluginError, UnknownPage
from salticus.extract.announced import announced_feeds
from salticus.extract.base import Content
from salticus.extract.links import links_of
from salticus.extract.pool import Extraction
from salticus.fetch.polite import PoliteFetcher
from salticus.store.base import Store
from salticus.types import Entry, Fetched, Status, Target, Value
from salticus.urls import canonical

SECTIONS = 20  # pages one hop from the main page that are looked at
_USUAL_FEEDS = ("/feed", "/rss", "/rss.xml", "/feed.xml", "/atom.xml", "/feed.json")
_USUAL_MAPS = ("/sitemap.xml", "/sitemap_index.xml", "/news-sitemap.xml")
_FEED_FORMATS = frozenset({"rss", "rss 1.0", "atom", "json feed"})
_MOST = 50  # feeds of a host that are looked at, and sitemaps
_HUB = 5  # links that a section must have which the main page has not
_PATIENCE_S = 600.0  # wall seconds for the turn of one request
_AT_ONCE = 16  # hosts
_NUMBER = re.compile(r"\d")

Told = Callable[[str], None]


class FoundSource(msgspec.Struct, frozen=True):
    """A source: how many pages it names, when it says that the newest of them came, `by` what it
    was found, and whether it was `known` before."""

    url: str
    host: str
    format: str
    links: int
    newest: str | None
    by: str
    known: bool


class Discovered(msgspec.Struct, frozen=True):
    """The sources of all hosts, and of hosts that could not be asked why."""

    sources: list[FoundSource]
    failed: dict[str, str]


async def discover(
    config: Config, hosts: Sequence[str], *, sections: int = SECTIONS, told: Told = lambda _: None
) -> Discovered:
    """Find the sources of hosts: the main page, the feeds that it announces or has at usual places,
    the sitemaps of robots.txt, and the sections that it links to (Lefortier et al. 2013, §3.2).

    Nothing is stored. Requests are as polite as visits, and not taken from the budget. Raises
    StoreLocked if a crawler runs on the store.
    """
    check_contact(config)
    mains = [_main(host) for host in dict.fromkeys(hosts)]
    clock, gate = clock_of(config), asyncio.Semaphore(_AT_ONCE)
    extraction = Extraction(config.extract, rules=config.pages)
    async with alone(config) as store, fetching(config, clock) as fetcher, passing(clock):
        if store is not None:
            fetcher.restore(await store.hosts())
        looks = [Look(fetcher, extraction, clock, store, main, sections) for main in mains]

        async def look(each: Look) -> None:
            async with gate:
                told(f"looking at {each.main}")
                await each.run()

        try:
            await asyncio.gather(*map(look, looks))
        finally:
            await extraction.close()
    return Discovered(
        [source for each in looks for source in each.found.values()],
        {each.main: each.fault for each in looks if each.fault},
    )


def _main(host: str) -> str:
    """The main page of what the user named.

    >>> _main("news.example"), _main("http://127.0.0.1:8000")
    ('https://news.example/', 'http://127.0.0.1:8000/')
    """
    url, _ = canonical(host if "://" in host else f"https://{host}")
    if urlsplit(url).path != "/":
        raise InputError(f"{host}: name a host; `salticus add URL --kind source` adds one page")
    return url


@dataclass
class Look:
    """One host: what is asked, and what was found; `fault` says why nothing could be."""

    fetcher: PoliteFetcher
    extraction: Extraction
    clock: Clock
    store: Store | None
    main: str
    sections: int
    found: dict[str, FoundSource] = field(default_factory=dict)
    fault: str = ""
    asked: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Ask for all that may be a source, one after another."""
        page = await self._main_page()
        if page is None:
            return
        top = _content(page)
        await self._try(page, "the main page")
        front = {entry.url for entry in links_of(top)}  # sections stand in boxes as well
        feeds = dict.fromkeys(announced_feeds(top), "announced by the main page")
        for url in self._in_robots(page.url)[:_MOST]:
            await self._visit(url, "robots.txt")
        for url in sorted(filter(_is_section, front), key=len)[: self.sections]:
            feeds |= dict.fromkeys(await self._section(url, front), f"announced by {url}")
        for url, by in list(feeds.items())[:_MOST]:
            await self._visit(url, by)
        await self._usual(page.url)

    async def _main_page(self) -> Fetched | None:
        """The main page, without TLS if there is none; `fault` says why there is no page."""
        page = await self._fetch(self.main)
        if page is not None and page.status in (Status.NETWORK, Status.CERTIFICATE):
            plain = await self._fetch(self.main.replace("https://", "http://", 1))
            page = plain if plain is not None and plain.status is Status.OK else page
        if page is None:
            self.fault = "its turn did not come in time"
        elif page.status is not Status.OK:
            self.fault = f"{page.status.label}: {page.fault}"
            page = None
        return page

    def _in_robots(self, url: str) -> list[str]:
        """The sitemaps that robots.txt names, on whatever host."""
        told = self.fetcher.host(canonical(url)[1]).robots or ""
        return [urljoin(url, raw) for raw in dict.fromkeys(Protego.parse(told).sitemaps)]

    async def _section(self, url: str, front: set[str]) -> list[str]:
        """Look at a page one hop away; the feeds that it announces."""
        page = await self._fetch(url)
        if page is None or page.status is not Status.OK:
            return []
        await self._try(page, "one hop from the main page", beyond=front)
        return announced_feeds(_content(page))

    async def _usual(self, url: str) -> None:
        """If no feed or no sitemap is known yet, try where they usually are."""
        formats = {source.format for source in self.found.values()}
        for usual, there in (
            (_USUAL_FEEDS, not formats.isdisjoint(_FEED_FORMATS)),
            (_USUAL_MAPS, any("sitemap" in each for each in formats)),
        ):
            for path in () if there else usual:
                if await self._visit(canonical(url.rstrip("/") + path)[0], "a usual place"):
                    break

    async def _visit(self, url: str, by: str) -> tuple[Entry, ...]:
        page = await self._fetch(url)
        ok = page is not None and page.status is Status.OK
        return await self._try(page, by, formal=True) if ok and page is not None else ()

    async def _fetch(self, url: str) -> Fetched | None:
        """What is at an address that was not asked for yet."""
        try:
            target = Target(0, *canonical(url), kind="source")
        except InputError:
            return None
        if target.url in self.asked:
            return None
        self.asked.add(target.url)
        return await self.fetcher.fetch(target, self.clock.wall() + _PATIENCE_S)

    async def _try(
        self, page: Fetched, by: str, *, beyond: set[str] | None = None, formal: bool = False
    ) -> tuple[Entry, ...]:
        """Read a page as a source, and note it if it is one: a section only if it names pages that
        are not `beyond`, and what should be `formal` only if it is no HTML."""
        target = Target(0, *canonical(page.url), kind="source")
        try:
            reading = await self.extraction.read(_content(page), target)
        except (ExtractError, PluginError):
            return ()
        value, entries = reading.value, reading.entries or ()
        if reading.status is not Status.OK or value is None or value.kind != "source":
            return ()
        new = sum(entry.url not in beyond for entry in entries) if beyond is not None else _HUB
        if new >= _HUB and not (formal and value.fields["format"] == "html"):
            self.found.setdefault(target.url, await self._source(target, value, by))
        return entries

    async def _source(self, target: Target, value: Value, by: str) -> FoundSource:
        known = False
        if self.store is not None:
            with suppress(UnknownPage):
                known = bool(await self.store.page(target.url))
        return FoundSource(
            url=target.url,
            host=target.host,
            format=value.fields["format"],
            links=int(value.fields["links"]),
            newest=value.fields.get("newest"),
            by=by,
            known=known,
        )


def _content(page: Fetched) -> Content:
    return Content(page.url, page.body, page.content_type, page.charset)


def _is_section(url: str) -> bool:
    """Whether an address looks like that of a list of pages: names, and not too many.

    >>> [_is_section(f"http://a.example{p}") for p in ("/sport/", "/a/b/c/d", "/2026/x", "/?p=a")]
    [True, False, False, False]
    """
    parts = urlsplit(url)
    names = [name for name in parts.path.split("/") if name]
    return 0 < len(names) <= 2 and not parts.query and not _NUMBER.search(parts.path)
