"""A log as the calibration reads it: its pages, what was there to see, what its crawler saw.

A time belongs to the whole UTC hour in which it lies. What happens in the hour of a prediction
is not known to it, so an event at the time of the prediction never is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.features.truths import NEVER_GONE, rowed
from salticus.types import Bools, Ints
from salticus.types.dates import HOUR_US

UNIFORM, CLICK = "uniform", "click"


@dataclass(frozen=True, slots=True)
class ChangeHistory:
    """Pages and their changes; times in whole hours since 1970, UTC.

    Over pages: `born` and `gone` (half-open; NEVER_GONE while it lives) and `group`, the number of
    the category (pages without one share the group 0). Over changes, ordered by page and hour:
    `page`, the row of the page, and `hour`. `start` is the first hour of the log.
    """

    start: int
    born: Ints
    gone: Ints
    group: Ints
    page: Ints
    hour: Ints

    def __len__(self) -> int:
        return len(self.born)


@dataclass(frozen=True, slots=True)
class MarketHistory:
    """Pages (rows as in `pages`), the full and the partial history, and the hour after the last."""

    log: Log
    pages: pl.DataFrame
    full: ChangeHistory
    partial: ChangeHistory
    end: int

    @property
    def start(self) -> int:
        return self.full.start

    def stratum(self, name: str) -> Bools:
        """Which pages were sampled so."""
        return (self.pages["stratum"] == name).fill_null(False).to_numpy()


def read_market(log: Log) -> MarketHistory:
    """Read what the statistics need; InputError names what is absent."""
    columns = ("page_id", "category", "stratum")
    known = log.scan("pages", *columns).select(columns).collect()
    full = full_history(known, log.scan("values"))
    partial = partial_history(known, log.scan("visits", "changed"), full)
    end = last_hour(log, full)
    return MarketHistory(log, known, until(full, end), until(partial, end), end)


def last_hour(log: Log, history: ChangeHistory) -> int:
    """The hour after the log's last, by its `span` or else by its last change."""
    try:
        ends = log.about.ends()
    except ValueError as error:
        raise InputError(f"{log.folder / 'log.json'}: `span`: {error}") from None
    if ends is None:
        return int(history.hour.max(initial=history.start)) + 1
    return -int(-(ends[1] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(hours=1))


def until(history: ChangeHistory, end: int) -> ChangeHistory:
    """The history without what comes at the end or after it."""
    early, gone = history.hour < end, np.minimum(history.gone, end)
    return replace(history, gone=gone, page=history.page[early], hour=history.hour[early])


def full_history(pages: pl.DataFrame, values: pl.LazyFrame) -> ChangeHistory:
    """The history that the truth tells: every row with a value other than the one before it.

    `pages` has `page_id` and perhaps `category`. A page is born with its first row and gone with
    its last if that is null; while it is away in between, it counts as there. Going and coming
    back with the old value is no change.
    """
    rows = rowed(pages, values).sort("row", "at").select("row", "at", "value").collect()
    before = pl.col("value").forward_fill().shift().over("row")
    changed = pl.col("value").is_not_null() & before.is_not_null() & (pl.col("value") != before)
    ends = rows.group_by("row", maintain_order=True).agg(
        pl.col("at").first().alias("born"),
        pl.when(pl.col("value").last().is_null()).then(pl.col("at").last()).alias("gone"),
    )
    start = int(_hours(rows["at"]).min()) if len(rows) else 0
    born = np.full(len(pages), start)
    gone = np.full(len(pages), NEVER_GONE, dtype=np.int64)
    born[ends["row"].to_numpy()] = _hours(ends["born"])
    left = ends.filter(pl.col("gone").is_not_null())
    gone[left["row"].to_numpy()] = _hours(left["gone"])
    return _history(pages, rows.filter(changed), start, born=born, gone=gone)


def partial_history(
    pages: pl.DataFrame, visits: pl.LazyFrame, like: ChangeHistory
) -> ChangeHistory:
    """The history that a crawler saw: its visits with `changed` true, at the time of the visit.

    When pages are born and gone it knows as `like` does: a feed announces them.
    """
    changes = rowed(pages, visits).filter(pl.col("changed")).sort("row", "at").collect()
    return _history(pages, changes, like.start, born=like.born, gone=like.gone)


def _history(
    pages: pl.DataFrame, changes: pl.DataFrame, start: int, *, born: Ints, gone: Ints
) -> ChangeHistory:
    page, hour = changes["row"].to_numpy().astype(np.int64), _hours(changes["at"])
    there = (hour >= born[page]) & (hour <= gone[page])
    return ChangeHistory(start, born, gone, group_numbers(pages), page[there], hour[there])


def group_numbers(pages: pl.DataFrame) -> Ints:
    """The number of each page's category, in the order of their names; none is 0.

    >>> group_numbers(pl.DataFrame({"page_id": [1, 2, 3, 4], "category": ["b", None, "a", "b"]}))
    array([2, 0, 1, 2])
    """
    if "category" not in pages.columns:
        return np.zeros(len(pages), dtype=np.int64)
    return pages["category"].rank("dense").fill_null(0).to_numpy().astype(np.int64)


def _hours(at: pl.Series) -> Ints:
    """Whole hours since 1970 of times in µs."""
    return at.dt.epoch("us").to_numpy().astype(np.int64) // HOUR_US
