"""The scale of rewards: a bandit learns from what fills [0, 1], and freshness gained does not."""

from __future__ import annotations

import numpy as np

from salticus.types import Floats

_RECENT = 256  # steps; three weeks of two-hour ticks


class Stretch:
    """Stretches rewards so that one in five of the recent ones above 0 is cut at 1.

    With a common denominator rewards are small, because well-kept copies are seldom stale: on a
    market 0.19, 0.06 and 0.02 on average for the best arm at 1, 10 and 50 % budget. EXP3 moves a
    weight by γ/K · x a step at most, so that two months of ticks of two hours would not tell arms
    apart. The factor is the same for every arm, and depends on what all have earned of late.
    `quantile` is the share of rewards that are not cut.

    >>> stretch = Stretch()
    >>> [round(reward * stretch.factor(reward), 3) for reward in (0.0, 0.02, 0.01)]
    [0.0, 1.0, 0.556]
    """

    def __init__(self, *, quantile: float = 0.8) -> None:
        self.quantile = quantile
        self.recent_: Floats = np.empty(0)

    def factor(self, reward: float) -> float:
        """What to multiply this reward with, 1 or more."""
        if reward > 0:
            self.recent_ = np.append(self.recent_, reward)[-_RECENT:]
        if not len(self.recent_):
            return 1.0
        return 1.0 / float(np.quantile(self.recent_, self.quantile))
