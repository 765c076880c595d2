"""The bandits of Han et al. (2020) by name, and the fixed split that the paper sets against them.

KAB with a number of arms, as in §5.4.4 of the paper. All but `Kab5Printed` divide rewards by the
common denominator, and begin with a γ above the paper's 0.1, to learn in weeks and not in months.
"""

from __future__ import annotations

import numpy as np

from salticus.allocate.bandit.arms import Arms
from salticus.allocate.bandit.learners import Exp3, Exp3Ix, Exp3Plus
from salticus.allocate.bandit.mixture import Mixture
from salticus.allocate.bandit.policy import Bandit
from salticus.types import Floats, Outcomes, Pages
from salticus.types.state import State

CLICK = "demand_proportional"
CHANGE = "change_proportional"
IMPRESSION = "impression_proportional"
EVERY = (CLICK, CHANGE, "uniform", IMPRESSION, "lambdacrawl")


class Split:
    """An equal, fixed part of the visits for each of the five strategies of Table 2.

    The alternative that Han et al. (2020), §3.2.1, argue against: strategies overlap, so that what
    several of them like is visited too often. Cost: that of all of them together.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.arms_ = Arms(EVERY, seed=seed)

    def expected(self, pages: Pages, visits: float) -> Floats:
        each = (self.arms_.expected(arm, pages, visits) for arm in range(len(EVERY)))
        return np.asarray(sum(each, np.zeros(len(pages))) / len(EVERY))

    def learn(self, outcomes: Outcomes) -> None:
        self.arms_.learn(outcomes)

    def state(self) -> State:
        return self.arms_.state()

    def restore(self, state: State) -> None:
        self.arms_.restore(state)


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
