"""What visits taught since the last tick, and who is to learn it."""

from __future__ import annotations

from functools import reduce
from typing import Protocol

import numpy as np

from salticus.types import Outcomes


class Learner(Protocol):
    """Anything that wants to know how visits ended."""

    def learn(self, outcomes: Outcomes) -> None: ...


class Lessons:
    """Collects outcomes as they come, and teaches them all at once, by the numbers of their visits.

    So it does not matter in which order and in what batches they came, nor to a restart.
    """

    def __init__(self) -> None:
        self._waiting: list[Outcomes] = []

    def learn(self, outcomes: Outcomes) -> None:
        self._waiting.append(outcomes)

    def teach(self, *parts: Learner) -> None:
        """Let the parts learn what was collected."""
        if not self._waiting:
            return
        outcomes, self._waiting = reduce(Outcomes.join, self._waiting), []
        outcomes = outcomes.take(np.argsort(outcomes.visit, kind="stable"))
        for part in parts:
            part.learn(outcomes)
