"""What a crawler that downloads at every slot of a grid would have seen of the pages' values.

Columns in, columns out: rows are change points, ordered by page and time. A slot is one download
of one page: an hour, a day, or a crawl of the page's host. The last value in a slot is the one that
the download shows, as in a simulated tick: the world changes, then the crawler visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from salticus.types import Bools, Ints
from salticus.types.dates import DAY_US

if TYPE_CHECKING:
    import polars as pl

Looks = NDArray[np.uint64]

GONE = np.uint64(0)
"""The look of a page that is not there; other looks are hashes of values."""

BACK_US = 2 * DAY_US
"""A flash sale: back at the value before within so long, µs."""


def look_of(column: str) -> pl.Expr:
    """Texts as looks: equal texts, equal looks; null is GONE."""
    import polars as pl

    text = pl.col(column).cast(pl.String)
    return pl.when(text.is_not_null()).then(text.hash().clip(1)).otherwise(pl.lit(int(GONE)))


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
        other = np.ones(len(self.look), dtype=np.bool_)
        other[1:] = self.look[1:] != self.look[:-1]
        return ~self.first & other


def begins(page: Ints) -> Bools:
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
    import polars as pl

    later = np.flatnonzero(~first)
    before, earlier = later - 1, np.maximum(later - 2, 0)
    gap = at[later] - at[before]
    known = (look[later] != GONE) & ~first[before]
    back = known & (look[later] == look[earlier]) & (gap <= BACK_US)
    return pl.DataFrame({"row": page[later], "at": at[later], "gap": gap, "back": back})
