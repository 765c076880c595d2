"""The values of a log as columns: when pages were born, changed and went, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import numpy as np

from salticus.features.events import EventKind, Events, log_ratio, make_events
from salticus.types import Bools, Floats32, Ints
from salticus.types.dates import HOUR_US
from salticus.types.frames import pl
from salticus.types.prices import PRICE

NEVER_GONE = np.iinfo(np.int32).max  # in hours: beyond any log, and sums of it stay exact


class LogResolution(Protocol):
    """What a log says of itself: the grain of its times and of demand, first and last instant."""

    @property
    def resolution(self) -> timedelta | None: ...

    @property
    def demand_bucket(self) -> timedelta | None: ...

    def ends(self) -> tuple[datetime, datetime] | None: ...


class LogTables(Protocol):
    """The tables of a log, as `salticus.exchange.Log` gives them."""

    @property
    def about(self) -> LogResolution: ...

    def path(self, table: str) -> Path: ...

    def has(self, table: str) -> bool: ...

    def columns(self, table: str) -> set[str]: ...

    def rows(self, table: str) -> int: ...

    def scan(self, table: str) -> pl.LazyFrame: ...


@dataclass(frozen=True, slots=True)
class Truths:
    """Over rows of `values`, ordered by page and time: what they told.

    `value` is a code, -1 where the page is away; `changed` tells rows whose value differs from the
    last one before it, `old` is the price then. Over pages: hours of birth (NEVER_GONE = never) and
    of the end.
    """

    page: Ints
    hour: Ints
    value: Ints
    changed: Bools
    price: Floats32
    old: Floats32
    stock: Floats32
    born: Ints
    gone: Ints

    def events(self) -> Events:
        """All that happened, in its hour."""
        c, fresh = self.changed, np.diff(self.page, prepend=-1) != 0
        born = make_events(
            EventKind.BORN, self.hour[fresh], self.page[fresh],
            self.price[fresh], np.full(np.count_nonzero(fresh), np.nan), self.stock[fresh],
        )  # fmt: skip
        changes = make_events(
            EventKind.CHANGE, self.hour[c], self.page[c],
            self.price[c], log_ratio(self.price[c], self.old[c]), self.stock[c],
        )  # fmt: skip
        return born.join(changes).join(self._ends()).ordered()

    def lives(self) -> Events:
        """Births and ends alone, as a feed announces them: it tells no prices."""
        born = np.flatnonzero(self.born < NEVER_GONE)
        return make_events(EventKind.BORN, self.born[born], born).join(self._ends()).ordered()

    def _ends(self) -> Events:
        gone = np.flatnonzero(self.gone < NEVER_GONE)
        return make_events(EventKind.GONE, self.gone[gone], gone)


def truths_of(log: LogTables, pages: pl.DataFrame) -> Truths:
    """The truth of a log: a page is born with its first row, and gone with its last if null."""
    points = log.scan("values").with_columns(pl.col("value").cast(pl.String))
    rows = with_price(rowed(pages, points)).sort("row", "at", maintain_order=True)
    value = pl.col("value")
    before = value.forward_fill().shift().over("row")  # to come back with the old is no change
    table = rows.select(
        "row",
        hour=pl.col("at").dt.epoch("us") // HOUR_US,
        code=(value.rank("dense").cast(pl.Int32) - 1).fill_null(-1),
        changed=(value != before).fill_null(value=False),
        price="price",
        old=pl.col("price").fill_nan(None).forward_fill().shift().over("row").fill_null(np.nan),
        stock="stock",
    ).collect()
    page, hour, code = (table[name].to_numpy().astype(np.int64) for name in ("row", "hour", "code"))
    born, gone = (np.full(len(pages), NEVER_GONE, dtype=np.int64) for _ in range(2))
    first = np.flatnonzero(np.diff(page, prepend=-1))
    last = np.flatnonzero(np.diff(page, append=-1))
    born[page[first]] = hour[first]
    left = last[code[last] < 0]
    gone[page[left]] = hour[left]
    prices = {name: table[name].to_numpy() for name in ("changed", "price", "old", "stock")}
    return Truths(page, hour, code, born=born, gone=gone, **prices)


def rowed(pages: pl.DataFrame, table: pl.LazyFrame) -> pl.LazyFrame:
    """The table with the row of each page; rows of unknown pages are dropped."""
    rows = pages.lazy().select("page_id", row=pl.int_range(pl.len(), dtype=pl.Int32))
    return table.join(rows, on="page_id", maintain_order="left")


def with_price(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Columns `price` (the number at the start of `value`) and `stock` (1, 0); NaN = unknown."""
    text = pl.col("value").cast(pl.String)
    number = text.str.extract(PRICE).cast(pl.Float64).cast(pl.Float32)
    inside = pl.when(text.str.contains("InStock", literal=True)).then(1.0)
    stock = inside.when(text.str.contains("OutOfStock", literal=True)).then(0.0)
    return rows.with_columns(
        price=number.fill_null(np.nan), stock=stock.cast(pl.Float32).fill_null(np.nan)
    )
