"""The budget that a freshness needs, by the visit price at which it is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from salticus.allocate.rates import intervals
from salticus.types import Floats, Ints

_STEPS = 60  # halvings of the logarithm of the price
_PRICES = (-60.0, 20.0)  # natural logarithms, for demand of 1 on average
_ODDS = (0.2, 5.0)  # how far a model that is off may be corrected


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
