"""One change rate a page, worked out from sums over its visits and taken for known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime

import numpy as np

from salticus.predict.poisson import PoissonSurvival
from salticus.predict.roster import Roster
from salticus.predict.spans import Spans, answered
from salticus.types import Floats, Ints, Outcomes, Pages
from salticus.types.state import State


class PointRates(ABC):
    """A predictor that holds each page to one change rate, worked out from sums over its visits.

    The sums are visits answered, changes found, and days covered. A rate is worked out again only
    when a page was visited since. A page that was never answered twice has the mean rate of those
    that were, weighted by their days; before there is any, `default_rate`, changes a day.

    `recovers` names the spacings of visits under which a known rate is recovered.
    """

    recovers: tuple[str, ...] = ("even", "poisson", "bursts")
    sums: tuple[str, ...] = ("visits", "changes", "days")

    def __init__(self, *, default_rate: float = 0.25) -> None:
        self.default_rate = default_rate
        numbers = dict.fromkeys((*self.sums, "rate"), 0.0)
        self.pages_ = Roster(**numbers)  # a rate of NaN is to be worked out

    @abstractmethod
    def estimate(self, rows: Ints) -> Floats:
        """Changes a day of the pages in these rows, all of which have been answered."""

    def meet(self, pages: Pages, now: datetime) -> None:
        """Have sums for exactly these pages."""
        self.pages_.keep(pages.ids)

    def survival(self, pages: Pages, now: datetime) -> PoissonSurvival:
        return PoissonSurvival(self.rates(pages.ids))

    def rates(self, ids: Ints) -> Floats:
        """Change rate of each page (ids ascending), changes a day."""
        page = self.pages_
        rows = np.flatnonzero(np.isnan(page["rate"]))
        if len(rows):
            page["rate"][rows] = self.estimate(rows)
        watched = float(page["days"].sum())
        usual = float(page["days"] @ page["rate"]) / watched if watched else self.default_rate
        return np.where(page.get("visits", ids) > 0, page.get("rate", ids), usual)

    def learn(self, outcomes: Outcomes) -> None:
        spans = answered(outcomes)
        if len(spans):
            self._add(self.pages_.rows(spans.page), spans)

    def _add(self, rows: Ints, spans: Spans) -> None:
        page = self.pages_
        np.add.at(page["visits"], rows, 1.0)
        np.add.at(page["changes"], rows, spans.changed.astype(np.float64))
        np.add.at(page["days"], rows, spans.days)
        page["rate"][rows] = np.nan

    def state(self) -> State:
        return {name: column for name, column in self.pages_.state().items() if name != "rate"}

    def restore(self, state: State) -> None:
        self.pages_.restore({**state, "rate": np.where(state["visits"] > 0, np.nan, 0.0)})


class Naive(PointRates):
    """Δ = X/T: X changes found in T days (ALGORITHMS §5), for comparison only.

    Two changes between two visits are seen as one, so the estimate is low: visited every I days it
    tends to (1 − e^(−ΔI))/I, which is 63 % of the truth at ΔI = 1.

    >>> from salticus.checks.samples import poisson_outcomes
    >>> from salticus.testing import blank_pages
    >>> pages, model = blank_pages(4000), Naive()
    >>> for outcomes in poisson_outcomes(pages, 1.0, visits=20, spacing="even", seed=1):
    ...     model.learn(outcomes)
    >>> print(f"{model.rates(pages.ids).mean():.2f}")
    0.63
    """

    recovers = ()

    def estimate(self, rows: Ints) -> Floats:
        return np.asarray(self.pages_["changes"][rows] / self.pages_["days"][rows])


class BiasReduced(PointRates):
    """Δ = −ln((n − X + 0.5)/(n + 0.5))/I of Cho & Garcia-Molina (2003), ALGORITHMS §5.

    X of n visits found a change; I is the mean interval in days. Regular visits are assumed: under
    any other spacing the rate comes out low, since long gaps find a change almost surely and short
    ones almost never. At n = 10 the mean is within 0.5 % of the truth up to ΔI = 1, and 3 % below
    it at 2. Finite if every visit found a change, 0 if none did.
    """

    recovers = ("even",)

    def estimate(self, rows: Ints) -> Floats:
        visits, changes, days = (self.pages_[name][rows] for name in self.sums)
        return bias_reduced(visits, changes, days / visits)


def bias_reduced(visits: Floats, changes: Floats, interval: Floats) -> Floats:
    """Changes a day, from how many of so many visits found one, `interval` days apart.

    >>> bias_reduced(np.array([10.0, 10.0, 10.0]), np.array([0.0, 5.0, 10.0]), np.ones(3)).round(3)
    array([0.   , 0.647, 3.045])
    """
    return np.log((visits + 0.5) / (visits - changes + 0.5)) / interval
