"""What comes in without a visit, in memory: clicks, requests, signals, merchants' feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from salticus.store.memory.looks import LookBook
from salticus.store.memory.page import row_of
from salticus.store.news import by_hour, by_kind, place_of
from salticus.store.nouns import MOST_CLICKS, MOST_IMPRESSIONS
from salticus.types import Count, Counted, Counts, Ints, Mark, Request, Signal, Told
from salticus.urls import canonical

_Sums = dict[tuple[int, int], tuple[int, int]]  # (page, hour) or (hour, page) -> what was counted


class ReaderBook(LookBook):
    """Clicks and impressions, numbered from 1 on, requests, and signals."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[int, tuple[int, int, int, int]] = {}
        self._last_count = 0
        self._asked: dict[int, Request] = {}
        self._marks: dict[str, Mark] = {}
        self._signals: list[Signal] = []

    async def ids(self, urls: Sequence[str]) -> Ints:
        places = [place_of(url) for url in urls]
        known = [-1 if place is None else self._became(place[0]) for place in places]
        return np.array(known, dtype=np.int64)

    def _became(self, url: str) -> int:
        """The page with this URL, or the one that it has become; -1 if it is not known."""
        return self._way(self._ids[url])[-1].state.page if url in self._ids else -1

    async def count(self, rows: Sequence[Count]) -> int:
        return (await self.take(rows)).rows

    async def take(self, rows: Sequence[Count], mark: Mark | None = None) -> Counted:
        together, number = by_hour(rows)
        pages = {url: self._became(url) for url in number}
        known = (((pages[url], at), more) for (url, at), more in together.items())
        sums = _summed((key, more) for key, more in known if key[0] >= 0)
        added = [self._add(*key, *more) for key, more in sums.items()]
        if mark is not None and any(map(any, added)):
            self._marks[mark.digest] = mark
        return Counted(
            rows=sum(rows for url, rows in number.items() if pages[url] >= 0),
            clicks=sum(clicks for clicks, _ in added),
            impressions=sum(impressions for _, impressions in added),
            unknown=tuple(url for url, page in pages.items() if page < 0),
        )

    def _add(self, page: int, at: int, clicks: int, impressions: int) -> tuple[int, int]:
        """Add counts up to the cap; what was added."""
        held = [row[2:] for row in self._counted.values() if row[:2] == (page, at)]
        room = MOST_CLICKS - sum(c for c, _ in held), MOST_IMPRESSIONS - sum(i for _, i in held)
        new = min(clicks, room[0]), min(impressions, room[1])
        if any(new):
            self._last_count += 1
            self._counted[self._last_count] = (page, at, *new)
        return new

    async def marks(self) -> list[Mark]:
        return sorted(self._marks.values(), key=lambda mark: (mark.place, mark.digest))

    async def counts(self, after: int = 0, *, limit: int = 250_000) -> Counts:
        found = [(number, *row) for number, row in self._counted.items() if number > after][:limit]
        columns = np.array(found, dtype=np.int64).reshape(-1, 5).T
        last = int(columns[0].max(initial=after))
        return Counts(columns[1], columns[2].view("M8[us]"), columns[3], columns[4], last)

    def past_counts(self, until: int) -> Iterator[Counts]:
        rows = sorted(((row[1], n, row) for n, row in self._counted.items() if n <= until))
        if rows:
            page, at, clicks, shown = np.array([row for _, _, row in rows], dtype=np.int64).T
            last = max(number for _, number, _ in rows)
            yield Counts(page, at.copy().view("M8[us]"), clicks, shown, last)

    async def ask(self, requests: Sequence[Request]) -> None:
        self._asked = {request.number: request for request in requests} | self._asked

    async def asked(self, after: int = 0) -> list[Request]:
        return [self._asked[number] for number in sorted(self._asked) if number > after]

    async def notice(self, signals: Sequence[Signal]) -> None:
        self._signals += signals

    async def told(self, rows: Sequence[Told]) -> int:
        groups = by_kind(rows)
        self._revision += 1
        return sum(self._tell(row, kind) for kind, group in groups for row in group)

    def _tell(self, row: Told, kind: str) -> bool:
        """Take up what a feed states, unless it stated so before."""
        new = row.url not in self._ids
        page = self._named(canonical(row.url), row.at).state
        page.kind = row.value.kind if new else page.kind
        past = [s for s in self._signals if (s.page, s.kind) == (page.page, kind)]
        if past and sorted(past, key=lambda s: s.at)[-1].value == row.value.text:
            return False
        self._signals.append(Signal(page.page, row.at, kind, row.value.text))
        newer = page.last_answer is None or row.at > page.last_answer
        if newer and (page.told is None or row.at >= page.told.at):
            page.told = row
        return True

    def _keep(self, wanted: Callable[[int, int], bool]) -> None:
        """Forget what is not wanted of a page and time."""
        self._counted = {n: row for n, row in self._counted.items() if wanted(row[0], row[1])}
        self._asked = {n: r for n, r in self._asked.items() if wanted(r.page, r.at)}
        self._signals = [s for s in self._signals if wanted(s.page, s.at)]

    def _signal_rows(self) -> list[dict[str, Any]]:
        ordered = sorted(self._signals, key=lambda signal: signal.at)
        return [row_of("at kind value", signal) for signal in ordered]

    def _demand_rows(self) -> list[dict[str, Any]]:
        sums = _summed(((at, page), more) for page, at, *more in self._counted.values())
        return [
            {"page_id": page, "at": at, "clicks": clicks, "impressions": impressions}
            for (at, page), (clicks, impressions) in sorted(sums.items())
        ]

    def _request_rows(self) -> list[dict[str, Any]]:
        ordered = sorted(self._asked.values(), key=lambda request: (request.at, request.number))
        return [row_of("at score propensity sent visit", request) for request in ordered]


def _summed(rows: Iterable[tuple[tuple[int, int], Sequence[int]]]) -> _Sums:
    sums: _Sums = {}
    for key, (clicks, impressions) in rows:
        held = sums.get(key, (0, 0))
        sums[key] = held[0] + clicks, held[1] + impressions
    return sums
