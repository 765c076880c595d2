"""Sources of hosts: where a site shows its new pages, found from nothing but its name."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec
import numpy as np
from protego import Protego

from salticus.clock import Clock, passing
from salticus.config import Config
from salticus.crawl.assembly import check_contact, fetching
from salticus.crawl.finders import make_census
from salticus.crawl.opening import Crawl, alone, clock_of
from salticus.crawl.retiring import discovery_of
from salticus.crawl.snapshot import Snapshot
from salticus.errors import ExtractError, InputError, PluginError, UnknownPage
from salticus.extract.announced import announced_feeds
from salticus.extract.base import Content
from salticus.extract.links import links_of, not_after
from salticus.extract.pool import Extraction
from salticus.fetch.polite import PoliteFetcher
from salticus.store.base import Store
from salticus.types import Entry, Fetched, NewPage, Status, Target, Value, instant
from salticus.types.dates import DAY_US
from salticus.urls import canonical

SECTIONS = 20  # pages one hop from the main page that are looked at
_USUAL_FEEDS = ("/feed", "/rss", "/rss.xml", "/feed.xml", "/atom.xml", "/feed.json")
_USUAL_MAPS = ("/sitemap.xml", "/sitemap_index.xml", "/news-sitemap.xml")
_FEED_FORMATS = frozenset({"rss", "rss 1.0", "atom", "json feed"})
_MOST = 50  # feeds of a host that are looked at, and sitemaps
_HUB = 5  # links of its own that a section must have
_FEW = 2  # the same, of links to pages that feeds name
_PATIENCE_S = 600.0  # wall seconds for the turn of one request
_AT_ONCE = 16  # hosts
_NUMBER = re.compile(r"\d")

_LATELY = 14  # days whose pages tell how many come

Told = Callable[[str], None]


class FoundSource(msgspec.Struct, frozen=True):
    """A source: how many pages it names, when it says that the newest of them came, `by` what it
    was found, and whether it was `known` before. `per_day` new pages appear on it: as the crawl has
    learnt, or by the dates of its pages in the host's feeds and sitemaps; None if nothing tells."""

    url: str
    host: str
    format: str
    links: int
    newest: str | None
    by: str
    known: bool
    per_day: float | None = None


class FoundHost(msgspec.Struct, frozen=True):
    """A host by its main page, and how many new pages its sources together show a day."""

    url: str
    per_day: float | None


class Discovered(msgspec.Struct, frozen=True):
    """The hosts, those that make the most new pages first, their sources in the same order, and of
    hosts that could not be asked why."""

    hosts: list[FoundHost]
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
        rates = {} if store is None else await known_rates(config, store)
        looks = [Look(fetcher, extraction, clock, rates, main, sections) for main in mains]

        async def look(each: Look) -> None:
            async with gate:
                told(f"looking at {each.main}")
                await each.run()

        try:
            await asyncio.gather(*map(look, looks))
        finally:
            await extraction.close()
        if store is not None:
            for each in looks:
                await each.recognize(store)
    now = instant(clock.now()).astype(np.int64)
    ranked = [each.ranked(int(now)) for each in looks if not each.fault]
    ranked.sort(key=lambda one: -(one[0].per_day or 0.0))
    return Discovered(
        [host for host, _ in ranked],
        [source for _, sources in ranked for source in sources],
        {each.main: each.fault for each in looks if each.fault},
    )


async def known_rates(config: Config, store: Store) -> dict[str, float]:
    """New pages a day on each source of a store, by URL, as its crawl has learnt."""
    census = make_census(config, store)
    await Snapshot({"scout": census.scout}, store).recall()
    await census.refresh()
    scout = census.scout
    targets = await store.targets(scout.ids_)
    number = {page: row for row, page in enumerate(scout.ids_.tolist())}
    rate = scout.finder.links_.rate
    return {each.url: float(rate[number[each.page]]) for each in targets if each.page in number}


async def add_found(crawl: Crawl, found: Discovered, tags: Sequence[str] = ()) -> int:
    """Add the sources that were found, and note when their hosts were looked at; how many of them
    were not known."""
    for host in found.hosts:
        await crawl.store.done(discovery_of(host.url), crawl.micros)
    new = [NewPage(each.url, kind="source", tags=tuple(tags)) for each in found.sources]
    return await crawl.store.add(new, at=crawl.micros) if new else 0


def _main(host: str) -> str:
    """The main page of what the user named.

    >>> _main("news.example"), _main("http://127.0.0.1:8000")
    ('https://news.example/', 'http://127.0.0.1:8000/')
    """
    url, _ = canonical(host if "://" in host else f"https://{host}")
    if urlsplit(url).path != "/":
        raise InputError(f"{host}: name a host; `salticus add URL --kind source` adds one page")
    return url


class SourcePage(NamedTuple):
    """A page that was read as a source."""

    target: Target
    value: Value
    entries: tuple[Entry, ...]


