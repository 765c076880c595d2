"""How long to wait between visits: the intervals that a visit price buys, and the price.

A page is due τ days after its last visit, when V(τ) = μ[∫₀^τ S − τS(τ)] reaches the price Λ. It is
never due if V stays below it (ALGORITHMS §0 and §3).
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable
from functools import cache

import numpy as np

from salticus.allocate.response import g_inverse
from salticus.types import Floats, Survival

SHORTEST, LONGEST = 1e-5, 4e3  # days; a page that is worth no visit in eleven years never is
_TINY = 1e-300
_EXACT = 1e-7  # relative error of an interval
_HALVINGS = math.ceil(math.log2(math.log(LONGEST / SHORTEST) / _EXACT))


def of_rates(rates: Floats, demand: Floats, price: float) -> Floats:
    """Days between visits under known change rates: τ = g⁻¹(ΛΔ/μ)/Δ, or infinity.

    >>> of_rates(np.array([1.0, 1.0, 0.0]), np.array([2.0, 0.4, 9.0]), 0.5).round(3)
    array([0.961,   inf,   inf])
    """
    days = np.full(len(rates), np.inf)
    some = np.flatnonzero((rates > 0.0) & (demand > 0.0))
    days[some] = g_inverse(price * rates[some] / demand[some]) / rates[some]
    return days


def of_curves(curves: Survival, demand: Floats, price: float) -> Floats:
    """Days between visits under any survival curves, from `SHORTEST` to `LONGEST`, or infinity.

    >>> from salticus.predict.poisson import PoissonSurvival
    >>> curves = PoissonSurvival(np.array([1.0, 1.0, 0.0]))
    >>> of_curves(curves, np.array([2.0, 0.4, 9.0]), 0.5).round(3)
    array([0.961,   inf,   inf])
    """
    return Curves(curves, demand)(price)


class Curves:
    """Days between visits at one price after another; each answer narrows the search for the next.

    V never falls with age, so that its crossing of the price can be enclosed: here by ITP
    (Oliveira and Takahashi 2020) on ln V against ln τ, which is nearly straight; about ten steps,
    and never more than to halve would take.
    """

    def __init__(self, curves: Survival, demand: Floats) -> None:
        self.curves = curves
        self.demand = demand
        self.most_ = worth(curves, demand, np.full(len(demand), LONGEST))
        ends = ((0.0, SHORTEST), (math.inf, LONGEST))
        self.known_ = [(price, np.broadcast_to(math.log(age), len(demand))) for price, age in ends]

    def __call__(self, price: float) -> Floats:
        price = max(price, _TINY)
        if math.isinf(price):
            return np.full(len(self.demand), np.inf)
        at = bisect([known for known, _ in self.known_], price)
        (_, low), (_, high) = around = self.known_[at - 1 : at + 1]
        high = high + _EXACT
        ages = self._crossing(price, np.where(self.most_ <= price, high, low - _EXACT), high)
        kept = dict((self.known_[0], around[0], (price, ages), around[1], self.known_[-1]))
        self.known_ = list(kept.items())
        return np.where(self.most_ <= price, np.inf, np.exp(ages))

    def _crossing(self, price: float, low: Floats, high: Floats) -> Floats:
        """The logarithm of the age at which each page's V reaches the price."""
        below, above = self._miss(low, price), self._miss(high, price)
        for step in range(_HALVINGS):
            if float(np.max(high - low, initial=0.0)) <= 2 * _EXACT:
                break
            age = _between(low, high, below / np.minimum(below - above, -_TINY), step)
            miss = self._miss(age, price)
            late = miss >= 0
            low, below = np.where(late, low, age), np.where(late, below, miss)
            high, above = np.where(late, age, high), np.where(late, miss, above)
        return 0.5 * (low + high)

    def _miss(self, log_age: Floats, price: float) -> Floats:
        value = worth(self.curves, self.demand, np.exp(log_age))
        return np.log(np.maximum(value, _TINY) / price)


def _between(low: Floats, high: Floats, share: Floats, step: int) -> Floats:
    """The next age to try: interpolated, moved a little towards the middle, and never so far from
    it that halving would have got on faster."""
    middle, width = 0.5 * (low + high), high - low
    guess = low + share * width
    inwards = np.sign(middle - guess)
    guess = guess + inwards * np.minimum(0.1 * width * width, np.abs(middle - guess))
    reach = np.maximum(_EXACT * 2.0 ** (_HALVINGS - step) - 0.5 * width, 0.0)
    return np.asarray(np.clip(guess, middle - reach, middle + reach))


def worth(curves: Survival, demand: Floats, ages: Floats) -> Floats:
    """What a visit buys at each page's age in days: V(τ) = μ[∫₀^τ S − τS(τ)], never below 0."""
    value = curves.integral(ages) - ages * curves.unchanged(ages)
    return np.asarray(demand * np.maximum(value, 0.0))


def solve_price(intervals: Callable[[float], Floats], visits: float, start: float) -> float:
    """The price at which pages that are visited at their `intervals` take `visits` visits a day.

    `intervals` tells them for a price; they get longer as it rises. `start` is a guess. 0 if it
    would have to be less than any that makes sense, infinity if there are no visits.

    >>> rates, demand = np.array([1.0, 0.2]), np.array([1.0, 1.0])
    >>> price = solve_price(lambda price: of_rates(rates, demand, price), 0.5, 1.0)
    >>> round(float(np.sum(1 / of_rates(rates, demand, price))), 6)
    0.5
    """
    from scipy.optimize import brentq

    @cache
    def excess(log_price: float) -> float:
        taken = float(np.sum(1.0 / intervals(math.exp(log_price))))
        return math.log(max(taken, _TINY) / visits)

    if visits <= 0:
        return math.inf
    if start <= 0:
        return 0.0
    near = math.log(start)
    step = 0.5 if excess(near) > 0 else -0.5
    far = near + step
    while step * excess(far) > 0 and abs(step) < 200:
        near, step = far, 2 * step
        far = near + step
    if step * excess(far) > 0:
        return math.exp(far)
    return math.exp(brentq(excess, near, far, xtol=1e-7))


def guess_price(rates: Floats, demand: Floats, visits: float) -> float:
    """A price not far from the right one, and not below it if the change rates are constant.

    g(x) ≈ x²/2 for frequent visits, so that Σ 1/τ ≈ Σ √(μΔ/2Λ).
    """
    return (float(np.sum(np.sqrt(0.5 * demand * rates))) / visits) ** 2 if visits > 0 else math.inf
