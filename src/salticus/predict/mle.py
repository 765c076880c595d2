"""Change rates by maximum likelihood, however irregular the visits."""

from __future__ import annotations

import numpy as np

from salticus.predict.lengths import Lengths
from salticus.predict.point import PointRates
from salticus.predict.spans import Spans
from salticus.types import Floats, Ints
from salticus.types.state import Keyed, State

_AT_ONCE = 1 << 16  # pages solved together: bounds the memory of the work


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

    def __init__(self, *, smooth_days: float = 0.5, intervals: int = 8) -> None:
        super().__init__(default_rate=float(np.log(2.0) / smooth_days) if smooth_days else 0.25)
        self.smooth_days = smooth_days
        self.intervals = intervals
        self.still_, self.place_ = Keyed(), Keyed()  # the place in `lengths_` from 1 on; 0 = none
        self.lengths_ = Lengths(intervals)

    def estimate(self, rows: Ints) -> Floats:
        parts = [self._solve(rows[i : i + _AT_ONCE]) for i in range(0, len(rows), _AT_ONCE)]
        return np.concatenate(parts)

    def _solve(self, rows: Ints) -> Floats:
        days, count = self._changed(rows)
        still, smooth = self.still_.values[rows], self.smooth_days
        if not smooth:
            mean = self.days_.values[rows] / self.visits_.values[rows]
            return likeliest(days, count, still + 0.5 * mean)
        days = np.column_stack([days, np.full(len(rows), smooth)])
        count = np.column_stack([count, np.ones(len(rows))])
        return likeliest(days, count, still + smooth)

    def _changed(self, rows: Ints) -> tuple[Floats, Floats]:
        """Lengths and counts of the intervals in which these pages changed."""
        days, count = np.ones((len(rows), self.intervals)), np.zeros((len(rows), self.intervals))
        place = self.place_.values[rows].astype(np.int64) - 1
        some = place >= 0
        days[some], count[some] = self.lengths_.days[place[some]], self.lengths_.count[place[some]]
        return days, count

    def _sums(self) -> dict[str, Keyed]:
        return {**super()._sums(), "still": self.still_, "place": self.place_}

    def _add(self, rows: Ints, spans: Spans) -> None:
        super()._add(rows, spans)
        np.add.at(self.still_.values, rows, np.where(spans.changed, 0.0, spans.days))
        for each in spans.take(spans.changed).rounds():
            self._lengthen(self._rows(each.page), each.days)

    def _lengthen(self, rows: Ints, days: Floats) -> None:
        place = self.place_.values
        first = rows[place[rows] == 0]
        place[first] = self.lengths_.append(len(first)) + 1
        self.lengths_.add(place[rows].astype(np.int64) - 1, days)

    def _keep(self, ids: Ints) -> None:
        if self.place_.ids is not ids:
            super()._keep(ids)
            place = self.place_.values
            some = np.flatnonzero(place)
            self.lengths_.keep(place[some].astype(np.int64) - 1)
            place[some] = np.arange(1, len(some) + 1)

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
    changes = count.sum(axis=1)
    rates = np.where((changes > 0) & (still <= 0), np.inf, 0.0)
    left = np.flatnonzero((changes > 0) & (still > 0))
    rates[left] = changes[left] / (still[left] + (count[left] * days[left]).sum(axis=1) / 2)
    while len(left):
        step = _step(rates[left], days[left], count[left], still[left])
        rates[left] += step
        left = left[step > 1e-13 * rates[left]]
    return rates


def _step(rates: Floats, days: Floats, count: Floats, still: Floats) -> Floats:
    """How far Newton's method goes from these rates."""
    x = rates[:, None] * days
    gone = -np.expm1(-x)
    term = count * days * np.exp(-x) / gone
    total = term.sum(axis=1)
    slope = (term * days / gone).sum(axis=1)
    return np.asarray(np.log(total / still) * total / slope)
