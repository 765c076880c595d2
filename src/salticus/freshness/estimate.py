"""How fresh the copy is, without bias, the budget that a freshness needs, and drift.

What the predictor thinks is corrected by exploring visits, with the difference estimator of survey
sampling (Särndal, Swensson and Wretman 1992, §6.3): the mean of the model over all pages, plus the
mean of what a random sample found beyond the model. The model may be wrong; then the interval is
wider, not false. The budget is found by the visit price at which the freshness is reached. Drift is
when what was foretold of pages, and what visits drawn at random found, have parted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from salticus.allocate.rates import intervals
from salticus.types import Alert, Findings, Floats, Gauge, Ints
from salticus.types.dates import DAY_US

_Z = 1.96
_DOUBT = 0.1  # visits of either outcome that the interval allows for beside those made
_STEPS = 60  # halvings of the logarithm of the price
_PRICES = (-60.0, 20.0)  # natural logarithms, for demand of 1 on average
_ODDS = (0.2, 5.0)  # how far a model that is off may be corrected
SPAN = 3 * DAY_US  # µs that are looked back on
WHERE, KIND = "*", "drift"  # the alert is of all hosts
_SURE, _CALM = 4.0, 3.0  # standard errors at which the alarm begins, and below which it ends
_FAR, _NEAR = 1.4, 1.25  # likewise, how many times more or fewer changes than foretold
_FULL = 0.9  # of the span that must have been crawled: at first nothing is known of any page


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean freshness over a span of time, with an interval that holds in 95 % of the cases.

    `model` is what the predictor alone would say; `effective` how many visits of equal weight
    would tell as much as those made.
    """

    freshness: float
    half_width: float
    model: float
    effective: float

    @property
    def low(self) -> float:
        return max(0.0, self.freshness - self.half_width)

    @property
    def high(self) -> float:
        return min(1.0, self.freshness + self.half_width)


def by_pages(ticks: Sequence[Gauge], found: Findings) -> Estimate:
    """Every page counts alike."""
    means = _means(ticks, ("stale", "coins"), "pages")
    return _estimate(*means, 1.0 / found.propensity, found)


def by_demand(ticks: Sequence[Gauge], found: Findings) -> Estimate:
    """Every page counts by its demand."""
    means = _means(ticks, ("stale_demand", "coin_demand"), "demand")
    return _estimate(*means, found.demand / found.propensity, found)


def _means(ticks: Sequence[Gauge], columns: tuple[str, str], total: str) -> tuple[float, float]:
    """Two columns over a third, in the mean over time; NaN without any."""
    span = spans(ticks)
    whole = float(span @ [getattr(t, total) for t in ticks]) if len(ticks) else 0.0
    if whole <= 0.0:
        return nan, nan
    stale, coins = (float(span @ [getattr(t, name) for t in ticks]) / whole for name in columns)
    return stale, coins


def spans(ticks: Sequence[Gauge]) -> Floats:
    """Days that each tick lasted: its own, or less if the next began sooner."""
    at = np.array([t.at for t in ticks], dtype=np.float64)
    until_next = np.append(np.diff(at), np.inf) / DAY_US
    return np.minimum([t.days for t in ticks], until_next)


def _estimate(stale: float, share: float, weight: Floats, found: Findings) -> Estimate:
    """1 − (mean of the model + share that could be drawn × weighted mean of the residuals).

    Hájek's mean, Σ w r / Σ w with w = 1/propensity (× demand). A failed visit tells nothing and is
    left out. With few visits the scatter that is seen is often too small by luck; so it is taken
    in the mean with what the model expects, if that is more.
    """
    known = ~np.isnan(found.found) & (weight > 0)
    w, some = weight[known], found.take(known)
    if not len(w):
        return Estimate(1.0 - stale, nan, 1.0 - stale, 0.0)
    rest, doubt = residuals(some)
    w = w / w.sum()
    mean = float(w @ rest)
    effective = 1.0 / float(w @ w)
    seen, thought = float(w**2 @ (rest - mean) ** 2), float(w**2 @ doubt)
    variance = (seen + max(seen, thought)) / 2.0 + _DOUBT / (2.0 * effective) ** 2
    half = share * _quantile(effective) * variance**0.5
    return Estimate(1.0 - (stale + share * mean), half, 1.0 - stale, effective)


def residuals(found: Findings) -> tuple[Floats, Floats]:
    """What each visit found beyond the model, as of the start of its tick; and the variance that
    the model itself expects of that.

    A copy that was right when the visit came was right at the start of the tick; one that was not
    had been so by the start with chance stale / chance.
    """
    chance = np.where(np.isnan(found.chance), 1.0, found.chance)
    back = np.where(chance > found.stale, found.stale / np.maximum(chance, 1e-300), 1.0)
    return back * (found.found - chance), back**2 * chance * (1.0 - chance)


def _quantile(effective: float) -> float:
    """Of Student's distribution, 97.5 %, by Cornish and Fisher; more for few visits."""
    n = max(effective - 1.0, 1.0)
    return _Z + (_Z**3 + _Z) / (4 * n) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * n * n)


