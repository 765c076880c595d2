"""What a bandit's arms have earned of late, for people to look at."""

from __future__ import annotations

import numpy as np

from salticus.allocate.bandit.step import Step
from salticus.types import Floats, Ints
from salticus.types.state import State

KEPT = 1_000  # steps; twelve weeks of two-hour ticks


class History:
    """The last steps: when each began (µs), the arm drawn (-1 = all), the reward as it was learnt,
    and the probability of each arm after that."""

    def __init__(self, arms: int) -> None:
        self.start: Ints = np.empty(0, dtype=np.int64)
        self.arm: Ints = np.empty(0, dtype=np.int64)
        self.reward: Floats = np.empty(0)
        self.chances: Floats = np.empty((0, arms))

    def add(self, step: Step, reward: float, chances: Floats) -> None:
        """Keep a step that is settled."""
        self.start = np.append(self.start, step.start)[-KEPT:]
        self.arm = np.append(self.arm, step.arm)[-KEPT:]
        self.reward = np.append(self.reward, reward)[-KEPT:]
        self.chances = np.concatenate([self.chances, chances[None, :]])[-KEPT:]

    def state(self) -> State:
        return {
            "start": self.start,
            "arm": self.arm,
            "reward": self.reward,
            "chances": self.chances,
        }

    def restore(self, state: State) -> None:
        if "chances" in state:
            self.start, self.arm = state["start"], state["arm"]
            self.reward, self.chances = state["reward"], state["chances"]
