"""What was downloaded and what had changed, whichever tables of the log tell it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from salticus.exchange.folder import Log
from salticus.lab.analyze.walk import Stays, changes_of
from salticus.types import Ints

if TYPE_CHECKING:
    import polars as pl

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MICRO = timedelta(microseconds=1)


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


def step_of(log: Log, table: str) -> tuple[timedelta, list[str]]:
    """How finely the times of a table are known, one hour at best, and what was assumed."""
    import polars as pl

    said = log.about.resolution
    step = max(said or HOUR, HOUR)
    midnight = pl.col("at").dt.truncate("1d") == pl.col("at")
    if step < DAY and log.scan(table).select(midnight.all()).collect().item():
        return DAY, [f"all times of {table}.parquet are at 00:00 UTC: they are taken as days"]
    if said is None:
        return step, ["log.json gives no `resolution`: times are taken to be known to the hour"]
    return step, []


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
    seen = np.bincount(stays.start[changed], minlength=slots)
    return _pages(stays, grid), changes, _looks(grid, np.cumsum(came - went)[:slots], seen)


def _looks(grid: Grid, downloads: Ints, changes: Ints) -> pl.DataFrame:
    import polars as pl

    columns = {"zone": grid.zone, "at": grid.at, "downloads": downloads, "changes": changes}
    return pl.DataFrame(columns).filter(pl.col("downloads") > 0)


def _pages(stays: Stays, grid: Grid) -> pl.DataFrame:
    import polars as pl

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
    pages = frame.group_by("row").agg(
        pl.col("downloads").sum(),
        pl.col("changes").sum().cast(pl.Int64),
        pl.col("first").min(),
        pl.col("last").max(),
        pl.col("watched").sum(),
    )
    return pages.sort("row")