# -------------------------------------------------------------------------------- what it needs


@dataclass(frozen=True, slots=True)
class Market:
    """Pages as the visit price sees them.

    `rates` are changes a day, `demand` is relative, `room` the visits that each host takes a day;
    `shortest` is the least time between two visits to a page, days.
    """

    rates: Floats
    demand: Floats
    cost: Floats
    host: Ints
    room: Floats
    shortest: float

    def at(self, log_price: float) -> tuple[float, float]:
        """Budget spent a day, and demand-weighted staleness, at a price.

        Visits at fixed intervals τ with V(τ) at the price leave a page fresh for the share
        (1 − e^(−Δτ))/Δτ of the time (ALGORITHMS §0). A host that is asked for more than it takes
        is visited as often as it can be.
        """
        demand = self.demand / self.demand.mean()
        days = intervals(self.rates, demand / self.cost, float(np.exp(log_price)))
        days = np.maximum(days, self.shortest)
        load = np.bincount(self.host, weights=1.0 / days, minlength=len(self.room))
        days = days * np.maximum(load / np.maximum(self.room, 1e-300), 1.0)[self.host]
        x = self.rates * days
        with np.errstate(invalid="ignore"):
            fresh = np.where(x > 0, -np.expm1(-x) / np.maximum(x, 1e-300), self.rates <= 0)
        fresh = np.where(np.isinf(x), 0.0, fresh)
        return float((self.cost / days).sum()), float(1.0 - fresh @ demand / demand.sum())


@dataclass(frozen=True, slots=True)
class Needed:
    """The budget, in visits a day, for a target; None if no budget reaches it.

    `best` is the freshness if every page were visited as often as its host and the ticks allow.
    """

    target: float
    budget: float | None
    best: float


def needed(market: Market, budget: float, freshness: float, target: float) -> Needed:
    """The least budget with which freshness, by demand, reaches the target.

    Visits are taken to be spent where they buy the most. As the model may be off, its staleness is
    scaled so that at the present budget it is that of `freshness`, the estimate.

    >>> one = np.ones(2)
    >>> market = Market(one, one, one, np.array([0, 0]), np.array([np.inf]), 1e-3)
    >>> found = needed(market, 2.0, 0.632, 0.787)  # a visit a day; two a day
    >>> round(found.budget, 1)
    4.0
    """
    present = market.at(_solve(lambda price: market.at(price)[0] > budget))[1]
    odds = float(np.clip((1.0 - freshness) / max(present, 1e-9), *_ODDS))
    best = 1.0 - min(1.0, odds * market.at(_PRICES[0])[1])
    if best < target:
        return Needed(target, None, best)
    price = _solve(lambda price: odds * market.at(price)[1] <= 1.0 - target)
    return Needed(target, market.at(price)[0], best)


def _solve(cheap: Callable[[float], bool]) -> float:
    """The highest price (its logarithm) that is still cheap, if those below it are."""
    low, high = _PRICES
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if cheap(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Drift:
    """Changes that exploring visits found, changes foretold of them, and how unlike they are.

    `z` is the difference in standard errors. These allow for changes that come in waves: they are
    the larger of what the chances themselves make likely, and of what the ticks differ by.
    """

    visits: int
    found: float
    foretold: float
    z: float
    full: bool

    @property
    def ratio(self) -> float:
        """Changes found for each that was foretold."""
        return self.found / self.foretold if self.foretold > 0 else inf if self.found else 1.0

    @property
    def parted(self) -> bool:
        """Whether the two have parted: surely, and by far."""
        return self.full and self._beyond(_SURE, _FAR)

    @property
    def settled(self) -> bool:
        """Whether they agree again."""
        return not self._beyond(_CALM, _NEAR)

    def _beyond(self, errors: float, times: float) -> bool:
        return abs(self.z) >= errors and not 1.0 / times < self.ratio < times


def drift_of(ticks: Sequence[Gauge], found: Findings) -> Drift:
    """Compare what was foretold for the time of each visit with what it found."""
    some = found.take(~np.isnan(found.found) & ~np.isnan(found.chance))
    beyond = some.found - some.chance
    _, tick = np.unique(some.at, return_inverse=True)
    by_tick = np.bincount(tick, weights=beyond - (beyond.mean() if len(beyond) else 0.0))
    error = max(float(some.chance @ (1.0 - some.chance)), float(by_tick @ by_tick)) ** 0.5
    days = sum(t.days for t in ticks)
    return Drift(
        visits=len(some),
        found=float(some.found.sum()),
        foretold=float(some.chance.sum()),
        z=float(beyond.sum()) / error if error > 0 else 0.0,
        full=days * DAY_US >= _FULL * SPAN,
    )


def drift_alert(drift: Drift, at: int) -> Alert | None:
    """The alert that begins or lasts, the end of it, or None if nothing is to be said."""
    if drift.parted:
        more = f"{drift.found:.0f} of {drift.visits} exploring visits found a change"
        fault = f"{more} in the last 3 days, {drift.foretold:.1f} were foretold"
        return Alert(WHERE, KIND, at, fault)
    return Alert(WHERE, KIND, at, over=True) if drift.settled else None
