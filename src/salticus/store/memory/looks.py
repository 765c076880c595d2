"""What visits to sources saw, in a `MemoryStore`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from salticus.store.memory.pages import PageBook
from salticus.store.nouns import Query
from salticus.types import Find, FoundPages, Ints, Looks, Record, Times

_NEVER = np.iinfo(np.int64).min


class LookBook(PageBook):
    """Pages, and what was seen of links to them at each look at a source."""

    def __init__(self) -> None:
        super().__init__()
        self._look_rows: dict[int, tuple[int, ...]] = {}
        self._find_rows: dict[int, tuple[int, ...]] = {}
        self._numbers = {"looks": 0, "finds": 0}

    async def looks(self, after: int = 0, *, limit: int = 100_000) -> Looks:
        columns, last = _after(self._look_rows, 7, after, limit)
        source, at, since, shown, new, kept, gone = columns
        times = at.view("M8[us]"), since.view("M8[us]")
        return Looks(source, *times, shown, new, kept, gone, last)

    async def finds(self, after: int = 0, *, limit: int = 100_000) -> FoundPages:
        (page, source, at, since), last = _after(self._find_rows, 4, after, limit)
        return FoundPages(page, source, at.view("M8[us]"), since.view("M8[us]"), last=last)

    async def standing(self, pages: Ints) -> Times:
        seen = [
            max([link.seen for (p, _), link in self._links.items() if p == page], default=_NEVER)
            for page in pages.tolist()
        ]
        return np.array(seen, dtype=np.int64).view("M8[us]")

    async def news(self, after: int, *, limit: int = 1000) -> list[Find]:
        later = [(seq, find) for seq, find in self._find_rows.items() if seq > after][:limit]
        return [self._find(seq, *find) for seq, find in later]

    def _find(self, seq: int, number: int, source: int, at: int, since: int) -> Find:
        page, shown = self._pages[number].state, self._pages[source].state.url
        tags = tuple(page.tags)
        return Find(seq, at, since, number, page.url, tags, shown, page.last_answer)

    async def last_find(self) -> int:
        return max(self._find_rows, default=0)

    def _looked_at(self, source: int) -> bool:
        return any(look[0] == source for look in self._look_rows.values())

    def _look(self, record: Record, known: int, pages: Collection[int]) -> None:
        """A source shows these pages, of which those with a number above `known` are new."""
        source, at = record.observation.page, record.observation.at
        if self._pages[source].state.kind != "source":
            return
        since = max(
            [look[1] for look in self._look_rows.values() if look[0] == source], default=_NEVER
        )
        there = {p for (p, s), link in self._links.items() if s == source and link.seen == since}
        there = there if since != _NEVER else set()
        new = sorted(page for page in pages if page > known)
        kept = len(there.intersection(pages))
        self._number("looks", (source, at, since, len(pages), len(new), kept, len(there) - kept))
        for page in new if since != _NEVER else ():
            self._number("finds", (page, source, at, since))

    def _look_again(self, record: Record) -> None:
        """A source is as it was."""
        source, at = record.observation.page, record.observation.at
        before = [look for look in self._look_rows.values() if look[0] == source]
        if before:
            _, since, _, shown, *_ = before[-1]
            self._number("looks", (source, at, since, shown, 0, shown, 0))
            for (_, other), link in self._links.items():
                if other == source and link.seen == since:
                    link.seen = at

    def _number(self, table: str, row: tuple[int, ...]) -> None:
        self._numbers[table] += 1
        (self._look_rows if table == "looks" else self._find_rows)[self._numbers[table]] = row

    async def forget(self, query: Query) -> int:
        gone = await super().forget(query)
        left = self._pages.keys()
        self._look_rows = {seq: row for seq, row in self._look_rows.items() if row[0] in left}
        self._find_rows = {seq: row for seq, row in self._find_rows.items() if left >= {*row[:2]}}
        return gone

    def _prune_looks(self, before: int) -> None:
        """Old looks go, but not the last one at a source; and old finds."""
        last = {row[0]: seq for seq, row in self._look_rows.items()}
        self._look_rows = {
            seq: row
            for seq, row in self._look_rows.items()
            if row[1] >= before or last[row[0]] == seq
        }
        self._find_rows = {seq: row for seq, row in self._find_rows.items() if row[2] >= before}


def _after(
    table: dict[int, tuple[int, ...]], columns: int, after: int, limit: int
) -> tuple[list[Ints], int]:
    """The columns of rows with a number above `after`, and the last number."""
    later = [seq for seq in table if seq > after][:limit]
    rows = np.array([table[seq] for seq in later], dtype=np.int64).reshape(-1, columns)
    return [np.ascontiguousarray(column) for column in rows.T], max(later, default=after)
