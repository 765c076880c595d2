"""Visits in proportion to something: the usual first ideas, and the papers' baselines."""

from __future__ import annotations

import numpy as np

from salticus.allocate.base import known
from salticus.allocate.share import in_proportion
from salticus.types import Floats, Outcomes, Pages


class ChangeProportional:
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

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing: the predictor learns."""


class DemandProportional:
    """Visits in proportion to demand, clicks a day.

    "Click weighted (μ)" of Han et al. (2020), Table 2. Pages without demand share equally what is
    left when all others have their visit.
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return in_proportion(known("demand", pages.demand, pages.ids), visits)

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing to learn."""


class ImpressionProportional:
    """Visits in proportion to impressions a day.

    "Impression weighted (ν)" of Han et al. (2020), Table 2. Pages without impressions share equally
    what is left when all others have their visit.
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return in_proportion(known("impressions", pages.impressions, pages.ids), visits)

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing to learn."""
