"""LambdaCrawl and its kin: policies that share visits out at one visit price."""

from __future__ import annotations

import numpy as np

from salticus.allocate import rates
from salticus.allocate.base import Policy, known
from salticus.allocate.rates import Asking
from salticus.errors import ConfigError
from salticus.types import Floats, Ints, Pages


def worth(pages: Pages, name: str = "demand") -> Floats:
    """What a visit is worth by this column, a day and unit of cost; its changes not yet counted."""
    column = known(name, getattr(pages, name), pages.ids)
    return np.asarray(column / known("cost", pages.cost, pages.ids))


def changes(pages: Pages) -> Floats:
    """Changes of each page in a tick; one a day for all where nothing predicts them."""
    if pages.survival is None:
        return np.full(len(pages), pages.tick.days)
    return known("change rate", pages.survival.rates(), pages.ids) * pages.tick.days


def chances(pages: Pages) -> Floats:
    """The chance of each page to change within the tick, 1 − e^(−Δh)."""
    column = np.negative(changes(pages))
    np.expm1(column, out=column)  # in place: new memory would take most of the time
    return np.negative(column, out=column)


class PricedRates(Policy):
    """A policy under which every visit buys the same at the margin; subclasses say what it buys.

    No page gets less than `floor` of an equal share.
    """

    floor: float = 0.0

    def asking(self, pages: Pages) -> Asking:
        """What each page asks for, at any price."""
        raise NotImplementedError

    def expected(self, pages: Pages, visits: float) -> Floats:
        return rates.spend(self.asking(pages), visits, floor=self.floor)

    def expected_by_host(self, pages: Pages, room: Floats) -> Floats:
        """Expected visits when each host gets its `room` of them, at a price of its own.

        Given the hosts that are full, this and `expected` of the other pages are the optimum under
        host caps (Kolobov et al. 2019b; ALGORITHMS §4.2).
        """
        return rates.spend_by_host(self.asking(pages), pages.host, room, floor=self.floor)


class LambdaCrawl(PricedRates):
    """The most demand met by a fresh copy, if pages change at constant rates: exact, in ticks.

    With p the chance of change in a tick and μ demand / cost, maximises Σ μρ/(p + ρ(1−p)):
    ρ = (√(μp/Λ) − p)/(1−p), clipped to [0, 1], with the price Λ at which the visits are spent
    (Azar et al. 2018; in this form Han et al. 2020, Table 2, who ran it so but print it without
    the clipping: see `LambdaCrawlPrinted`). Pages that change too fast for their demand get none.

    >>> from dataclasses import replace
    >>> from salticus.testing import blank_pages
    >>> pages = replace(blank_pages(3), demand=np.array([1.0, 4.0, 0.0]))
    >>> LambdaCrawl().expected(pages, visits=0.5).round(4)
    array([0.1377, 0.3623, 0.    ])
    """

    demand = "demand"

    def asking(self, pages: Pages) -> Asking:
        return rates.discrete(worth(pages, self.demand), chances(pages))


class LambdaCrawlImpressions(LambdaCrawl):
    """LambdaCrawl with impressions a day as demand (Han et al. 2020, §5.3)."""

    demand = "impressions"


class LambdaCrawlFloor(LambdaCrawl):
    """LambdaCrawl in which no page gets less than `floor` of an equal share, ρ ≥ ε·R/n.

    The middle way between binary and harmonic freshness in Kolobov et al. (2019), who found
    ε = 0.4 best on harmonic cost. On a full host the share is one of its room.
    """

    def __init__(self, *, floor: float = 0.4) -> None:
        if not 0.0 <= floor <= 1.0:
            raise ConfigError(f"floor = {floor}: give the share of the budget, from 0 to 1")
        self.floor = floor


class LambdaCrawlContinuous(PricedRates):
    """LambdaCrawl where visits and changes come at random times, not in ticks.

    Maximises Σ μρ/(ρ + Δ): ρ = √(μΔ/Λ) − Δ (Azar et al. 2018). Rates are those of a tick; a page
    is cut to one visit, and what is cut goes to the others at the common price.
    """

    def asking(self, pages: Pages) -> Asking:
        return rates.continuous(worth(pages), changes(pages))


