"""Arrays of one length: their kinds, times, and columns that are cut and joined together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.int8]
Times = NDArray[np.datetime64]
Instant = np.datetime64

DAY = np.timedelta64(86_400_000_000, "us")
NEVER = np.datetime64("NaT", "us")
UNPLANNED = 4 * 10**15  # still exact as a float, for whoever reads the store with one


def instant(when: datetime) -> Instant:
    """The column form of an aware time.

    >>> instant(datetime(2026, 1, 2, 3, tzinfo=UTC))
    np.datetime64('2026-01-02T03:00:00.000000')
    """
    return np.datetime64(when.astimezone(UTC).replace(tzinfo=None), "us")


def moment(when: Instant) -> datetime:
    """The row form of a column time; the inverse of `instant`."""
    naive: datetime = when.astype("datetime64[us]").item()
    return naive.replace(tzinfo=UTC)


def days_between(start: Times | Instant, end: Times | Instant) -> Floats:
    """Days from `start` to `end`; NaN where either is unknown."""
    return np.asarray((end - start) / DAY, dtype=np.float64)


def unplanned(now: Instant, visits: int, after: int = 0) -> Ints:
    """Numbers of visits that no plan foresaw: by the time, far above the planner's.

    They are above `after`, so that those of one moment differ.
    """
    first = max(UNPLANNED + int(now.astype(np.int64)), after + 1)
    return np.arange(first, first + visits)


def distinct(ids: Ints) -> Ints:
    """The different ids, in order. Unlike `np.unique` it lets other threads run meanwhile.

    >>> distinct(np.array([7, 3, 7]))
    array([3, 7])
    """
    ordered = np.sort(ids)
    new = np.ones(len(ids), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def cut(column: NDArray[Any], rows: Ints) -> NDArray[Any]:
    """The given rows. A column that is one number, broadcast, stays so.

    >>> cut(np.broadcast_to(2.0, 3), np.array([0, 2])).strides
    (0,)
    """
    if column.strides == (0,):
        return np.broadcast_to(column[:1], len(rows))
    return column.take(rows)


class Columns:
    """Arrays of one length that are cut and joined together."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(next(self._arrays())[1])

    def _arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for name in cast(Any, self).__dataclass_fields__:  # `fields` would make a list every time
            if isinstance(column := getattr(self, name), np.ndarray):
                yield name, column

    def take(self, rows: Ints | Bools) -> Self:
        """The given rows, in the given order."""
        cut = {name: column[rows] for name, column in self._arrays()}
        return cast(Self, replace(cast(Any, self), **cut))

    def join(self, other: Self) -> Self:
        """These rows, then the other's; what is not a column is the other's."""
        mine = dict(self._arrays())
        joined = {name: np.concatenate([mine[name], c]) for name, c in other._arrays()}
        return cast(Self, replace(cast(Any, other), **joined))
