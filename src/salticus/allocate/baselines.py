"""The usual first ideas, and the papers' baselines: all alike, in turn, in proportion."""

from __future__ import annotations

import numpy as np

from salticus.allocate.base import Policy, known
from salticus.allocate.share import first, in_proportion
from salticus.types import Floats, Pages


class Uniform(Policy):
    """Every page gets the same share of the visits.

    The baseline of Cho and Garcia-Molina (2003), and what a cron job over a list does.

    >>> from salticus.testing import blank_pages
    >>> Uniform().expected(blank_pages(4), visits=2.0)
    array([0.5, 0.5, 0.5, 0.5])
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return np.full(len(pages), min(1.0, visits / max(1, len(pages))))


class RoundRobin(Policy):
    """The oldest visit first, and pages never visited before all others.

    A queue to which every page returns once it is visited. Cost: linear in pages.

    >>> from dataclasses import replace
    >>> from salticus.testing import blank_pages
    >>> last_visit = np.array(["2026-01-02", "NaT", "2026-01-01"], dtype="M8[us]")
    >>> RoundRobin().expected(replace(blank_pages(3), last_visit=last_visit), visits=2.0)
    array([0., 1., 1.])
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return first(pages.last_visit.view(np.int64), visits)  # NaT is the lowest integer


class ChangeProportional(Policy):
    """Visits in proportion to the chance that a page changes within a day, 1 − S(1 day).

    "Change weighted (Δ)" of Han et al. (2020), Table 2, with none above one visit a tick. Cho and
    Garcia-Molina (2003) show that it may do worse than uniform: it chases pages that change too
    fast to be held. Without a predictor all pages count alike.

    >>> from dataclasses import replace
    >>> from salticus.predict.gamma import GammaSurvival
    >>> from salticus.testing import blank_pages
    >>> survival = GammaSurvival(a=np.array([1.0, 1.0]), b=np.array([1.0, 3.0]))
    >>> ChangeProportional().expected(replace(blank_pages(2), survival=survival), visits=0.9)
    array([0.6, 0.3])
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        day = np.ones(len(pages))
        changed = day if pages.survival is None else 1.0 - pages.survival.unchanged(day)
        return in_proportion(known("chance of change", changed, pages.ids), visits)


class DemandProportional(Policy):
    """Visits in proportion to demand, clicks a day.

    "Click weighted (μ)" of Han et al. (2020), Table 2. Pages without demand share equally what is
    left when all others have their visit.
    """

    column = "demand"

    def expected(self, pages: Pages, visits: float) -> Floats:
        return in_proportion(known(self.column, getattr(pages, self.column), pages.ids), visits)


class ImpressionProportional(DemandProportional):
    """The same with impressions a day: "impression weighted (ν)" of Han et al. (2020), Table 2."""

    column = "impressions"
