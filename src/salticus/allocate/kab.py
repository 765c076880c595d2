"""The bandits of Han et al. (2020) by name, and the fixed split that the paper sets against them.

KAB with a number of arms, as in §5.4.4 of the paper. All but `Kab5Printed` divide rewards by the
common denominator, and begin with a γ above the paper's 0.1, to learn in weeks and not in months.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from salticus.allocate.bandit.learners import Exp3, Exp3Ix, Exp3Plus
from salticus.allocate.bandit.policy import Arms, Bandit
from salticus.allocate.bandit.step import rows_of
from salticus.types import Floats, Ints, Pages
from salticus.types.state import State

CLICK = "demand_proportional"
CHANGE = "change_proportional"
IMPRESSION = "impression_proportional"
_WHOLE = float(np.iinfo(np.uint16).max)
EVERY = (CLICK, CHANGE, "uniform", IMPRESSION, "lambdacrawl")


class Split(Arms):
    """An equal, fixed part of the visits for each of the five strategies of Table 2.

    The alternative that Han et al. (2020), §3.2.1, argue against: strategies overlap, so that what
    several of them like is visited too often. Cost: that of all of them together.
    """

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(EVERY, seed=seed)

    def expected(self, pages: Pages, visits: float) -> Floats:
        each = (policy.expected(pages, visits) for policy in self.policies)
        return np.asarray(sum(each, np.zeros(len(pages))) / len(self))


class Mixture(Bandit):
    """Expects π = Σ q_k ρ^k, and judges each arm by importance weights (ALGORITHMS §7, "Better").

    Pages are the actions and arms the experts, as in EXP4 (Auer et al. 2002). Arm k earned
    x_k = Σ ρ^k μ z 1(stale) / (π M), an unbiased estimate of what it would have found; stretched as
    a bandit's reward is. All learn each step, by w_k ← w_k exp(γ x_k), and so in less time.

    Which part of π is due to arm k, q_k ρ^k / π, is kept for each page as a 16-bit fraction
    until the step is settled: 2K bytes a page. Cost: that of all arms together.
    """

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.learner_ = self.experts_ = Exp3(len(self.arms_))
        self.ids_: Ints = np.empty(0, dtype=np.int64)
        self.due_: NDArray[np.uint16] = np.empty((len(self.arms_), 0), dtype=np.uint16)
        self._due_next = (self.ids_, self.due_)

    def _answer(self, pages: Pages, visits: float) -> Floats:
        parts = self._parts(pages, visits)
        return np.asarray(np.minimum(parts.sum(axis=0), 1.0))

    def _parts(self, pages: Pages, visits: float) -> Floats:
        """Visits due to each arm, q_k ρ^k: a row an arm."""
        chances = zip(self.learner_.probabilities(), self.arms_.policies, strict=True)
        return np.array([q * policy.expected(pages, visits) for q, policy in chances])

    def _begin(self, pages: Pages, visits: float) -> Floats:
        parts = self._parts(pages, visits)
        mass = float((parts @ pages.demand / self.learner_.probabilities()).max())
        self._asked = self.step_.after(pages.tick, -1, mass)
        mixed = parts.sum(axis=0)
        due = np.rint(parts * (_WHOLE / np.maximum(mixed, 1e-300))).astype(np.uint16)
        self._due_next = (pages.ids, due)
        return np.asarray(np.minimum(mixed, 1.0))

    def adopt(self) -> None:
        if self._asked is not None:
            self.ids_, self.due_ = self._due_next
        super().adopt()

    def _reward(self, gains: Floats, whole: float) -> None:
        rows, there = rows_of(self.ids_, self.step_.found()[0])
        due = np.where(there, self.due_[:, rows], 0) / _WHOLE
        factor = self.stretch_.factor(min(1.0, float(gains.sum()) / whole))
        earned = factor / whole * (due @ gains)
        self.experts_.update_all(earned / self.learner_.probabilities())
        self.history_.add(self.step_, float(earned.sum()), self.learner_.probabilities())

    def state(self) -> State:
        return {**super().state(), "ids": self.ids_, "due": self.due_}

    def restore(self, state: State) -> None:
        super().restore(state)
        if self.arms_.are_of(state):
            self.ids_, self.due_ = state["ids"], state["due"]


class Kab2(Bandit):
    """EXP3 over click- and change-weighted visits."""

    arms = EVERY[:2]


class Kab3(Bandit):
    """KAB2 and uniform visits, which reach the pages that are hard to predict."""

    arms = EVERY[:3]


class Kab3Impressions(Bandit):
    """KAB2 and impression-weighted visits; published as no better than KAB2."""

    arms = (CLICK, CHANGE, IMPRESSION)


class Kab4(Bandit):
    """KAB3 and impression-weighted visits: all strategies but LambdaCrawl."""

    arms = EVERY[:4]


class Kab5(Bandit):
    """KAB4 and LambdaCrawl: the paper's best policy, with the common denominator."""

    arms = EVERY


class Kab5Printed(Kab5):
    """KAB5 as printed: γ = 0.1 throughout, and as reward the stale share of the demand visited.

    For comparison: it learns to visit what is always stale, not what is read (ALGORITHMS §7).
    """

    learner = Exp3
    common = False


class Kab5Ix(Kab5):
    """KAB5 that learns by EXP3-IX."""

    learner = Exp3Ix


class Kab5Plus(Kab5):
    """KAB5 that learns by EXP3++."""

    learner = Exp3Plus


class Kab5Mixture(Mixture):
    """KAB5 that draws pages from the mixture of its arms, all of which learn from every visit."""

    arms = EVERY
