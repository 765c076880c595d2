"""What readers did, in memory: the part of a `MemoryStore` that counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.store.counting import by_hour
from salticus.types import Count, Counts, Request

Row = dict[str, Any]


class Readers:
    """Clicks, impressions and requests, numbered from 1 on."""

    def __init__(self) -> None:
        self._counted: dict[int, tuple[int, int, int, int]] = {}
        self._asked: dict[int, Request] = {}
        self._last = 0

    def count(self, counted: Sequence[Count], page_of: Callable[[str], int]) -> int:
        together, number = by_hour(counted)
        pages = {url: page_of(url) for url in number}
        for (url, at), (clicks, impressions) in together.items():
            if (page := pages[url]) >= 0:
                self._last += 1
                self._counted[self._last] = (page, at, clicks, impressions)
        return sum(rows for url, rows in number.items() if pages[url] >= 0)

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
