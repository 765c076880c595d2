"""The changes that were seen of pages, in whole hours: by one who sees all, or by a crawler.

A time belongs to the whole UTC hour in which it lies. What happens in the hour of a prediction
is not known to it, so an event at the time of the prediction never is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from salticus.types import Ints
from salticus.types.dates import HOUR_US

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

NEVER_GONE = np.iinfo(np.int32).max  # in hours: beyond any log, and sums of it stay exact


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

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=-1)) + 1


def full_history(pages: pl.DataFrame, values: pl.LazyFrame) -> ChangeHistory:
    """The history that the truth tells: every row with a value other than the one before it.

    `pages` has `page_id` and perhaps `category`. A page is born with its first row and gone with
    its last if that is null; while it is away in between, it counts as there. Going and coming
    back with the old value is no change.
    """
    import polars as pl

    rows = _rowed(pages, values).sort("row", "at").select("row", "at", "value").collect()
    before = pl.col("value").forward_fill().shift().over("row")
    changed = pl.col("value").is_not_null() & before.is_not_null() & (pl.col("value") != before)
    ends = rows.group_by("row", maintain_order=True).agg(
        pl.col("at").first().alias("born"),
        pl.when(pl.col("value").last().is_null()).then(pl.col("at").last()).alias("gone"),
    )
    start = _first_hour(rows)
    born = np.full(len(pages), start)
    gone = np.full(len(pages), NEVER_GONE, dtype=np.int64)
    row = ends["row"].to_numpy()
    born[row] = _hours(ends["born"])
    left = ends.filter(pl.col("gone").is_not_null())
    gone[left["row"].to_numpy()] = _hours(left["gone"])
    return _history(pages, rows.filter(changed), start, born=born, gone=gone)


def partial_history(
    pages: pl.DataFrame, visits: pl.LazyFrame, *, like: ChangeHistory | None = None
) -> ChangeHistory:
    """The history that a crawler saw: its visits with `changed` true, at the time of the visit.

    A page is born with its first visit, or when `like` says (a feed announces pages before anyone
    visits them) and then also gone; one that was never visited is as old as the log.
    """
    import polars as pl

    rows = _rowed(pages, visits).select("row", "at", "changed")
    changes = rows.filter(pl.col("changed")).sort("row", "at").collect()
    if like is not None:
        return _history(pages, changes, like.start, born=like.born, gone=like.gone)
    first = rows.group_by("row").agg(pl.col("at").min()).collect()
    start = _first_hour(first)
    born = np.full(len(pages), start)
    born[first["row"].to_numpy()] = _hours(first["at"])
    gone = np.full(len(pages), NEVER_GONE, dtype=np.int64)
    return _history(pages, changes, start, born=born, gone=gone)


def _history(
    pages: pl.DataFrame, changes: pl.DataFrame, start: int, *, born: Ints, gone: Ints
) -> ChangeHistory:
    page, hour = changes["row"].to_numpy().astype(np.int64), _hours(changes["at"])
    there = (hour >= born[page]) & (hour <= gone[page])
    return ChangeHistory(
        start=start,
        born=born,
        gone=gone,
        group=group_numbers(pages),
        page=page[there],
        hour=hour[there],
    )


def group_numbers(pages: pl.DataFrame) -> Ints:
    """The number of each page's category, in the order of their names; none is 0.

    >>> import polars as pl
    >>> group_numbers(pl.DataFrame({"page_id": [1, 2, 3, 4], "category": ["b", None, "a", "b"]}))
    array([2, 0, 1, 2])
    """
    if "category" not in pages.columns:
        return np.zeros(len(pages), dtype=np.int64)
    return pages["category"].rank("dense").fill_null(0).to_numpy().astype(np.int64)


def _rowed(pages: pl.DataFrame, table: pl.LazyFrame) -> pl.LazyFrame:
    """The table with the row of each page; rows of unknown pages are dropped."""
    rows = pages.lazy().select("page_id").with_row_index("row")
    return table.join(rows, on="page_id", how="inner")


def _first_hour(rows: pl.DataFrame) -> int:
    return int(_hours(rows["at"]).min(initial=NEVER_GONE)) if len(rows) else 0


def _hours(at: pl.Series) -> Ints:
    """Whole hours since 1970 of times in µs."""
    return at.dt.epoch("us").to_numpy().astype(np.int64) // HOUR_US
