"""The streaming Gamma filter: a change rate with its uncertainty, at O(1) a visit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from salticus.predict.base import Evidence
from salticus.predict.roster import Roster
from salticus.predict.spans import answered, rounds
from salticus.types import Bools, Columns, Floats, Ints, Outcomes, Pages, Survival
from salticus.types.state import State


@dataclass(frozen=True, slots=True)
class GammaSurvival(Columns):
    """S(u) = (b/(b+u))^a: a Poisson change rate with a Gamma(a, b) posterior, b in days."""

    a: Floats
    b: Floats

    def unchanged(self, ages: Floats) -> Floats:
        return np.exp(-self.a * np.log1p(ages / self.b))

    def integral(self, ages: Floats) -> Floats:
        """∫₀^τ S = b/(a−1)·(1 − (b/(b+τ))^(a−1)), and its limit b·ln(1+τ/b) at a = 1."""
        grown, power = np.log1p(ages / self.b), self.a - 1.0
        flat = np.abs(power) < 1e-9
        safe = np.where(flat, 1.0, power)
        return np.where(flat, self.b * grown, -self.b * np.expm1(-safe * grown) / safe)

    def worth(self, ages: Floats, step: float) -> Floats:
        """V(τ) in days, with visits every `step` days at most."""
        from salticus.predict.worth import gamma_worth  # compiled; not everyone needs it

        return gamma_worth(self.a, self.b, ages, step)

    def rates(self) -> Floats:
        return np.asarray(self.a / self.b)


class Gamma:
    """Each page's change rate as a Gamma(a, b) posterior, updated by every answered visit.

    Unchanged for τ days: b += τ, exactly. Changed within τ: the posterior is a mixture, replaced by
    the Gamma with its mean and variance (assumed-density filter, ALGORITHMS §5). Failed visits and
    first answers teach nothing. The prior says `prior_changes` changes in `prior_days` days.

    >>> model = Gamma()
    >>> model.rates(np.array([1, 2]))  # nothing known yet: the prior's mean, changes a day
    array([0.25, 0.25])
    """

    def __init__(self, *, prior_changes: float = 0.5, prior_days: float = 2.0) -> None:
        self.prior_changes = prior_changes
        self.prior_days = prior_days
        self.pages_ = Roster(a=prior_changes, b=prior_days)

    def meet(self, pages: Pages, now: datetime) -> None:
        """Have a posterior for exactly these pages."""
        self.pages_.keep(pages.ids)

    def survival(self, pages: Pages, now: datetime) -> Survival:
        if self.pages_.holds(pages.ids):
            return GammaSurvival(self.pages_["a"], self.pages_["b"])
        return GammaSurvival(*self._posterior(pages.ids))

    def rates(self, ids: Ints) -> Floats:
        """Mean change rate of each page (ids ascending), changes a day."""
        a, b = self._posterior(ids)
        return a / b

    def evidence(self, ids: Ints) -> Evidence:
        """What the rates of these pages (ids ascending) rest on."""
        prior = np.full(len(ids), self.prior_changes), np.full(len(ids), self.prior_days)
        return Evidence(*self._posterior(ids), *prior)

    def learn(self, outcomes: Outcomes) -> None:
        spans = answered(outcomes)
        start = _runs(spans.page, spans.changed)
        page, changed = spans.page[start], spans.changed[start]
        days = np.add.reduceat(spans.days, start) if len(start) else spans.days
        for some in rounds(page):
            rows = self.pages_.rows(page[some])
            a, b = self.pages_["a"], self.pages_["b"]
            a[rows], b[rows] = posterior(a[rows], b[rows], days[some], changed[some])

    def _posterior(self, ids: Ints) -> tuple[Floats, Floats]:
        return self.pages_.get("a", ids), self.pages_.get("b", ids)

    def state(self) -> State:
        return self.pages_.state()

    def restore(self, state: State) -> None:
        self.pages_.restore(state)


def _runs(page: Ints, changed: Bools) -> Ints:
    """Where each change, or run of visits without one, starts; unchanged spans simply add up.

    >>> _runs(np.array([1, 1, 1, 2]), np.array([False, False, True, False])).tolist()
    [0, 2, 3]
    """
    same = (page[1:] == page[:-1]) & ~changed[1:] & ~changed[:-1]
    return np.flatnonzero(np.append(True, ~same)[: len(page)])


def posterior(a: Floats, b: Floats, tau: Floats, changed: Bools) -> tuple[Floats, Floats]:
    """Gamma(a, b) after a visit τ days after the last one (ALGORITHMS §5)."""
    log_q = -np.log1p(tau / b)
    none = -np.expm1(a * log_q)
    mean = a / b * (-np.expm1((a + 1) * log_q)) / none
    square = a * (a + 1) / b**2 * (-np.expm1((a + 2) * log_q)) / none
    spread = np.maximum(square - mean**2, 1e-12 * square)
    return np.where(changed, mean**2 / spread, a), np.where(changed, mean / spread, b + tau)