class FixedOptimum(PricedRates):
    """The most demand met by a fresh copy if visits come at fixed intervals.

    Maximises Σ μ(ρ/Δ)(1 − e^(−Δ/ρ)): ρ = Δ/g⁻¹(ΛΔ/μ), g(x) = 1 − (1+x)e^(−x) (Cho and Garcia-Molina
    2003). Meant for the spacing `even`. At the threshold μ/Δ = Λ rates fall to 0 within rounding;
    pages there share what is left.
    """

    def asking(self, pages: Pages) -> Asking:
        return rates.fixed(worth(pages), changes(pages))


class Harmonic(PricedRates):
    """Staleness that grows with every change missed, 1 + 1/2 + 1/3 + …; no page starves.

    Minimises Σ μ·ln(1 + Δ/ρ): ρ = (Δ/2)(√(1 + 4μ/(ΛΔ)) − 1), at most 1, and above 0 for every page
    that has demand and changes (Kolobov et al. 2019, for pages seen only by crawling).
    """

    def asking(self, pages: Pages) -> Asking:
        return rates.harmonic(worth(pages), changes(pages))


def printed_rates(worth: Floats, chance: Floats, visits: float) -> Floats:
    """The closed form of Table 2 as it stands: may be negative, or above one.

    ρ = (√(μp/λ) − p)/(1−p) with λ = (Σ √(μp)/(1−p) / (b + Σ p/(1−p)))² over all pages. It sums to
    b = `visits`, and divides by zero at p = 1.

    >>> printed_rates(np.array([1.0, 100.0]), np.array([0.5, 0.5]), 0.5).round(4)
    array([-0.7727,  1.2727])
    """
    host = np.zeros(len(worth), dtype=np.int64)
    return _printed(worth, chance, host, np.array([float(visits)]))


def _printed(worth: Floats, chance: Floats, host: Ints, room: Floats) -> Floats:
    """The closed form with a λ for each host."""
    root, left = np.sqrt(worth * chance), 1.0 - chance
    asked = np.bincount(host, weights=root / left, minlength=len(room))
    given = room + np.bincount(host, weights=chance / left, minlength=len(room))
    scale = np.divide(given, asked, out=np.zeros(len(room)), where=asked > 0.0)  # 1/√λ
    return np.asarray((root * scale[host] - chance) / left)


class LambdaCrawlPrinted(Policy):
    """The closed form of Han et al. (2020), Table 2, cut to [0, 1] and scaled to the visits.

    For comparison only: λ is taken over all pages, which is right only if none is at 0 or 1. Pages
    that should get none have negative rates, others above one; at p = 1 it divides by zero (p is
    kept below 0.999). Cut and scaled to the visits until both hold (water filling), it loses some
    percent of the objective. Han et al. ran the algorithm of Azar et al. (2018) instead.

    >>> from dataclasses import replace
    >>> from salticus.testing import blank_pages
    >>> pages = replace(blank_pages(3), demand=np.array([1.0, 4.0, 0.0]))
    >>> LambdaCrawlPrinted().expected(pages, visits=0.5).round(4)
    array([0.142, 0.358, 0.   ])
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return self._shared(pages, np.zeros(len(pages), dtype=np.int64), np.array([float(visits)]))

    def expected_by_host(self, pages: Pages, room: Floats) -> Floats:
        return self._shared(pages, pages.host, room)

    def _shared(self, pages: Pages, host: Ints, room: Floats) -> Floats:
        room = np.minimum(room, np.bincount(host, minlength=len(room)))
        chance = chances(pages)
        chance = np.where(chance > 0.0, np.clip(chance, rates.LEAST, rates.MOST), 0.0)
        raw = _printed(worth(pages), chance, host, room)
        return rates.spend_by_host(rates.proportional(np.clip(raw, 0.0, 1.0)), host, room)
