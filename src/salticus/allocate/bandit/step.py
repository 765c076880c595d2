"""The steps of a bandit: what the open one has found so far, and what the last ones earned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from salticus.types import CHANGED, UNKNOWN, Bools, Floats, Ints, Outcomes, Purpose, Tick, instant
from salticus.types.state import State, places

NONE = np.iinfo(np.int64).min
_KEPT = 1_000  # steps


@dataclass
class Step:
    """One tick of a bandit. Only numbers, and the visits of one tick: small at any number of pages.

    `mass` is the most demand that an arm would have visited, Σ μ ρ. A visit belongs to the step
    if the policy asked for it, it was answered no sooner than the tick began, and none with
    as high a number had been seen by then: what an earlier tick left in flight is not counted.
    """

    tick: int = NONE
    start: int = NONE
    arm: int = -1
    mass: float = 0.0
    before: int = -1
    latest: int = -1
    visits: int = 0
    page: list[Ints] = field(default_factory=list)
    stale: list[Bools] = field(default_factory=list)

    def after(self, tick: Tick, arm: int, mass: float) -> Step:
        """The next step: nothing is found yet."""
        start = int(instant(tick.start).astype(np.int64))
        return Step(tick.number, start, arm, mass, before=self.latest, latest=self.latest)

    def over(self) -> Step:
        """This step once it was judged: what it found is used up."""
        return replace(self, tick=NONE, visits=0, page=[], stale=[])

    def learn(self, outcomes: Outcomes) -> None:
        """Collect those visits of this step of which it is known whether the page had changed; the
        first visit of a page found it stale, for there was no copy."""
        asked = outcomes.purpose == Purpose.POLICY
        late = (outcomes.at.view(np.int64) < self.start) | (outcomes.visit <= self.before)
        mine = asked & ~late & (self.tick != NONE)
        new = np.isnat(outcomes.since) & (outcomes.changed == UNKNOWN)
        told = np.flatnonzero(mine & outcomes.answered & (new | (outcomes.changed != UNKNOWN)))
        self.latest = max(self.latest, int(outcomes.visit[asked].max(initial=-1)))
        self.visits += int(np.count_nonzero(mine))
        self.page.append(outcomes.page[told])
        self.stale.append(new[told] | (outcomes.changed[told] == CHANGED))

    def found(self) -> tuple[Ints, Bools]:
        """The pages of the visits that count, and which of them were stale."""
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *self.page]), np.concatenate([none > 0, *self.stale])

    def state(self) -> State:
        page, stale = self.found()
        numbers = (self.tick, self.start, self.arm, self.before, self.latest, self.visits)
        whole = {"numbers": np.array(numbers, dtype=np.int64), "mass": np.array(self.mass)}
        return {**whole, "page": page, "stale": stale}

    @classmethod
    def restored(cls, state: State) -> Step:
        tick, start, arm, before, latest, visits = state["numbers"].tolist()
        found = [state["page"]], [state["stale"]]
        return cls(tick, start, arm, float(state["mass"]), before, latest, visits, *found)


class History:
    """The last steps: when each began (µs), the arm drawn (-1 = all), the probability of each arm
    when it was, and the reward as it was learnt: NaN of a step that taught nothing or is not over.

    At most `kept` of them: a thousand, twelve weeks of two-hour ticks.
    """

    def __init__(self, arms: int) -> None:
        self.kept = _KEPT
        self.start: Ints = np.empty(0, dtype=np.int64)
        self.arm: Ints = np.empty(0, dtype=np.int64)
        self.reward: Floats = np.empty(0)
        self.chances: Floats = np.empty((0, arms))

    def begin(self, step: Step, chances: Floats) -> None:
        """A step has begun with these probabilities."""
        self.start = np.append(self.start, step.start)[-self.kept :]
        self.arm = np.append(self.arm, step.arm)[-self.kept :]
        self.reward = np.append(self.reward, np.nan)[-self.kept :]
        self.chances = np.concatenate([self.chances, chances[None, :]])[-self.kept :]

    def end(self, step: Step, reward: float) -> None:
        """The step that began last has earned this."""
        if len(self.start) and self.start[-1] == step.start:
            self.reward = np.append(self.reward[:-1], reward)

    def state(self) -> State:
        return {name: getattr(self, name) for name in ("start", "arm", "reward", "chances")}

    def restore(self, state: State) -> None:
        for name in state if "chances" in state else ():
            setattr(self, name, state[name])


def rows_of(ids: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """The row of each wanted id, in any order of `ids`, and whether it is there at all."""
    if np.all(ids[1:] >= ids[:-1]):
        return places(ids, wanted)
    order = np.argsort(ids, kind="stable")
    at, there = places(ids[order], wanted)
    return order[at], there
