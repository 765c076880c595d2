"""Survival under a change rate that is taken for known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.types import Columns, Floats


@dataclass(frozen=True, slots=True)
class PoissonSurvival(Columns):
    """S(u) = e^(−Δu): changes come at random, `rate` a day (0 = never).

    >>> PoissonSurvival(np.array([0.0, 0.5])).integral(np.array([3.0, 2.0])).round(4)
    array([3.    , 1.2642])
    """

    rate: Floats

    def unchanged(self, ages: Floats) -> Floats:
        return np.exp(-self.rate * ages)

    def integral(self, ages: Floats) -> Floats:
        """∫₀^τ S = (1 − e^(−Δτ))/Δ, and its limit τ at Δ = 0."""
        still = self.rate <= 0
        safe = np.where(still, 1.0, self.rate)
        return np.where(still, ages, -np.expm1(-safe * ages) / safe)

    def worth(self, ages: Floats, step: float) -> Floats:
        """V(τ) in days with visits every `step` days at most; (1/Δ)·g(Δτ) for a small step."""
        from salticus.predict.worth import poisson_worth  # compiled; not everyone needs it

        return poisson_worth(self.rate, ages, step)

    def rates(self) -> Floats:
        return self.rate