@dataclass
class Look:
    """One host: what is asked, and what was found; `fault` says why nothing could be."""

    fetcher: PoliteFetcher
    extraction: Extraction
    clock: Clock
    rates: dict[str, float]  # of sources that are known, by URL
    main: str
    sections: int
    found: dict[str, FoundSource] = field(default_factory=dict)
    named: dict[str, list[str]] = field(default_factory=dict)  # pages, by source
    dated: dict[str, int] = field(default_factory=dict)  # when pages came, µs
    fault: str = ""
    asked: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Ask for all that may be a source, one after another."""
        page = await self._main_page()
        if page is None:
            return
        top = _content(page)
        if (home := await self._read(page)) is not None:
            self._note(home, "the main page")
        front = {entry.url for entry in links_of(top)}  # sections stand in boxes as well
        for url in self._in_robots(page.url)[:_MOST]:
            await self._visit(url, "robots.txt")
        announced = announced_feeds(top)[:_MOST]
        for url in announced:
            await self._visit(url, "announced by the main page")
        sections = sorted(filter(_is_section, front), key=lambda url: (len(url), url))
        feeds: dict[str, str] = {}
        for url, named in (await self._in_sections(sections[: self.sections], front)).items():
            for feed in named:
                feeds.setdefault(feed, f"announced by {url}")
        for url, by in list(feeds.items())[: _MOST - len(announced)]:
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

    async def _in_sections(self, urls: Sequence[str], front: set[str]) -> dict[str, list[str]]:
        """Look at pages one hop away; the feeds that each announces.

        One counts if it names enough pages that neither the main page nor two other sections name,
        or that no other section names: what stands on all pages of a site is no list of its own,
        but the main page may show all of a section's pages for a while. Of pages that a feed names
        two are enough: few are new on a small site.
        """
        pages = {url: page for url in urls if (page := await self._page(url))}
        read = {url: await self._read(page) for url, page in pages.items()}
        lists = {url: {entry.url for entry in one.entries} for url, one in read.items() if one}
        shown = Counter(named for entries in lists.values() for named in entries)
        for url, entries in lists.items():
            new = sum(1 for named in entries if named not in front)
            own = [named for named in entries if shown[named] == 1 and len(lists) > 1]
            many = max(new, len(own)) >= _HUB or len(self.dated.keys() & own) >= _FEW
            if (found := read[url]) and many:
                self._note(found, "one hop from the main page")
        return {url: announced_feeds(_content(page)) for url, page in pages.items()}

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

    async def _visit(self, url: str, by: str) -> bool:
        """Look at what should be a feed or a sitemap; whether it names any page."""
        page = await self._page(url)
        read = None if page is None else await self._read(page)
        if read is not None and read.value.fields["format"] != "html":
            self._note(read, by)
        return read is not None and bool(read.entries)

    async def _page(self, url: str) -> Fetched | None:
        page = await self._fetch(url)
        return page if page is not None and page.status is Status.OK else None

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

    async def _read(self, page: Fetched) -> SourcePage | None:
        """A page read as a source; None if it is none."""
        target = Target(0, *canonical(page.url), kind="source")
        try:
            reading = await self.extraction.read(_content(page), target)
        except (ExtractError, PluginError):
            return None
        value = reading.value
        if reading.status is not Status.OK or value is None or value.kind != "source":
            return None
        return SourcePage(target, value, not_after(reading.entries, page.at) or ())

    def _note(self, read: SourcePage, by: str) -> None:
        """Note a source that was found."""
        url, fields = read.target.url, read.value.fields
        if url in self.found:
            return
        self.found[url] = FoundSource(
            url=url,
            host=read.target.host,
            format=fields["format"],
            links=int(fields["links"]),
            newest=fields.get("newest"),
            by=by,
            known=False,
        )
        self.named[url] = [entry.url for entry in read.entries]
        for entry in read.entries:
            # of sitemaps, those for news have titles; others tell when pages changed
            if entry.at is not None and (entry.word == "feed" or entry.title):
                self.dated[entry.url] = min(entry.at, self.dated.get(entry.url, entry.at))

    async def recognize(self, store: Store) -> None:
        """Note which of the sources the store knows."""
        for url, source in self.found.items():
            with suppress(UnknownPage):
                known = bool(await store.page(url))
                self.found[url] = msgspec.structs.replace(source, known=known)

    def ranked(self, now: int) -> tuple[FoundHost, list[FoundSource]]:
        """The host and its sources, those with the most new pages a day first."""
        sources = [
            msgspec.structs.replace(one, per_day=self.rates.get(url, self._dated(url, now)))
            for url, one in self.found.items()
        ]
        known = sum(rate for url, rate in self.rates.items() if urljoin(url, "/") == self.main)
        rate = known or _per_day(list(self.dated.values()), now)
        return FoundHost(self.main, rate), sources

    def _dated(self, source: str, now: int) -> float | None:
        return _per_day([self.dated[u] for u in self.named[source] if u in self.dated], now)


def _per_day(times: list[int], now: int) -> float | None:
    """Pages a day that came at these times, µs, by those of the last 14 days; None without any.

    >>> _per_day([20 * DAY_US - k * DAY_US // 4 for k in range(8)], 20 * DAY_US)
    4.0
    """
    if not times:
        return None
    lately = [at for at in times if at > now - _LATELY * DAY_US]
    if len(lately) < len(times):
        return len(lately) / _LATELY
    if len(times) == 1:
        return 1.0 / max((now - times[0]) / DAY_US, 1.0)
    return (len(times) - 1) / max((now - min(times)) / DAY_US, 1 / 24) if times else None


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
