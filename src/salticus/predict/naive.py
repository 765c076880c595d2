"""Changes seen per day watched: the estimate that everyone starts with."""

from __future__ import annotations

from salticus.predict.point import PointRates
from salticus.types import Floats, Ints


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
        return self.changes_.values[rows] / self.days_.values[rows]
