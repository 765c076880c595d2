"""A bandit as a policy: each tick an arm is drawn, and judged by what its visits found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from salticus import plugins
from salticus.allocate import BUILTIN
from salticus.allocate.bandit.learners import Exp3Anytime, Learner
from salticus.allocate.bandit.step import History, Step, rows_of
from salticus.allocate.base import Policy, Stepwise, Thrifty, known
from salticus.errors import ConfigError
from salticus.types import Floats, Outcomes, Pages
from salticus.types.coins import coins
from salticus.types.state import Remembers, State, part_of

_RECENT = 256  # steps; three weeks of two-hour ticks
_UNCUT = 0.8  # share of rewards that are stretched to 1 at most
_OTHERS = 11 << 32  # spacings and planners flip coins of the same seed

Arm = str | Callable[[], Policy]


class Arms:
    """Policies side by side: by name, as ``file.py:Class``, or as anything that makes one."""

    def __init__(self, arms: Sequence[Arm], *, seed: int) -> None:
        if not arms:
            raise ConfigError("a bandit has no arms; name some policies in its class: arms = (...)")
        self.names = [arm if isinstance(arm, str) else arm.__name__ for arm in arms]
        self.policies = [_made(arm, seed) for arm in arms]
        self.stepwise = [policy for policy in self.policies if isinstance(policy, Stepwise)]
        thrifty = [policy for policy in self.policies if isinstance(policy, Thrifty)]
        self.spends = all(policy.spends for policy in thrifty)

    def __len__(self) -> int:
        return len(self.policies)

    def begin(self, pages: Pages) -> None:
        for policy in self.stepwise:
            policy.begin(pages)

    def adopt(self) -> None:
        for policy in self.stepwise:
            policy.adopt()

    def learn(self, outcomes: Outcomes) -> None:
        """All learn from every visit, whoever asked for it."""
        for policy in self.policies:
            policy.learn(outcomes)

    def state(self) -> State:
        """What the arms remember, each under its number, and what they are called."""
        kept = {
            f"arm{number}/{name}": column
            for number, policy in enumerate(self.policies)
            if isinstance(policy, Remembers)
            for name, column in policy.state().items()
        }
        return {"names": np.array(self.names), **kept}

    def are_of(self, state: State) -> bool:
        return bool(state["names"].tolist() == self.names)

    def restore(self, state: State) -> None:
        for number, policy in enumerate(self.policies):
            if isinstance(policy, Remembers):
                policy.restore(part_of(state, f"arm{number}/"))


def _made(arm: Arm, seed: int) -> Policy:
    if not isinstance(arm, str):
        return arm()
    made: Policy = plugins.make("policy", arm, BUILTIN, seed=seed)
    return made


class Bandit:
    """Draws one of its `arms` each tick, by a coin of (seed, tick), and expects what it expects.

    After Han et al. (2020), §3.2. The step is settled when the next tick begins. Its reward is
    the demand μ of pages that were visited and found stale, divided by M = max_k Σ μ ρ^k, the most
    that any arm would have visited; then stretched (`Stretch`). The paper divides by what the arm
    itself visited, Σ μ z (`common` = False): then an arm that visits always-stale pages that nobody
    reads scores near 1, and wins (ALGORITHMS §7).

    Only visits of which it is known whether the page had changed count, and M for their share of
    the visits. Rewards need coins: at even spacing a visit belongs to the arm of an earlier tick.
    A subclass names `arms` and `learner`. Cost: that of all arms; as printed, of the arm drawn.
    """

    spacing = "coin"
    arms: ClassVar[Sequence[Arm]] = ()
    learner: ClassVar[type[Learner]] = Exp3Anytime
    common: ClassVar[bool] = True

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.arms_ = Arms(self.arms, seed=seed)
        self.spends = self.arms_.spends
        self.learner_ = self.learner(len(self.arms_))
        self.step_ = Step()
        self._asked: Step | None = None  # the step that the last answer would begin
        self.stretch_ = Stretch()
        self.history_ = History(len(self.arms_))

    def expected(self, pages: Pages, visits: float) -> Floats:
        known("demand", pages.demand, pages.ids)
        number = pages.tick.number
        if number == self.step_.tick or (self._asked is not None and number == self._asked.tick):
            return self._answer(pages, visits)
        return self._begin(pages, visits)

    def begin(self, pages: Pages) -> None:
        """Judge the last step, by the demand that is known now."""
        self._asked = None
        self.arms_.begin(pages)
        if pages.tick.number != self.step_.tick:
            self._settle(pages)
            self.step_ = self.step_.over()

    def adopt(self) -> None:
        """The step of the last answer begins."""
        self.arms_.adopt()
        if self._asked is not None:
            self.step_, self._asked = self._asked, None
            self.history_.begin(self.step_, self.learner_.probabilities())

    def learn(self, outcomes: Outcomes) -> None:
        self.step_.learn(outcomes)
        self.arms_.learn(outcomes)

    # ------------------------------------------------------------------------------ one step

    def _answer(self, pages: Pages, visits: float) -> Floats:
        return self.arms_.policies[self._drawn(pages.tick.number)].expected(pages, visits)

    def _begin(self, pages: Pages, visits: float) -> Floats:
        """Draw an arm. Every arm is asked only if the reward needs it."""
        drawn = self._drawn(pages.tick.number)
        mass, answer = 0.0, np.empty(0)
        for arm in range(len(self.arms_)) if self.common else [drawn]:
            expected = self.arms_.policies[arm].expected(pages, visits)
            mass = max(mass, float(pages.demand @ expected))
            answer = expected if arm == drawn else answer
        self._asked = self.step_.after(pages.tick, drawn, mass)
        return answer

    def _drawn(self, tick: int) -> int:
        chance = coins(self.seed + _OTHERS, np.zeros(1, dtype=np.int64), tick)[0]
        return _nth(self.learner_.probabilities(), float(chance))

    def _settle(self, pages: Pages) -> None:
        """Reward the arm whose step is over, with the demand known by now."""
        page, stale = self.step_.found()
        rows, there = rows_of(pages.ids, page)
        demand = np.where(there, pages.demand[rows], 0.0) if len(pages) else np.zeros(len(page))
        whole = float(demand.sum())
        if self.common:
            whole = self.step_.mass * len(demand) / max(1, self.step_.visits)
        if whole > 0:  # else the step taught nothing
            self._reward(np.where(stale, demand, 0.0), whole)

    def _reward(self, gains: Floats, whole: float) -> None:
        """Learn from the demand of pages found stale, visit by visit."""
        reward = min(1.0, float(gains.sum()) / whole)
        reward *= self.stretch_.factor(reward) if self.common else 1.0
        self.learner_.update(self.step_.arm, min(1.0, reward))
        self.history_.end(self.step_, min(1.0, reward))

    def state(self) -> State:
        parts = {
            "step": self.step_.state(),
            "learner": self.learner_.state(),
            "history": self.history_.state(),
        }
        flat = {f"{name}/{key}": c for name, kept in parts.items() for key, c in kept.items()}
        return {"recent": self.stretch_.recent_, **flat, **self.arms_.state()}

    def restore(self, state: State) -> None:
        """Go on where another stopped; a bandit of other arms starts anew."""
        if self.arms_.are_of(state):
            self.step_ = Step.restored(part_of(state, "step/"))
            self.stretch_.recent_ = state["recent"]
            self.learner_.restore(part_of(state, "learner/"))
            self.history_.restore(part_of(state, "history/"))
            self.arms_.restore(state)


class Stretch:
    """Stretches rewards so that one in five of the recent ones above 0 is cut at 1.

    With a common denominator rewards are small, because well-kept copies are seldom stale: on a
    market 0.02 on average for the best arm at 50 % budget. EXP3 moves a weight by γ/K · x a step at
    most, so that two months would not tell arms apart. The factor is the same for every arm.

    >>> stretch = Stretch()
    >>> [round(reward * stretch.factor(reward), 3) for reward in (0.0, 0.02, 0.01)]
    [0.0, 1.0, 0.556]
    """

    def __init__(self) -> None:
        self.recent_: Floats = np.empty(0)

    def factor(self, reward: float) -> float:
        """What to multiply this reward with, 1 or more."""
        if reward > 0:
            self.recent_ = np.append(self.recent_, reward)[-_RECENT:]
        if not len(self.recent_):
            return 1.0
        return 1.0 / float(np.quantile(self.recent_, _UNCUT))


def _nth(probabilities: Floats, chance: float) -> int:
    """The arm that a number in [0, 1) falls on.

    >>> [_nth(np.array([0.25, 0.75]), chance) for chance in (0.0, 0.2, 0.25, 0.9)]
    [0, 0, 1, 1]
    """
    at = int(np.searchsorted(np.cumsum(probabilities), chance, side="right"))
    return min(at, len(probabilities) - 1)
