"""The pages of a `MemoryStore`: added, found, edited, merged, charged for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from salticus.config import Caps, Scope
from salticus.errors import UnknownPage
from salticus.store.base import SORTS, STATES, Edit, Hit, PageState, PageTable, Query, known
from salticus.store.caps import Admission, Held, Known
from salticus.store.memory.links import Links
from salticus.store.memory.page import Page, fits, hit_of
from salticus.store.memory.rows import table_of
from salticus.store.news import Named
from salticus.types import Alert, Ints, NewPage, Record, Target
from salticus.urls import canonical


class PageBook:
    """Pages by number, with a revision that grows with every edit."""

    def __init__(self) -> None:
        self._pages: dict[int, Page] = {}
        self._ids: dict[str, int] = {}
        self._last = 0
        self._forgotten: dict[int, tuple[int, str]] = {}
        self._links = Links()
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
            page = self._pages[self._last] = Page.new(self._last, place, at)
            page.found, page.revision = found, self._revision
        return self._pages[self._ids[place[0]]]

    async def table(self, after: int = -1) -> PageTable:
        edited = [page for page in self._pages.values() if page.revision > after]
        rows = [(page.state, self._rests(page), page.found) for page in edited]
        for number, (revision, host) in self._forgotten.items():
            if revision > after >= 0:
                rows.append((Page.new(number, ("", host), 0).state, True, False))
        return table_of(sorted(rows, key=lambda row: row[0].page), self._revision)

    def _rests(self, page: Page) -> bool:
        return page.state.paused or page.alias is not None or self._unlisted(page)

    def _unlisted(self, page: Page) -> bool:
        return page.found and self._links.ended(page.state.page)

    async def targets(self, pages: Ints) -> list[Target]:
        return [self._pages[page].target for page in pages.tolist() if page in self._pages]

    async def page(self, url: str) -> PageState:
        name = canonical(url)[0]
        if name not in self._ids:
            raise UnknownPage(name)
        return self._shown(self._pages[self._ids[name]])

    def _shown(self, page: Page) -> PageState:
        """The page as people see it."""
        sources = (self._pages[source].state.url for source in self._links.sources(page.state.page))
        return msgspec.structs.replace(
            page.state,
            value=page.value and page.value.text,
            fields=page.value.fields if page.value else {},
            unlisted=self._unlisted(page),
            moved=None if page.alias is None else self._way(page.alias)[-1].state.url,
            sources=sorted(sources),
        )

    def _way(self, number: int) -> list[Page]:
        """A page, the one that it has become, and so on to the last."""
        page = self._pages[number]
        return [page] if page.alias is None else [page, *self._way(page.alias)]

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
        shown = [self._shown(page) for page in self._pages.values()]
        found = [hit for page in shown if (hit := hit_of(page, words)) is not None]
        return found[: max(limit, 0)]

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
        self._links.forget(chosen)
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
        for page in self._pages.values():
            fitting = (cost for scope, cost in costs if scope.fits(page.target))
            cost = next(fitting, 1.0) if page.own_cost is None else page.own_cost
            if cost != page.state.cost:
                page.state.cost, page.revision = cost, self._revision

    async def fitting(self, pages: Ints, scopes: Sequence[Scope]) -> Ints:
        known = (self._pages.get(number) for number in pages.tolist())
        places = [
            next((k for k, scope in enumerate(scopes) if page and scope.fits(page.target)), -1)
            for page in known
        ]
        return np.array(places, dtype=np.int64)

    def _unlisted_ones(self) -> set[int]:
        return {number for number, page in self._pages.items() if self._unlisted(page)}

    def _touch(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._pages:
                self._pages[number].revision = self._revision

    # -------------------------------------------------------------------------------- by visits

    def _admitted(
        self, record: Record, entries: Sequence[Named]
    ) -> tuple[list[Named], Alert | None]:
        """The entries that the caps let in, and what is to be told of it."""
        source, at = self._pages[record.observation.page], record.observation.at
        known = [self._known(entry, source.state.page) for entry in entries]
        found = [page for page in self._pages.values() if page.found]
        held = Held(
            source_links=sum(each.linked for each in known)
            if record.complete
            else self._links.count([source.state.page], now=True),
            host_links=self._links.count(
                number for number, p in self._pages.items() if p.state.host == source.state.host
            ),
            source_pages=sum(page.origin == _origin(source) for page in found),
            host_pages=Counter(page.state.host for page in found),
        )
        admission = Admission(self.caps, held)
        pairs = zip(entries, known, strict=True)
        admitted = [entry for entry, each in pairs if admission.admits(entry.host, each)]
        source.left_out, host = admission.left_out_, source.state.host
        if source.left_out:
            return admitted, admission.alert(host, source.state.url, at)
        if any(page.left_out for page in self._pages.values() if page.state.host == host):
            return admitted, None
        return admitted, Alert(host, "flood", at, over=True)

    def _known(self, entry: Named, source: int) -> Known:
        page = self._ids.get(entry.url)
        sources = [] if page is None else self._links.sources(page)
        return Known(page is not None, source in sources, len(sources))

    def _link(self, record: Record, entries: Sequence[Named]) -> list[int]:
        """Take up what a source names; the pages whose time is news."""
        source, before = self._pages[record.observation.page], self._unlisted_ones()
        times: dict[int, int | None] = {}
        for entry in entries:
            if entry.url not in self._ids:
                page = self._named((entry.url, entry.host), record.observation.at, found=True)
                page.state.kind, page.state.tags = entry.kind, source.state.tags[:]
                page.origin = _origin(source)
            if entry.url != source.state.url:
                times[self._ids[entry.url]] = entry.at
        news = self._links.read(record, times)
        self._touch(before ^ self._unlisted_ones())
        return news

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
        number = other.state.page
        if page in self._way(number) or page.alias == number:
            return
        before = self._unlisted_ones()
        page.alias = number
        other.inherit(page)
        self._links.hand_over(page.state.page, number)
        self._touch({page.state.page, number} | before ^ self._unlisted_ones())


def _origin(source: Page) -> int:
    """The page added by hand that leads to what a source names."""
    return source.origin if source.found and source.origin is not None else source.state.page
