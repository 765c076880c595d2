"""What was downloaded and what had changed, whichever tables of the log tell it.

Columns in, columns out: rows are change points, ordered by page and time. A slot is one download
of one page: an hour, a day, or a crawl of the page's host. The last value in a slot is the one that
the download shows, as in a simulated tick: the world changes, then the crawler visits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from salticus.exchange.folder import Log
from salticus.types import Bools, Ints
from salticus.types.dates import DAY_US

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MICRO = timedelta(microseconds=1)

Looks = NDArray[np.uint64]

GONE = np.uint64(0)
"""The look of a page that is not there; other looks are hashes of values."""

BACK_US = 2 * DAY_US
"""A flash sale: back at the value before within so long, µs."""


@dataclass(frozen=True, slots=True)
class Downloads:
    """Downloads and changes as columns. Times are µs since 1970, UTC.

    `pages`: one row a page that was downloaded: `row`, `downloads`, `changes`, `first` and `last`
    (of its downloads), `watched` (µs, while it was there). `changes`: `row`, `at`, `gap`, `back`
    (see `changes_of`). `looks`: `zone`, `at`, `downloads`, `changes`, summed over the pages of a
    zone. `step` is how finely times are known, `unit` that of intervals. `back` is known if
    `valued`.
    """

    source: str
    means: str
    step: timedelta
    unit: timedelta
    pages: pl.DataFrame
    changes: pl.DataFrame
    looks: pl.DataFrame
    notes: list[str] = field(default_factory=list)
    valued: bool = True


@dataclass(frozen=True, slots=True)
class Grid:
    """All slots: from when until when (µs) and in which time zone. A page's stand side by side."""

    at: Ints
    until: Ints
    zone: pl.Series


@dataclass(frozen=True, slots=True)
class Stays:
    """A page (row) shows one look from slot `start` to before slot `stop`. Ordered by page."""

    page: Ints
    start: Ints
    stop: Ints
    look: Looks

    @property
    def first(self) -> Bools:
        """Where a page begins."""
        return begins(self.page)

    @property
    def changed(self) -> Bools:
        """Where the look differs from the page's last one; never at its first observation."""
        return ~self.first & begins(self.look)


def step_of(log: Log, table: str) -> tuple[timedelta, list[str]]:
    """How finely the times of a table are known, one hour at best, and what was assumed."""
    said = log.about.resolution
    step = max(said or HOUR, HOUR)
    midnight = pl.col("at").dt.truncate("1d") == pl.col("at")
    if step < DAY and log.scan(table).select(midnight.all()).collect().item():
        return DAY, [f"all times of {table}.parquet are at 00:00 UTC: they are taken as days"]
    if said is None:
        return step, ["log.json gives no `resolution`: times are taken to be known to the hour"]
    return step, []


def look_of(column: str) -> pl.Expr:
    """Texts as looks: equal texts, equal looks; null is GONE."""
    text = pl.col(column).cast(pl.String)
    return pl.when(text.is_not_null()).then(text.hash().clip(1)).otherwise(pl.lit(int(GONE)))


def begins(page: Ints | Looks) -> Bools:
    """The first row of each run of equal numbers.

    >>> begins(np.array([4, 4, 7]))
    array([ True, False,  True])
    """
    new = np.ones(len(page), dtype=np.bool_)
    new[1:] = page[1:] != page[:-1]
    return new


def stays(page: Ints, slot: Ints, look: Looks, stop: Ints) -> Stays:
    """The stays that downloads at every slot see; `stop` is the end of each row's page.

    >>> a = np.array([0, 0, 0, 1])
    >>> seen = stays(a, np.array([0, 2, 2, 1]), np.array([9, 8, 7, 5], np.uint64), 4 - 0 * a)
    >>> seen.start, seen.stop, seen.look
    (array([0, 2, 1]), array([2, 4, 4]), array([9, 7, 5], dtype=uint64))
    """
    last = np.ones(len(page), dtype=np.bool_)
    last[:-1] = (page[1:] != page[:-1]) | (slot[1:] != slot[:-1])
    page, slot, look, stop = page[last], slot[last], look[last], stop[last].copy()
    follows = np.flatnonzero(~begins(page))
    stop[follows - 1] = slot[follows]
    here = (look != GONE) & (slot < stop)
    return Stays(page[here], slot[here], stop[here], look[here])


def changes_of(page: Ints, at: Ints, look: Looks, first: Bools) -> pl.DataFrame:
    """The changes among observations ordered by page and time, each page's first and every change.

    `at` is in µs. Columns: `row` (of the page), `at`, `gap` (µs since the change before, or since
    the first observation) and `back`: whether the value is again the one before the last change,
    which was at most two days ago (Han et al. 2019, Fig. 3; flash sales).
    """
    later = np.flatnonzero(~first)
    before, earlier = later - 1, np.maximum(later - 2, 0)
    gap = at[later] - at[before]
    known = (look[later] != GONE) & ~first[before]
    back = known & (look[later] == look[earlier]) & (gap <= BACK_US)
    return pl.DataFrame({"row": page[later], "at": at[later], "gap": gap, "back": back})


def tally(stays: Stays, grid: Grid) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Pages, changes and looks of a Record, counted without listing a single download."""
    slots = len(grid.at)
    changed = stays.changed
    told = np.flatnonzero(stays.first | changed)
    changes = changes_of(
        stays.page[told], grid.at[stays.start[told]], stays.look[told], stays.first[told]
    )
    came = np.bincount(stays.start, minlength=slots + 1)
    went = np.bincount(stays.stop, minlength=slots + 1)
    counts = {
        "zone": grid.zone,
        "at": grid.at,
        "downloads": np.cumsum(came - went)[:slots],
        "changes": np.bincount(stays.start[changed], minlength=slots),
    }
    looks = pl.DataFrame(counts).filter(pl.col("downloads") > 0)
    return _pages(stays, grid), changes, looks


def _pages(stays: Stays, grid: Grid) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "row": stays.page,
            "downloads": stays.stop - stays.start,
            "changes": stays.changed,
            "first": grid.at[stays.start],
            "last": grid.at[stays.stop - 1],
            "watched": grid.until[stays.stop - 1] - grid.at[stays.start],
        }
    )
    sums = pl.col("downloads", "watched").sum(), pl.col("changes").sum().cast(pl.Int64)
    pages = frame.group_by("row").agg(*sums, pl.col("first").min(), pl.col("last").max())
    return pages.sort("row")
