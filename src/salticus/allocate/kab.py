"""The bandits of Han et al. (2020) by name, and the fixed split that the paper sets against them.

KAB with a number of arms, as in §5.4.4 of the paper. All but `Kab5Printed` divide rewards by the
common denominator, and begin with a γ above the paper's 0.1, to learn in weeks and not in months.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from salticus.allocate.bandit.learners import Exp3, Exp3Ix, Exp3Plus
from salticus.allocate.bandit.mixture import Contextual, Mixture
from salticus.allocate.bandit.policy import Arms, Bandit
from salticus.types import Floats, Pages

CLICK = "demand_proportional"
CHANGE = "change_proportional"
IMPRESSION = "impression_proportional"
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


class Printed(Bandit):
    """As printed: γ = 0.1 throughout, and as reward the stale share of the demand visited.

    For comparison: it learns to visit what is always stale, not what is read (ALGORITHMS §7).
    """

    learner = Exp3
    common = False


class Ix(Bandit):
    """Learns by EXP3-IX."""

    learner = Exp3Ix


class Plus(Bandit):
    """Learns by EXP3++."""

    learner = Exp3Plus


_SETS = (Kab2, Kab3, Kab3Impressions, Kab4, Kab5)
_WAYS = (Printed, Ix, Plus, Mixture, Contextual)


@cache
def __getattr__(name: str) -> type[Bandit]:
    """Every set of arms with every way to learn, by both names: `Kab3Ix` is KAB3 by EXP3-IX."""
    for arms in _SETS:
        for way in _WAYS:
            if name == arms.__name__ + way.__name__:
                told = f"{arms.__name__.upper()}. {way.__doc__}"
                return type(name, (way,), {"arms": arms.arms, "__doc__": told})
    raise AttributeError(name)
