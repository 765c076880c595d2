"""What the log's own crawler saw: the events of its answered visits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from salticus.features.events import EventKind, Events, among, by_days, make_events
from salticus.features.truths import LogTables, log_ratio, rowed, with_price
from salticus.types import ANSWERED, Bools, Columns, Floats32, Ints
from salticus.types.dates import DAY_US, HOUR_US

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

_CHUNK = 4_000_000  # visits that are held at a time
NEVER_US = np.iinfo(np.int64).min
_T = TypeVar("_T", Ints, Floats32)


def visited(log: LogTables, pages: pl.DataFrame, lives: Events | None) -> Iterator[Events]:
    """Events in order, by whole UTC days.

    `lives` are births and ends that were announced; if None, a page is born with its first answer.
    """
    crawler = Crawler(len(pages), announced=lives is not None)
    found = (crawler.learn(_columns(visits)).ordered() for visits in _spans(log, pages))
    days = (day for events in found for day in by_days(events))
    return among(days, Events.none() if lives is None else lives)


def _spans(log: LogTables, pages: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The answered visits in stretches of whole days, some million at a time."""
    import polars as pl

    at = pl.col("at").dt.epoch("us")
    low, high = log.scan("visits").select(low=at.min(), high=at.max()).collect().row(0)
    if low is None:
        return
    first, days = low // DAY_US, high // DAY_US - low // DAY_US + 1
    parts = min(days, 1 + log.rows("visits") // _CHUNK)
    for part in range(parts):
        start, end = (first + days * k // parts for k in (part, part + 1))
        inside = at.is_between(start * DAY_US, end * DAY_US, closed="left")
        yield _answers(log, pages, inside)


def _answers(log: LogTables, pages: pl.DataFrame, inside: pl.Expr) -> pl.DataFrame:
    """Answered visits, by page and time: row, at (µs), changed, price, stock."""
    import polars as pl

    def told(name: str, kind: type[pl.DataType]) -> pl.Expr:
        return pl.col(name) if name in log.columns("visits") else pl.lit(None, kind)

    status = told("status", pl.String)
    answered = status.is_null() | status.is_in([each.label for each in ANSWERED])
    visits = rowed(pages, log.scan("visits").filter(inside & answered)).select(
        "row",
        pl.col("at").dt.epoch("us"),
        changed=told("changed", pl.Boolean).fill_null(value=False),
        value=told("value", pl.String),
    )
    return with_price(visits).drop("value").sort("row", "at", maintain_order=True).collect()


@dataclass(frozen=True, slots=True)
class Answered(Columns):
    """Answered visits by page and time: the page's row, µs, whether a change was found, what the
    page cost and whether it was in stock (1, 0; NaN = unknown)."""

    row: Ints
    at: Ints
    changed: Bools
    price: Floats32
    stock: Floats32


def _columns(visits: pl.DataFrame) -> Answered:
    row, *rest = (visits[name].to_numpy() for name in ("row", "at", "changed", "price", "stock"))
    return Answered(row.astype(np.int64), *rest)


class Crawler:
    """Remembers when each page last answered and what it cost, from visit to visit."""

    def __init__(self, pages: int, *, announced: bool) -> None:
        self.announced = announced
        self.answer = np.full(pages, NEVER_US)
        self.price = np.full(pages, np.nan, dtype=np.float32)

    def grow(self, more: int) -> None:
        """So many pages more, of which nothing is known yet."""
        self.answer = np.append(self.answer, np.full(more, NEVER_US))
        self.price = np.append(self.price, np.full(more, np.nan, dtype=np.float32))

    def learn(self, visits: Answered) -> Events:
        """The events of visits that lie after all those before, ordered by page and time."""
        row, at, price, stock = visits.row, visits.at, visits.price, visits.stock
        hour = at // HOUR_US
        since = _before(row, at, self.answer)
        first = since == NEVER_US
        gap = (at - np.where(first, at, since)) / HOUR_US
        gap[first] = np.nan
        old = _before(row, _filled(row, price, self.price), self.price)
        c = visits.changed
        events = make_events(EventKind.VISIT, hour, row, gap.astype(np.float32), price, stock)
        moved = log_ratio(price[c], old[c])
        changes = make_events(EventKind.CHANGE, hour[c], row[c], price[c], moved, stock[c])
        if self.announced:
            return changes.join(events)
        return make_events(EventKind.BORN, hour[first], row[first]).join(changes).join(events)


def _before(row: Ints, column: _T, last: _T) -> _T:
    """The cell of the visit before of the same page, or `last` of it; `last` moves on."""
    before = np.empty_like(column)
    before[1:] = column[:-1]
    fresh = np.diff(row, prepend=-1) != 0
    before[fresh] = last[row[fresh]]
    ends = np.flatnonzero(np.diff(row, append=-1))
    last[row[ends]] = column[ends]
    return before


def _filled(row: Ints, column: Floats32, last: Floats32) -> Floats32:
    """The column with unknown cells filled by the page's known cell before, or by `last`."""
    at = np.maximum.accumulate(np.where(np.isnan(column), -1, np.arange(len(column))))
    known = (at >= 0) & (row[np.maximum(at, 0)] == row)
    return np.where(known, column[np.maximum(at, 0)], last[row])
