"""What a store held when, with pages as rows of the mall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.lab.worlds.mall.audit import AnsweredVisits
from salticus.store.base import VisitStore
from salticus.types import Ints, Times

_GONE = ("gone", "soft_404")
_ANSWERED = ("ok", "not_modified")


@dataclass(frozen=True)
class CopyHistory:
    """What the store held: one row each time the copy of a page changed; and all visits."""

    rows: Ints
    at: Times
    values: list[str]
    visited_rows: Ints
    visited_at: Times
    visited_changed: list[bool | None]
    visited_status: list[str]

    def held(self) -> AnsweredVisits:
        """What was known after each visit: a value, or that the page has gone."""
        known: dict[int, list[int]] = {}
        for place, row in enumerate(self.rows.tolist()):
            known.setdefault(row, []).append(place)
        told = [k for k, status in enumerate(self.visited_status) if status in _GONE + _ANSWERED]
        values: list[str | None] = []
        for k in told:
            mine = known.get(int(self.visited_rows[k]), [])
            latest = int(np.searchsorted(self.at[mine], self.visited_at[k], side="right")) - 1
            gone = self.visited_status[k] in _GONE or latest < 0
            values.append(None if gone else self.values[mine[latest]])
        return AnsweredVisits(self.visited_rows[told], self.visited_at[told], values)


def read_copies(store: VisitStore, urls: list[str]) -> CopyHistory:
    """The history of the store, with pages as rows of the mall."""
    row_of_url = {url: row for row, url in enumerate(urls)}
    row_of = {page["page_id"]: row_of_url[page["url"]] for page in store.scan("pages")}
    values, visits = list(store.scan("values")), list(store.scan("visits"))
    return CopyHistory(
        rows=np.array([row_of[v["page_id"]] for v in values], dtype=np.int64),
        at=np.array([v["at"] for v in values], dtype=np.int64).view("M8[us]"),
        values=[v["value"] for v in values],
        visited_rows=np.array([row_of[v["page_id"]] for v in visits], dtype=np.int64),
        visited_at=np.array([v["at"] for v in visits], dtype=np.int64).view("M8[us]"),
        visited_changed=[v["changed"] for v in visits],
        visited_status=[v["status"] for v in visits],
    )


def busiest_day(times: Times) -> int:
    """The most visits in any 24 hours."""
    times = np.sort(times)
    before = np.searchsorted(times, times - np.timedelta64(1, "D"), "right")
    return int((np.arange(len(times)) - before).max(initial=-1)) + 1
