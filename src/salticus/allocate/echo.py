"""ECHO: how often to revisit sources, so that new pages are found while people want them.

On a source, links to new pages appear at the rate λ, each worth P clicks at first, and P·e^(−md)
after d days. A source that is revisited every I days costs 1/I visits a day, and λ more for the
pages found on it; it earns Q = λP/(mI)·(1 − e^(−mI)) clicks a day (Lefortier et al. 2013;
ALGORITHMS §1.1). With w = λP/m and g(x) = 1 − (1+x)e^(−x), visits are spent best at one visit
price ω, at which w·g(mI) = ω on every source.

The rules part over which sources to keep. As published, those with w > ω. But λ is paid for each
that is kept, however seldom it is visited: that is worth it only while the oldest page found on a
visit still beats the price, P·e^(−mI) > ω, or w·g(ln(P/ω)) > ω (ALGORITHMS §1.3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from salticus.allocate.rates import g_inverse
from salticus.types import Floats
from salticus.types.compiled import compiled

EXACT = 1e-10
_PASSES = 200
_SAMPLE = 4096


class EchoSources(NamedTuple):
    """Of each source the new links a day, what one is worth when it appears (clicks), and by which
    factor e^−`decay` that falls in a day. All are above 0."""

    rate: Floats
    profit: Floats
    decay: Floats


class EchoIntervals(NamedTuple):
    """Days between visits to each source, inf = never, and the share of the time in which it is
    revisited at all: 1, or less at the price at which it is all the same."""

    interval: Floats
    share: Floats
    price: float

    def visits(self, rate: Floats, *, page_cost: float = 1.0) -> Floats:
        """Visits a day that each source costs, with those to the pages found on it."""
        kept = self.share > 0.0
        return np.where(kept, self.share * (1.0 / self.interval + page_cost * rate), 0.0)


class EchoRule(NamedTuple):
    """What a visit to a found page costs, whether to keep sources as published, and to which share
    of it the price is looked for: no more than this share of the earnings is lost."""

    page_cost: float
    published: bool
    exact: float = EXACT


def revisits(
    sources: EchoSources,
    visits: float,
    *,
    page_cost: float = 1.0,
    published: bool = False,
    exact: float = EXACT,
) -> EchoIntervals:
    """The intervals at which so many visits a day, to sources and to what is found on them, earn
    the most clicks; or those of the published rule. A visit to a page costs `page_cost`: 0 where
    the source itself says all, as a feed with whole articles does.

    At the price that spends all visits, a source may be about to be dropped; it is revisited for a
    share of the time, so that no visit is left. The price is `exact` to a share of it. Cost:
    linear, some twenty passes.

    >>> two = EchoSources(np.array([10.0, 1.0]), np.array([1.0, 5.0]), np.array([2.0, 2.0]))
    >>> found = revisits(two, 9.0)
    >>> found.interval.round(3), found.share.round(3), round(found.price, 3)
    (array([0.286, 0.448]), array([0.427, 1.   ]), 0.564)
    """
    if not len(sources.rate):
        return EchoIntervals(np.empty(0), np.empty(0), 0.0)
    rule = EchoRule(float(page_cost), published, exact)
    lo, hi = _close_in(sources, float(visits), rule)
    dear, cheap = _at(sources, hi, rule), _at(sources, lo, rule)
    few, many = _spent(sources, dear, rule), _spent(sources, cheap, rule)
    part = min(max((visits - few) / (many - few), 0.0), 1.0) if many > few else 1.0
    both = np.isfinite(dear)
    mixed = 1.0 / ((1.0 - part) / dear[both] + part / cheap[both])
    interval, share = cheap.copy(), np.where(np.isfinite(cheap), part, 0.0)
    interval[both], share[both] = mixed, 1.0
    return EchoIntervals(interval, share, lo)


def quality(sources: EchoSources, found: EchoIntervals) -> float:
    """Clicks a day that a crawl earns with these revisits (ALGORITHMS §1.1)."""
    x = np.where(found.share > 0.0, sources.decay * found.interval, np.inf)
    each = np.where(np.isfinite(x), -np.expm1(-x) / x, 0.0)
    return float((found.share * sources.rate * sources.profit * each).sum())


def oldest(sources: EchoSources, price: float) -> Floats:
    """Up to which age, days, a page of each source is worth the price: ln(P/ω)/m."""
    if price <= 0.0:
        return np.full(len(sources.rate), np.inf)
    return np.asarray(np.log(np.maximum(sources.profit / price, 1.0)) / sources.decay)


def keeping_all(sources: EchoSources, *, page_cost: float = 1.0, published: bool = False) -> float:
    """Visits a day above which no source is dropped."""
    rule = EchoRule(page_cost, published)
    lo, hi = 0.0, float((sources.rate * sources.profit / sources.decay).max())
    for _ in range(_PASSES):
        price = 0.5 * (lo + hi)
        every = bool((_shares(sources, price, rule) < 1.0).all())
        lo, hi = (price, hi) if every else (lo, price)
        if hi - lo <= EXACT * hi:
            break
    return _used(sources, lo, rule)


@compiled
def _g(x: float) -> float:
    return x * x * (0.5 - x / 3.0 + x * x / 8.0) if x < 1e-3 else -math.expm1(math.log1p(x) - x)


def _at(sources: EchoSources, price: float, rule: EchoRule) -> Floats:
    """Days between visits to each source at a price; inf if it is not worth any."""
    return g_inverse(_shares(sources, price, rule)) / sources.decay


@compiled
def _shares(sources: EchoSources, price: float, rule: EchoRule) -> Floats:
    """g(mI) = ω/w of each source; 1 where it is to be dropped."""
    rate, profit, decay = sources
    least = 0.0 if rule.published else rule.page_cost * price  # that a page must be worth
    out = np.ones(len(rate))
    for i in range(len(rate)):
        full = rate[i] * profit[i] / decay[i]
        best = 1.0 if least <= 0.0 else _g(math.log(max(profit[i] / least, 1.0)))
        if price < full * best:
            out[i] = price / full
    return out


@compiled
def _spent(sources: EchoSources, interval: Floats, rule: EchoRule) -> float:
    """Visits a day to the sources that are visited, and to what is found there."""
    total = 0.0
    for i in range(len(interval)):
        if interval[i] < math.inf:
            total += 1.0 / interval[i] + rule.page_cost * sources.rate[i]
    return total


def _used(sources: EchoSources, price: float, rule: EchoRule) -> float:
    return float(_spent(sources, _at(sources, price, rule), rule))


def _bracket(sources: EchoSources, visits: float, rule: EchoRule) -> tuple[float, float]:
    """A price at which about the visits are used or more, and one at which fewer are; by a sample
    if there are many sources."""
    hi = float((sources.rate * sources.profit / sources.decay).max()) * (1.0 + 1e-9)
    step = max(len(sources.rate) // _SAMPLE, 1)
    some = EchoSources(*(np.ascontiguousarray(column[::step]) for column in sources))
    lo, goal = hi, visits * len(some.rate) / len(sources.rate)
    while lo > 1e-300 and _used(some, lo, rule) < goal:
        lo, hi = lo / 4.0, lo
    return lo, hi


def _close_in(sources: EchoSources, visits: float, rule: EchoRule) -> tuple[float, float]:
    """A price at which too many visits are used, and one close above it at which too few are.

    Secant steps, and a geometric halving whenever a step leaves the bracket or did not halve what
    is amiss: where a source is dropped, what is used leaps.
    """
    lo, hi = _bracket(sources, visits, rule)
    while lo > 1e-300 and _used(sources, lo, rule) < visits:
        lo, hi = lo / 2.0, lo
    while _used(sources, hi, rule) > visits:
        lo, hi = hi, hi * 2.0
    price, before, was, earlier = math.sqrt(lo * hi), 0.0, math.inf, math.inf
    for _ in range(_PASSES):
        if hi - lo <= rule.exact * hi:
            break
        off = _used(sources, price, rule) - visits
        lo, hi = (price, hi) if off > 0.0 else (lo, price)
        slow = abs(off) > 0.5 * earlier
        step = off * (price - before) / (was - off) if was < math.inf and was != off else math.inf
        before, was, earlier, price = price, off, abs(was), price + step
        if slow or not lo < price < hi:
            price = math.sqrt(lo) * math.sqrt(hi)
    return lo, hi
