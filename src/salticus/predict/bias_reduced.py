"""Change rates from regular visits, corrected for the changes that no visit could tell apart."""

from __future__ import annotations

import numpy as np

from salticus.predict.point import PointRates
from salticus.types import Floats, Ints


class BiasReduced(PointRates):
    """Δ = −ln((n − X + 0.5)/(n + 0.5))/I of Cho & Garcia-Molina (2003), ALGORITHMS §5.

    X of n visits found a change; I is the mean interval in days. Regular visits are assumed: under
    any other spacing the rate comes out low, since long gaps find a change almost surely and short
    ones almost never. At n = 10 the mean is within 0.5 % of the truth up to ΔI = 1, and 3 % below
    it at 2. Finite if every visit found a change, 0 if none did.
    """

    recovers = ("even",)

    def estimate(self, rows: Ints) -> Floats:
        n, interval = self.visits_.values[rows], self.days_.values[rows] / self.visits_.values[rows]
        return bias_reduced(n, self.changes_.values[rows], interval)


def bias_reduced(visits: Floats, changes: Floats, interval: Floats) -> Floats:
    """Changes a day, from how many of so many visits found one, `interval` days apart.

    >>> bias_reduced(np.array([10.0, 10.0, 10.0]), np.array([0.0, 5.0, 10.0]), np.ones(3)).round(3)
    array([0.   , 0.647, 3.045])
    """
    return np.log((visits + 0.5) / (visits - changes + 0.5)) / interval
