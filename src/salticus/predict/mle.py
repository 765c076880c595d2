"""Change rates by maximum likelihood, however irregular the visits."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np

from salticus.predict.point import PointRates
from salticus.predict.spans import Spans
from salticus.types import Bools, Floats, Ints, Pages
from salticus.types.compiled import compiled
from salticus.types.state import State

_AT_ONCE = 1 << 16  # pages solved together: bounds the memory of the work
_EXACT = 1e-13  # of a rate


class Mle(PointRates):
    """The rate that makes the visits' findings most likely: Σ_{y=1} τ/(e^(Δτ) − 1) = Σ_{y=0} τ.

    τ are the days between visits, y says which found a change (ALGORITHMS §5). Unchanged intervals
    simply add up; changed ones are kept as `intervals` lengths with counts, exact up to so many
    different lengths and within 2 % after that (128 bytes for a page that changes).

    One changed and one unchanged interval of `smooth_days` are added (Kolobov et al. 2019), so that
    no rate is 0 or infinite: a page that was never seen to change would never be visited again by
    a policy that takes its rate for known. Slow pages look faster than they are, by about one
    change in the days watched. With `smooth_days` 0 there is no such bias, and no such safety: half
    an unchanged interval of the page's mean length is added, as `bias_reduced` does (at equal
    intervals the two are the same), and the rate is 0 if no visit found a change.

    >>> Mle().rates(np.array([1])).round(3)  # ln 2/0.5 before any visit
    array([1.386])
    """

    sums = (*PointRates.sums, "still", "place")  # the place in `lengths_` from 1 on; 0 = none

    def __init__(self, *, smooth_days: float = 0.5, intervals: int = 8) -> None:
        super().__init__(default_rate=float(np.log(2.0) / smooth_days) if smooth_days else 0.25)
        self.smooth_days = smooth_days
        self.intervals = intervals
        self.lengths_ = Lengths(intervals)

    def meet(self, pages: Pages, now: datetime) -> None:
        super().meet(pages, now)
        place = self.pages_["place"]
        some = np.flatnonzero(place)
        if len(some) < len(self.lengths_.days):  # those of pages that were forgotten go
            self.lengths_.keep(place[some].astype(np.int64) - 1)
            place[some] = np.arange(1, len(some) + 1)

    def estimate(self, rows: Ints) -> Floats:
        parts = [self._solve(rows[i : i + _AT_ONCE]) for i in range(0, len(rows), _AT_ONCE)]
        return np.concatenate(parts)

    def _solve(self, rows: Ints) -> Floats:
        days, count = np.ones((len(rows), self.intervals)), np.zeros((len(rows), self.intervals))
        place = self.pages_["place"][rows].astype(np.int64) - 1
        some = place >= 0
        days[some], count[some] = self.lengths_.days[place[some]], self.lengths_.count[place[some]]
        still, smooth = self.pages_["still"][rows], self.smooth_days
        if not smooth:
            mean = self.pages_["days"][rows] / self.pages_["visits"][rows]
            return likeliest(days, count, still + 0.5 * mean)
        days = np.column_stack([days, np.full(len(rows), smooth)])
        count = np.column_stack([count, np.ones(len(rows))])
        return likeliest(days, count, still + smooth)

    def _add(self, rows: Ints, spans: Spans) -> None:
        super()._add(rows, spans)
        np.add.at(self.pages_["still"], rows, np.where(spans.changed, 0.0, spans.days))
        for each in spans.take(spans.changed).rounds():
            rows, place = self.pages_.rows(each.page), self.pages_["place"]
            first = rows[place[rows] == 0]
            place[first] = self.lengths_.append(len(first)) + 1
            self.lengths_.add(place[rows].astype(np.int64) - 1, each.days)

    def state(self) -> State:
        return {**super().state(), **self.lengths_.state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.lengths_.restore(state)


def likeliest(days: Floats, count: Floats, still: Floats) -> Floats:
    """The root Δ of Σ count·τ/(e^(Δτ) − 1) = `still`, a row a page; τ are `days`.

    0 where no interval is counted, inf where `still` is 0. Newton's method on the logarithm of the
    left side, which falls and is convex in Δ: from X/(still + Σ count·τ/2), which is below the
    root, it rises to it without ever passing it.

    >>> likeliest(np.array([[1.0]]), np.array([[3.0]]), np.array([2.0])).round(6)  # ln(1 + 3/2)
    array([0.916291])
    """
    if not count.any():
        return np.zeros(len(still))  # without the time that it takes to load compiled code
    return _likeliest(np.ascontiguousarray(days), np.ascontiguousarray(count), still)


@compiled
def _likeliest(days: Floats, count: Floats, still: Floats) -> Floats:
    rates = np.zeros(len(still))
    for row in range(len(still)):
        changes, half = 0.0, 0.0
        for k in range(days.shape[1]):
            changes += count[row, k]
            half += 0.5 * count[row, k] * days[row, k]
        if changes <= 0.0:
            continue
        if still[row] <= 0.0:
            rates[row] = np.inf
            continue
        rates[row] = changes / (still[row] + half)
        step = np.inf
        while step > _EXACT * rates[row]:
            step = _step(rates[row], days[row], count[row], still[row])
            rates[row] += step
    return rates


@compiled
def _step(rate: float, days: Floats, count: Floats, still: float) -> float:
    """How far Newton's method goes from this rate."""
    total, slope = 0.0, 0.0
    for k in range(len(days)):
        if count[k] > 0.0:
            x = rate * days[k]
            stay = math.exp(-x)
            gone = -math.expm1(-x) if x < 0.5 else 1.0 - stay
            term = count[k] * days[k] * stay / gone
            total += term
            slope += term * days[k] / gone
    return math.log(total / still) * total / slope


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
        self._days[rows], self._count[rows] = _merged(days, count, first)

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


def _merged(days: Floats, count: Floats, first: Ints) -> tuple[Floats, Floats]:
    """Rows one shorter: in each, the place `first` and its neighbour have become one."""
    row, place = np.arange(len(days)), np.arange(days.shape[1] - 1)
    both = count[row, first] + count[row, first + 1]
    total = days[row, first] * count[row, first] + days[row, first + 1] * count[row, first + 1]
    days[row, first] = np.where(both > 0, total / np.maximum(both, 1.0), 1.0)
    count[row, first] = both
    rest = place + (place > first[:, None])
    return np.take_along_axis(days, rest, 1), np.take_along_axis(count, rest, 1)
