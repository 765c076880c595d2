"""The lengths of many intervals a page, in little memory."""

from __future__ import annotations

import numpy as np

from salticus.types import Bools, Floats, Ints
from salticus.types.state import State


class Lengths:
    """Each row holds the lengths of any number of intervals as at most `size` means with counts.

    Exact up to `size` different lengths. Beyond that the two neighbours that are most alike become
    their mean (the histogram of Ben-Haim & Tom-Tov, 2010); alike is measured on square roots, which
    serves Σ τ/(e^(Δτ) − 1) at short and long intervals both.

    >>> lengths = Lengths(size=2)
    >>> rows = lengths.append(1)
    >>> for days in (1.0, 5.0, 1.0, 2.2):
    ...     lengths.add(rows, np.array([days]))
    >>> lengths.days.round(6).tolist(), lengths.count.tolist()
    ([[1.4, 5.0]], [[3.0, 1.0]])
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._days, self._count = np.ones((0, size)), np.zeros((0, size))
        self._used = 0

    @property
    def days(self) -> Floats:
        """Mean length by row and place; 1 where nothing is."""
        return self._days[: self._used]

    @property
    def count(self) -> Floats:
        """How many intervals that is the mean of; 0 where nothing is."""
        return self._count[: self._used]

    def append(self, n: int) -> Ints:
        """New rows, empty."""
        rows = np.arange(self._used, self._used + n)
        self._used += n
        if self._used > len(self._days):
            more = max(self._used, 2 * len(self._days)) - len(self._days)
            self._days = np.concatenate([self._days, np.ones((more, self.size))])
            self._count = np.concatenate([self._count, np.zeros((more, self.size))])
        return rows

    def keep(self, rows: Ints) -> None:
        """Drop all but these rows, which move up."""
        self._days, self._count = self._days[rows], self._count[rows]
        self._used = len(rows)

    def add(self, rows: Ints, days: Floats) -> None:
        """One more interval for each of these rows, none of them twice."""
        days = np.column_stack([self._days[rows], days])
        count = np.column_stack([self._count[rows], np.ones(len(rows))])
        order = np.argsort(np.where(count > 0, days, np.inf), axis=1, kind="stable")
        days, count = np.take_along_axis(days, order, 1), np.take_along_axis(count, order, 1)
        first = np.argmin(_unlike(days, count), axis=1)
        self._days[rows], self._count[rows] = _joined(days, count, first)

    def state(self) -> State:
        return {"length": self.days, "count": self.count}

    def restore(self, state: State) -> None:
        self._days, self._count = state["length"].copy(), state["count"].copy()
        self._used = len(self._days)


def _unlike(days: Floats, count: Floats) -> Floats:
    """What is lost by joining neighbours; nothing if they are equal, or the second is empty."""
    here, there = count[:, :-1], count[:, 1:]
    apart = np.sqrt(days[:, 1:]) - np.sqrt(days[:, :-1])
    lost = apart**2 * here * there / np.maximum(here + there, 1.0)
    equal: Bools = (here > 0) & (there > 0) & (apart == 0)
    return np.where(equal, -1.0, lost)


def _joined(days: Floats, count: Floats, first: Ints) -> tuple[Floats, Floats]:
    """Rows one shorter: in each, the place `first` and its neighbour have become one."""
    row, place = np.arange(len(days)), np.arange(days.shape[1] - 1)
    both = count[row, first] + count[row, first + 1]
    total = days[row, first] * count[row, first] + days[row, first + 1] * count[row, first + 1]
    days[row, first] = np.where(both > 0, total / np.maximum(both, 1.0), 1.0)
    count[row, first] = both
    rest = place + (place > first[:, None])
    return np.take_along_axis(days, rest, 1), np.take_along_axis(count, rest, 1)
