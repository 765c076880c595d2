"""The pages of a `MemoryStore`: added, found, linked, edited, merged, charged for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.config import Caps, Scope
from salticus.errors import UnknownPage
from salticus.store.base import PageTable
from salticus.store.caps import Admission, Held, Known
from salticus.store.memory.page import Page, fits, hit_of, row_of
from salticus.store.news import Named
from salticus.store.nouns import FIELD_COLUMNS, SORTS, STATES, Edit, Hit, PageState, Query, known
from salticus.types import KINDS, Alert, Ints, NewPage, Record, Target
from salticus.types.dates import DAY_US
from salticus.urls import canonical


class Link(msgspec.Struct):
    """One source names one page."""

    appeared: int
    vanished: int | None = None
    at: int | None = None
    seen: int = 0


class FoundBy(msgspec.Struct):
    """When a page added by hand was first looked at, and the new pages of a day since 1970."""

    since: int
    day: int = 0
    today: int = 0


class PageBook:
    """Pages by number, and links by page and source; a revision grows with every edit."""

    def __init__(self) -> None:
        self._pages: dict[int, Page] = {}
        self._ids: dict[str, int] = {}
        self._last = 0
        self._forgotten: dict[int, tuple[int, str]] = {}
        self._links: dict[tuple[int, int], Link] = {}
        self._found_by: dict[int, FoundBy] = {}
        self.caps = Caps()
        self._revision = 0

    async def add(self, pages: Sequence[NewPage], *, at: int) -> int:
        before, places = self._last, [canonical(new.url) for new in pages]
        self._revision += 1
        for new, place in zip(pages, places, strict=True):
            self._named(place, at, found=new.found).take(new, self._revision)
        return self._last - before

    def _named(self, place: tuple[str, str], at: int, *, found: bool = False) -> Page:
        """The page with this URL, added if it is new."""
        if place[0] not in self._ids:
            self._last += 1
            self._ids[place[0]] = self._last
            state = PageState(self._last, *place, added=at)
            self._pages[self._last] = Page(state, revision=self._revision, found=found)
        return self._pages[self._ids[place[0]]]

    async def table(self, after: int = -1) -> PageTable:
        rows = [
            (page.state, self._rests(page), page.found)
            for page in self._pages.values()
            if page.revision > after
        ]
        for number, (revision, host) in self._forgotten.items():
            if revision > after >= 0:
                rows.append((PageState(number, "", host), True, False))
        return _table(sorted(rows, key=lambda row: row[0].page), self._revision)

    def _rests(self, page: Page) -> bool:
        return page.state.paused or page.alias is not None or self._unlisted(page)

    async def targets(self, pages: Ints) -> list[Target]:
        return [self._pages[page].target for page in pages.tolist() if page in self._pages]

    async def page(self, url: str) -> PageState:
        name = canonical(url)[0]
        if name not in self._ids:
            raise UnknownPage(name)
        return self._shown(self._pages[self._ids[name]])

    def _shown(self, page: Page) -> PageState:
        """The page as people see it."""
        return msgspec.structs.replace(
            page.state,
            value=page.value and page.value.text,
            fields=page.value.fields if page.value else {},
            unlisted=self._unlisted(page),
            moved=None if page.alias is None else self._way(page.alias)[-1].state.url,
            sources=sorted(self._pages[s].state.url for s in self._sources(page.state.page)),
        )

    def _way(self, number: int) -> list[Page]:
        """A page, the one that it has become, and so on to the last."""
        page = self._pages[number]
        return [page] if page.alias is None else [page, *self._way(page.alias)]

    def _page_rows(self) -> Iterator[dict[str, Any]]:
        for page in self._pages.values():
            told = {name: page.known_fields.get(name) for name in FIELD_COLUMNS}
            yield row_of("url kind host tags max_interval demand", self._shown(page)) | told

    def _link_rows(self) -> Iterator[dict[str, Any]]:
        ordered = sorted(self._links.items(), key=lambda row: (row[1].appeared, *row[0][::-1]))
        for (page, source), link in ordered:
            row = {"source_id": source, "page_id": page, "appeared": link.appeared}
            yield row | {"vanished": link.vanished}

    # --------------------------------------------------------------------------------- by query

    async def find(self, query: Query) -> list[PageState]:
        sort = known(query.sort, SORTS, "order")
        pages = [self._shown(page) for page in self._fitting(query)]
        keyed = [page for page in pages if getattr(page, sort) is not None]
        keyed.sort(key=lambda page: getattr(page, sort), reverse=query.descending)
        keyed += [page for page in pages if getattr(page, sort) is None]
        for page in keyed:
            page.value = page.value and page.value[:200]
        return keyed[: query.limit]

    def _fitting(self, query: Query) -> list[Page]:
        if query.state is not None:
            known(query.state, STATES, "state")
        return [page for page in self._pages.values() if fits(self._shown(page), query)]

    async def search(self, words: str, limit: int = 20) -> list[Hit]:
        found = [hit_of(self._shown(page), words) for page in self._pages.values()]
        return [hit for hit in found if hit is not None][: max(limit, 0)]

    async def edit(self, query: Query, edit: Edit) -> int:
        chosen = self._fitting(query)
        self._revision += 1
        for page in chosen:
            page.edit(edit, self._revision)
        return len(chosen)

    async def forget(self, query: Query) -> int:
        chosen = {page.state.page for page in self._fitting(query)}
        self._revision += 1
        before = self._unlisted_ones()
        self._links = {ends: link for ends, link in self._links.items() if not chosen & {*ends}}
        for number in chosen:
            page = self._pages.pop(number)
            del self._ids[page.state.url]
            self._forgotten[number] = self._revision, page.state.host
        for page in self._pages.values():
            if page.alias in chosen:
                page.alias, page.revision = None, self._revision
        self._touch(before ^ self._unlisted_ones())
        return len(chosen)

    async def charge(self, costs: Sequence[tuple[Scope, float]]) -> None:
        self._revision += 1
        scopes, each = [scope for scope, _ in costs], [*(cost for _, cost in costs), 1.0]
        for page in self._pages.values():
            cost = each[_first(scopes, page)] if page.own_cost is None else page.own_cost
            if cost != page.state.cost:
                page.state.cost, page.revision = cost, self._revision

    async def fitting(self, pages: Ints, scopes: Sequence[Scope]) -> Ints:
        places = [_first(scopes, self._pages.get(page)) for page in pages.tolist()]
        return np.array(places, dtype=np.int64)

    # ------------------------------------------------------------------------------------ links

    def _sources(self, page: int) -> list[int]:
        """The sources that name a page now."""
        return [s for (p, s), link in self._links.items() if p == page and link.vanished is None]

    def _linked(self, source: int) -> set[int]:
        """The pages that a source names, or named."""
        return {page for page, other in self._links if other == source}

    def _unlisted(self, page: Page) -> bool:
        """Whether a page was found, and is not named any longer."""
        number = page.state.page
        return page.found and any(p == number for p, _ in self._links) and not self._sources(number)

    def _unlisted_ones(self) -> set[int]:
        return {number for number, page in self._pages.items() if self._unlisted(page)}

    def _touch(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._pages:
                self._pages[number].revision = self._revision

    def _admitted(
        self, record: Record, entries: Sequence[Named]
    ) -> tuple[list[Named], Alert | None]:
        """The entries that the caps let in, and what is to be told of it."""
        source, at = self._pages[record.observation.page], record.observation.at
        number, host = source.state.page, source.state.host
        known = [self._known(entry, number) for entry in entries]
        now = (s == number and link.vanished is None for (_, s), link in self._links.items())
        found = [page for page in self._pages.values() if page.found]
        by = self._found_by.get(_origin(source), FoundBy(at))
        fresh = by.since > at - DAY_US and not self._looked_at(number)
        held = Held(
            source_links=sum(each.linked for each in known) if record.complete else sum(now),
            host_links=sum(self._pages[s].state.host == host for _, s in self._links),
            source_pages=sum(page.origin == _origin(source) for page in found),
            host_pages=Counter(page.state.host for page in found),
            today=by.today if by.day == at // DAY_US else 0,
            importing=fresh or source.state.kind != "source",
        )
        admission = Admission(self.caps, held)
        pairs = zip(entries, known, strict=True)
        admitted = [entry for entry, each in pairs if admission.admits(entry.host, each)]
        if source.state.kind == "source":
            today = held.today + (0 if held.importing else admission.new_)
            self._found_by[_origin(source)] = FoundBy(by.since, at // DAY_US, today)
        source.left_out = admission.left_out_
        if source.left_out:
            return admitted, admission.alert(host, source.state.url, at)
        if any(page.left_out for page in self._pages.values() if page.state.host == host):
            return admitted, None
        return admitted, Alert(host, "flood", at, over=True)

    def _looked_at(self, source: int) -> bool:
        """Whether a look at the source is known."""
        raise NotImplementedError

    def _known(self, entry: Named, source: int) -> Known:
        page = self._ids.get(entry.url)
        sources = [] if page is None else self._sources(page)
        return Known(page is not None, source in sources, len(sources))

    def _link(self, record: Record, entries: Sequence[Named]) -> list[int]:
        """Take up what a source names; the pages whose time is news."""
        source, before = self._pages[record.observation.page], self._unlisted_ones()
        known = self._last
        times: dict[int, int | None] = {}
        for entry in entries:
            if entry.url not in self._ids:
                page = self._named((entry.url, entry.host), record.observation.at, found=True)
                page.state.kind, page.state.tags = entry.kind, source.state.tags[:]
                page.origin = _origin(source)
            if entry.url != source.state.url:
                times[self._ids[entry.url]] = entry.at
        self._look(record, known, times.keys())
        news = self._read(record, times)
        self._touch(before ^ self._unlisted_ones())
        return news

    def _look(self, record: Record, known: int, pages: Collection[int]) -> None:
        """A source shows these pages; those with a number above `known` are new."""
        raise NotImplementedError

    def _read(self, record: Record, times: dict[int, int | None]) -> list[int]:
        """Let a source name the pages that have `times`; those whose time is news."""
        source, at = record.observation.page, record.observation.at
        news = []
        for page, told in times.items():
            link = self._links.setdefault((page, source), Link(at))
            link.vanished, link.seen = None, at
            if told is not None and (link.at is None or told > link.at):
                link.at = told
                news.append(page)
        for page in self._linked(source) - times.keys() if record.complete else ():
            link = self._links[page, source]
            link.vanished = at if link.vanished is None else link.vanished
        return sorted(news)

    # ---------------------------------------------------------------------------------- merging

    def _move(self, number: int, place: tuple[str, str], at: int) -> None:
        """Merge a page into the one with this URL, which is added if it is new."""
        page = self._pages[number]
        new = place[0] not in self._ids
        other = self._named(place, at)
        if new:
            other.like(page)
        self._merge(page, other)

    def _unite(self, number: int, url: str) -> None:
        """Merge a page into the one whose URL it calls its own, if they are known to be alike."""
        page, other = self._pages[number], self._pages.get(self._ids.get(url, 0))
        if other is None or page.alias is not None or page.digest is None:
            return
        alike = (page.state.host, page.digest) == (other.state.host, other.digest)
        if alike and other.state.status in ("ok", "not_modified"):
            self._merge(page, other)

    def _merge(self, page: Page, other: Page) -> None:
        old, new = page.state.page, other.state.page
        if page in self._way(new) or page.alias == new:
            return
        before = self._unlisted_ones()
        page.alias = new
        if old in self._found_by:
            self._found_by.setdefault(new, self._found_by[old])
        other.inherit(page)
        for linked in self._linked(old):
            link = self._links.pop((linked, old))
            if linked != new:
                self._links.setdefault((linked, new), link)
        self._touch({old, new} | before ^ self._unlisted_ones())


def _first(scopes: Sequence[Scope], page: Page | None) -> int:
    """The place of the first scope that a page is in; -1 = none, or there is no page."""
    fitting = (k for k, scope in enumerate(scopes) if page and scope.fits(page.target))
    return next(fitting, -1)


def _origin(source: Page) -> int:
    """The page added by hand that leads to what a source names."""
    return source.origin if source.found and source.origin is not None else source.state.page


def _table(rows: Sequence[tuple[PageState, bool, bool]], revision: int) -> PageTable:
    """Columns of pages, each with whether it rests, and whether it was found."""
    pages = [page for page, *_ in rows]
    limits = [np.inf if p.max_interval is None else p.max_interval for p in pages]
    kinds = [KINDS.index(p.kind) if p.kind in KINDS else -1 for p in pages]
    return PageTable(
        ids=np.array([p.page for p in pages], dtype=np.int64),
        host=[p.host for p in pages],
        added=np.array([p.added for p in pages], "M8[us]"),
        last_visit=np.array([p.last_visit for p in pages], "M8[us]"),  # None becomes NaT
        last_answer=np.array([p.last_answer for p in pages], "M8[us]"),
        kind=np.array(kinds, dtype=np.int8),
        demand=np.array([1.0 if p.demand is None else p.demand for p in pages]),
        cost=np.array([p.cost for p in pages]),
        max_interval=np.array(limits),
        idle=np.array([p.idle for p in pages], dtype=np.int64),
        rests=np.array([rests for _, rests, _ in rows], dtype=np.bool_),
        found=np.array([found for *_, found in rows], dtype=np.bool_),
        revision=revision,
    )
