"""How fresh the copy is, without bias: what the predictor thinks, corrected by exploring visits.

The difference estimator of survey sampling (Särndal, Swensson and Wretman 1992, §6.3): the mean of
the model over all pages, plus the mean of what a random sample found beyond the model. The model
may be wrong; then the interval is wider, not false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from salticus.types import Findings, Floats, Gauge

_DAY_US = 86_400_000_000
_Z = 1.96
_DOUBT = 0.1  # visits of either outcome that the interval allows for beside those made


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
    until_next = np.append(np.diff(at), np.inf) / _DAY_US
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
