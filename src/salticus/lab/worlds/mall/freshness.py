"""Is the crawler's copy true? What its store held when, judged by the mall's truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from salticus.lab.worlds.mall.stock import Stock
from salticus.store.base import VisitStore
from salticus.types import Bools, Ints, Times, instant

_NOTHING = -1
_GONE = ("gone", "soft_404")
_ANSWERED = ("ok", "not_modified")


class AnsweredVisits(NamedTuple):
    """Answered visits as columns: the row of the page, when, and the value learnt (None = gone)."""

    rows: Ints
    at: Times
    values: Sequence[str | None]


def freshness_over(stock: Stock, visits: AnsweredVisits, start: datetime, end: datetime) -> float:
    """Mean over pages and over the time from `start` to `end` of [copy == truth], exactly.

    The copy of a page is the value of its latest visit, none before the first; it equals the truth
    of a page that does not exist. Visits before `start` count; their order does not matter.
    """
    if end <= start:
        raise ValueError(f"there is no time from {start} to {end}")
    n, low, high = len(stock), instant(start), instant(end)
    order, rows, at, fresh = _compared(stock, visits, np.arange(n), np.full(n, low))
    begins = np.clip(at, low, high)
    ends = np.append(begins[1:], high)
    ends[np.append(rows[1:] != rows[:-1], True)] = high
    return float((ends - begins)[fresh].sum() / (n * (high - low))) if n else 1.0


def fresh_at(stock: Stock, visits: AnsweredVisits, rows: Ints, at: Times) -> Bools:
    """Whether the copy of each of the `rows` equals the truth at the time `at`.

    What changes at that very time has changed; a page without a copy is not fresh, unless it does
    not exist.
    """
    order, _, _, fresh = _compared(stock, visits, rows, at)
    return fresh[np.argsort(order)][len(order) - len(rows) :]


def _compared(
    stock: Stock, visits: AnsweredVisits, rows: Ints, at: Times
) -> tuple[Ints, Ints, Times, Bools]:
    """All changes and visits and the pages asked for, by page and time: their places before they
    were sorted, page, time, and whether copy and truth are equal from then on."""
    points = np.repeat(np.arange(len(stock)), np.diff(stock.offsets))
    every = np.concatenate([points, visits.rows, rows])
    times = np.concatenate([stock.times, visits.at, at])
    codes = np.concatenate([_codes([*stock.values, *visits.values]), np.full(len(rows), _NOTHING)])
    kind = np.repeat([0, 1, 2], [len(points), len(visits.rows), len(rows)])
    order = np.lexsort((kind, times, every))
    every, codes, kind = every[order], codes[order], kind[order]
    fresh = _latest(codes, every, kind == 0) == _latest(codes, every, kind == 1)
    return order, every, times[order], fresh


def _codes(values: Sequence[str | None]) -> Ints:
    """A number for each text, `_NOTHING` for None."""
    known: dict[str | None, int] = {None: _NOTHING}
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def _latest(codes: Ints, rows: Ints, chosen: Bools) -> Ints:
    """At each event, the code of the latest chosen event of the same page; `_NOTHING` if none."""
    order = np.arange(len(rows))
    first = np.maximum.accumulate(np.where(np.diff(rows, prepend=-1) > 0, order, 0))
    latest = np.maximum.accumulate(np.where(chosen, order, -1))
    return np.where(latest >= first, codes[latest], _NOTHING)


@dataclass(frozen=True)
class CopyHistory:
    """All visits in a store: row of the page in the mall, when, how each ended, whether it found a
    change, and the value held after it (None before the first)."""

    rows: Ints
    at: Times
    status: list[str]
    changed: list[bool | None]
    held: list[str | None]

    def answered(self) -> AnsweredVisits:
        """What was known after each answer: a value, or that the page has gone."""
        told = [k for k, status in enumerate(self.status) if status in _GONE + _ANSWERED]
        values = [None if self.status[k] in _GONE else self.held[k] for k in told]
        return AnsweredVisits(self.rows[told], self.at[told], values)


def read_copies(store: VisitStore, urls: list[str]) -> CopyHistory:
    """The history of the store of a crawl of the mall, whose pages have these `urls`, by row."""
    row_of_url = {url: row for row, url in enumerate(urls)}
    row_of = {page["page_id"]: row_of_url[page["url"]] for page in store.scan("pages")}
    values, visits = list(store.scan("values")), list(store.scan("visits"))
    rows = np.array([row_of[told["page_id"]] for told in values + visits], dtype=np.int64)
    at = np.array([told["at"] for told in values + visits], dtype=np.int64).view("M8[us]")
    visited = np.arange(len(rows)) >= len(values)
    order = np.lexsort((visited, at, rows))
    held = np.empty(len(rows), dtype=np.int64)
    held[order] = _latest(order, rows[order], ~visited[order])
    return CopyHistory(
        rows=rows[visited],
        at=at[visited],
        status=[visit["status"] for visit in visits],
        changed=[visit["changed"] for visit in visits],
        held=[None if k == _NOTHING else values[k]["value"] for k in held[visited]],
    )
