"""Found pages are visited at once: with what the policy has left of the tick's visits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from salticus.types import (
    Draw,
    Floats,
    Grant,
    Instant,
    Ints,
    Pages,
    Plan,
    Purpose,
    Tick,
    Times,
    unplanned,
)
from salticus.types.state import State


class Discover:
    """Keeps what no other proposer took of a tick for the pages that its visits to sources bring.

    These are visited at once, those of most worth first, if they are worth at least the visit
    `price` and the purse pays; all others wait for the next plan. What is not spent by the end of
    the tick goes back into the budget. Law: the purse is never overdrawn.
    """

    purpose = Purpose.DISCOVER

    def __init__(self) -> None:
        self.latest_ = 0  # number of the last visit that was sent
        self._purse: Times = np.empty(0, dtype="M8[us]")
        self._tick: Tick | None = None

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        """Nothing yet: all that is left, for pages that may come."""
        draw = Draw.sure(np.empty(0, dtype=np.int64))
        if pages.prospects is None or not grant.visits:
            return draw
        return replace(draw, reserve=max(grant.left(pages), 0) / grant.visits)

    def open(self, pages: Pages, purse: Times) -> None:
        """Begin a tick with these visits: when each may start, in order."""
        self._purse, self._tick = purse, pages.tick

    def ask(
        self, found: Ints, worth: Floats, now: Instant, *, price: float = 0.0
    ) -> tuple[Ints, Plan]:
        """Of pages found just now, and the clicks that each is worth, those that must wait; and the
        visits to the others. Each costs 1 until its page is known better."""
        assert self._tick is not None
        best = np.argsort(-worth, kind="stable")
        best = best[worth[best] >= price]
        ready = int(np.searchsorted(self._purse, now, side="right"))
        sent, self._purse = np.sort(best[:ready]), self._purse[min(ready, len(best)) :]
        visits = unplanned(now, len(sent), self.latest_)
        self.latest_ = int(visits.max(initial=self.latest_))
        plan = Plan(
            visit=visits,
            page=found[sent],
            due=np.full(len(sent), now),
            purpose=np.full(len(sent), self.purpose, dtype=np.int8),
            propensity=np.ones(len(sent)),
            tick=self._tick,
        )
        return np.delete(found, sent), plan

    def made(self, visits: Ints) -> None:
        """Visits with these numbers were sent, by whomever; those to come get higher ones."""
        self.latest_ = int(visits.max(initial=self.latest_))

    def state(self) -> State:
        return {"latest": np.array(self.latest_)}

    def restore(self, state: State) -> None:
        self.latest_ = int(state["latest"])
