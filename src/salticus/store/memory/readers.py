"""What readers did, in memory: the part of a `MemoryStore` that counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.store.base import MOST_CLICKS, MOST_IMPRESSIONS, Counted
from salticus.store.news import by_hour
from salticus.types import Count, Counts, Request

Row = dict[str, Any]


class Readers:
    """Clicks, impressions and requests, numbered from 1 on."""

    def __init__(self) -> None:
        self._counted: dict[int, tuple[int, int, int, int]] = {}
        self._asked: dict[int, Request] = {}
        self._last = 0

    def take(self, counted: Sequence[Count], page_of: Callable[[str], int]) -> Counted:
        together, number = by_hour(counted)
        pages = {url: page_of(url) for url in number}
        sums: dict[tuple[int, int], list[int]] = {}
        for (url, at), more in together.items():
            if (page := pages[url]) >= 0:
                held = sums.setdefault((page, at), [0, 0])
                held[:] = [mine + new for mine, new in zip(held, more, strict=True)]
        added = [self._add(*key, *more) for key, more in sums.items()]
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
            self._last += 1
            self._counted[self._last] = (page, at, *new)
        return new

    def counts(self, after: int, limit: int) -> Counts:
        found = [(number, *row) for number, row in self._counted.items() if number > after][:limit]
        columns = np.array(found, dtype=np.int64).reshape(-1, 5).T
        last = int(columns[0].max(initial=after))
        return Counts(columns[1], columns[2].view("M8[us]"), columns[3], columns[4], last)

    def ask(self, requests: Sequence[Request]) -> None:
        self._asked = {request.number: request for request in requests} | self._asked

    def asked(self, after: int) -> list[Request]:
        return [self._asked[number] for number in sorted(self._asked) if number > after]

    def keep(self, wanted: Callable[[int, int], bool]) -> None:
        """Forget what is not wanted of a page and time."""
        self._counted = {n: row for n, row in self._counted.items() if wanted(row[0], row[1])}
        self._asked = {n: r for n, r in self._asked.items() if wanted(r.page, r.at)}

    def demand_rows(self) -> list[Row]:
        sums: dict[tuple[int, int], list[int]] = {}
        for page, at, *counted in self._counted.values():
            held = sums.setdefault((at, page), [0, 0])
            held[:] = [mine + more for mine, more in zip(held, counted, strict=True)]
        return [
            {"page_id": page, "at": at, "clicks": clicks, "impressions": impressions}
            for (at, page), (clicks, impressions) in sorted(sums.items())
        ]

    def request_rows(self) -> list[Row]:
        rows = [msgspec.structs.asdict(request) for request in self.asked(0)]
        kept = [{k: v for k, v in row.items() if k not in ("number", "page")} for row in rows]
        pages = [row["page"] for row in rows]
        named = [{"page_id": page, **row} for page, row in zip(pages, kept, strict=True)]
        return sorted(named, key=lambda row: row["at"])
