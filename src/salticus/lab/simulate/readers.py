"""Who reads which page, and how often: from the log, or drawn."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import numpy as np
import polars as pl

from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, times_of
from salticus.lab.worlds.replay import DemandSource
from salticus.types import DAY, Floats, Instant, Ints, Tick, Times, days_between, instant
from salticus.types.coins import coins

_TRAILING = 30  # days of clicks that a crawler knows its demand by (Han 2020, §5.2.2)


class Readership(DemandSource, Protocol):
    """How much each page is read: what is known of it beforehand, and what came true."""

    synthetic: bool

    def weights(self) -> Floats | None:
        """Clicks a day of every page if they never change; None if they do."""

    def clicks(self, tick: Tick) -> tuple[Ints, Floats]:
        """The rows clicked in a tick, and how often."""

    def between(self, rows: Ints, start: Times, end: Times) -> Floats:
        """Clicks on each of the rows from its `start` to its `end`."""

    def mean(self, start: datetime, end: datetime) -> tuple[Floats, Floats]:
        """Clicks and impressions a day of every page between two times, as far as it is there."""

    def counts(self, tick: Tick) -> tuple[Floats, Floats]:
        """Clicks and impressions of every page that were counted in a stretch of time."""


class Drawn:
    """Demand that never changes and is known exactly: weights that some law drew.

    >>> start = np.array([np.datetime64("2026-01-01", "us")])
    >>> Drawn(np.array([2.0, 1.0])).between(np.array([0]), start, start + DAY)
    array([2.])
    """

    synthetic = True

    def __init__(self, weights: Floats) -> None:
        self._weights = weights

    def known(self, now: datetime, pages: int) -> tuple[Floats, Floats]:
        return self._weights[:pages], self._weights[:pages]

    def weights(self) -> Floats | None:
        return self._weights

    def clicks(self, tick: Tick) -> tuple[Ints, Floats]:
        return np.arange(len(self._weights)), self._weights * tick.days

    def mean(self, start: datetime, end: datetime) -> tuple[Floats, Floats]:
        return self._weights, self._weights

    def counts(self, tick: Tick) -> tuple[Floats, Floats]:
        return self._weights * tick.days, self._weights * tick.days

    def between(self, rows: Ints, start: Times, end: Times) -> Floats:
        return np.asarray(self._weights[rows] * days_between(start, end))


def zipf(ids: Ints, exponent: float, *, seed: int) -> Floats:
    """Weights ∝ 1/rank^exponent in a random order of the pages; 1 on average.

    >>> sorted(zipf(np.arange(2), 1.0, seed=1).round(2).tolist())
    [0.67, 1.33]
    """
    rank = 1.0 + np.argsort(np.argsort(coins(seed, ids, 1)))
    share = rank**-exponent
    return np.asarray(share * (len(ids) / share.sum()))


class LoggedReaders:
    """The clicks and impressions that a log counted.

    What is known at a time is the mean of the 30 days before it (Han 2020, §5.2.2), or of as many
    as the log has. Within a bucket the clicks are spread evenly.
    """

    synthetic = False

    def __init__(self, log: Log, truth: Truth) -> None:
        bucket = log.about.demand_bucket
        if bucket is None:
            raise InputError(
                f"{log.folder / 'log.json'}: `demand_bucket` is missing; it says how long the "
                "buckets of demand.parquet are"
            )
        self._bucket = np.timedelta64(bucket)
        counts = _counts(log, truth)
        at = times_of(counts["at"])
        self._first: Instant = at[0] if len(at) else np.datetime64(0, "us")
        self._row = counts["row"].to_numpy().astype(np.int64)
        self._clicks = counts["clicks"].to_numpy().astype(np.float64)
        self._shown = counts["impressions"].to_numpy().astype(np.float64)
        self._number = ((at - self._first) // self._bucket).astype(np.int64)
        self._pages, self._born = len(truth), truth.born
        self._order()
        self._known: tuple[int, int, tuple[Floats, Floats]] | None = None

    def known(self, now: datetime, pages: int) -> tuple[Floats, Floats]:
        last = int((instant(now) - self._first) // self._bucket)
        if self._known is None or self._known[:2] != (last, pages):
            self._known = (last, pages, self._mean(last, pages))
        return self._known[2]

    def _mean(self, last: int, pages: int) -> tuple[Floats, Floats]:
        """Means over the buckets before the one of that number."""
        first = max(0, last - int(_TRAILING * DAY / self._bucket))
        days = max(1, last - first) * float(self._bucket / DAY)
        some = slice(*np.searchsorted(self._number, (first, last)))
        rows = self._row[some]
        clicks, shown = (
            np.bincount(rows, weights=column[some], minlength=self._pages)[:pages] / days
            for column in (self._clicks, self._shown)
        )
        return clicks, shown

    def mean(self, start: datetime, end: datetime) -> tuple[Floats, Floats]:
        since = np.maximum(self._born, instant(start))
        days = np.maximum(days_between(since, instant(end)), 1.0)
        clicks, shown = self.counts(Tick(0, start, end))
        return clicks / days, shown / days

    def counts(self, tick: Tick) -> tuple[Floats, Floats]:
        first, last = ((instant(t) - self._first) // self._bucket for t in (tick.start, tick.end))
        some = slice(*np.searchsorted(self._number, (int(first), int(last))))
        clicks, shown = (
            np.bincount(self._row[some], column[some], self._pages).astype(np.float64)
            for column in (self._clicks, self._shown)
        )
        return clicks, shown

    def weights(self) -> Floats | None:
        return None

    def clicks(self, tick: Tick) -> tuple[Ints, Floats]:
        start, end = instant(tick.start), instant(tick.end)
        first = (start - self._first) // self._bucket
        last = -((self._first - end) // self._bucket)
        some = slice(*np.searchsorted(self._number, (first, last)))
        opens = self._first + self._number[some] * self._bucket
        inside = np.minimum(end, opens + self._bucket) - np.maximum(start, opens)
        return self._row[some], self._clicks[some] * (inside / self._bucket)

    def between(self, rows: Ints, start: Times, end: Times) -> Floats:
        return self._until(rows, end) - self._until(rows, start)

    def _until(self, rows: Ints, when: Times) -> Floats:
        """Clicks on each row before `when`, by a sum that runs page by page."""
        place = (when - self._first) / self._bucket
        number = np.floor(place)
        key = rows * self._stride + np.clip(number, 0, self._stride - 1).astype(np.int64)
        at = np.searchsorted(self._keys[:-1], key)
        open_ = np.where(self._keys[at] == key, self._sorted[at], 0.0)
        return np.asarray(self._running[at] + open_ * (place - number))

    def _order(self) -> None:
        """Order the counts by page, so that any sum over time is a difference."""
        self._stride = int(self._number.max(initial=0)) + 2
        keys = self._row * self._stride + self._number
        order = np.argsort(keys, kind="stable")
        self._keys = np.append(keys[order], -1)
        self._sorted = np.append(self._clicks[order], 0.0)
        self._running = np.concatenate([[0.0], np.cumsum(self._sorted)])


def _counts(log: Log, truth: Truth) -> pl.DataFrame:
    demand = log.scan("demand")
    if "impressions" not in log.columns("demand"):
        demand = demand.with_columns(impressions=pl.lit(0))
    return (
        demand.join(truth.rows(), on="page_id")
        .select("row", "at", pl.col("clicks", "impressions").fill_null(0))
        .sort("at", "row")
        .collect()
    )


def readers_of(text: str | None, log: Log, truth: Truth, *, seed: int) -> Readership:
    """The readers that `--demand` names: file, uniform or zipf:EXPONENT.

    None means the log's own clicks, or zipf:1.1 where it has none.
    """
    chosen = text or ("file" if log.has("demand") else "zipf:1.1")
    name, _, exponent = chosen.partition(":")
    if name == "file":
        return LoggedReaders(log, truth)
    if name == "uniform":
        return Drawn(np.ones(len(truth)))
    try:
        if name == "zipf":
            return Drawn(zipf(truth.ids, float(exponent or "1.1"), seed=seed))
    except ValueError:
        pass
    raise ConfigError(f"{chosen!r} is not a demand; write file, uniform or zipf:1.1")
