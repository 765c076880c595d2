"""The budget ledger: never exceeded on any day, and spent when there is something to visit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from salticus.config import Budget, Caps
from salticus.types import (
    DAY,
    NEVER,
    Floats,
    Instant,
    Ints,
    Outcomes,
    Pages,
    Plan,
    Purpose,
    Tick,
    Times,
    days_between,
    instant,
)
from salticus.types.state import State

DEFAULT_CAPS = Caps()


@dataclass(frozen=True, slots=True)
class Grant:
    """Visits that a tick may spend: the k-th to start may not do so before `release[k]`. One that
    costs more counts as so many, and waits for the last of them.

    `per_tick` is what later ticks of this length may count on.
    """

    release: Times
    per_tick: float

    @property
    def visits(self) -> int:
        return len(self.release)

    def less(self, share: float) -> tuple[Grant, Times]:
        """The grant without a share of its visits, and when each of those may start.

        They lie evenly among the others, so that some may start early in the tick.
        """
        turn = np.floor(np.arange(1, self.visits + 1) * share + 1e-9)
        apart = np.diff(turn, prepend=0.0) > 0
        return replace(self, release=self.release[~apart]), self.release[apart]


class Ledger:
    """Accrues the budget continuously and hands it out tick by tick.

    Laws: any 24 hours of world time hold at most the budget (a budget that does not pay for a visit
    a day: at most one); what is left over is carried for at most `carry` (one tick if not given)
    or up to one visit, the dearest if they differ, and a new ledger opens with as much; a dropped
    visit is refunded, one that failed is not. The first law is kept exactly: a visit that would be
    one too many is released when the visit that is a whole budget older is a day past. A visit that
    costs more than 1 counts as so many. What the user orders by hand does not count. A budget per
    page grows with pages that were found only as far as `caps` say.
    """

    def __init__(
        self, budget: Budget, *, carry: timedelta | None = None, caps: Caps = DEFAULT_CAPS
    ) -> None:
        self.budget = budget
        self.caps = caps
        self.carry = carry
        self.balance_ = 0.0
        self.until_: Instant = NEVER
        self.open_ = 0
        self.made_: Times = np.empty(0, dtype="datetime64[us]")
        self.dear_: dict[int, int] = {}  # open visits that cost more than 1
        self._new: list[Times] = []

    def grant(self, pages: Pages, tick: Tick) -> Grant:
        """The visits that `tick` may spend."""
        counted = self.caps.budgeted(len(pages), int(np.count_nonzero(pages.found)))
        rate = self.budget.per_day(counted)
        start, end = instant(tick.start), instant(tick.end)
        keep = tick.days if self.carry is None else self.carry.total_seconds() / 86_400
        one = float(pages.cost.max(initial=1.0))
        if np.isnat(self.until_):
            self.until_, self.balance_ = end, max(one, rate * keep)
        earned = self.balance_ + rate * float(days_between(self.until_, end))
        most = max(one, rate * keep) + rate * tick.days
        self.balance_ = min(earned, most) + 1e-9  # or 1/3 + 1/3 + 1/3 is never a whole visit
        self.until_ = max(self.until_, end)
        self._gather(start - DAY)
        release = self._release(int(self.balance_), int(max(one, rate + 1e-9)), start)
        return Grant(release[release < end], rate * tick.days)

    def spend(self, plan: Plan, cost: Floats) -> None:
        """Take the planned visits, of so much each, off the balance."""
        dear = np.flatnonzero(cost > 1)
        self.dear_ |= {int(plan.visit[row]): int(cost[row]) for row in dear}
        self.balance_ -= float(cost.sum())
        self.open_ += int(cost.sum())

    def spent(self, outcomes: Outcomes) -> None:
        """Take visits off the balance that were made after it was last kept."""
        self.balance_ -= len(outcomes)
        self.open_ += len(outcomes)

    def _gather(self, after: Instant) -> None:
        """Put the visits made since the last tick among the others, and forget the old ones."""
        made = np.concatenate([self.made_, *self._new])
        self.made_ = np.sort(made[made > after], kind="stable")
        self._new.clear()

    def _release(self, wanted: int, daily: int, start: Instant) -> Times:
        """Earliest times at which so many visits may start, if `daily` fit in any day."""
        used = len(self.made_) + self.open_
        free = max(0, min(wanted, daily - used))
        first = max(0, used - daily)
        later = self.made_[first : first + wanted - free] + DAY
        return np.concatenate([np.full(free, start), np.maximum(later, start)])

    def learn(self, outcomes: Outcomes) -> None:
        """Refund dropped visits; remember when the others were made.

        Those by hand are free, and the panel has a budget of its own.
        """
        free = (Purpose.MANUAL, Purpose.PANEL)
        outcomes = outcomes.take(~np.isin(outcomes.purpose, free))
        cost = self._cost(outcomes.visit)
        made = outcomes.at[outcomes.made].repeat(cost[outcomes.made])
        total = int(cost.sum())
        self.balance_ += total - len(made)
        self.open_ -= total
        self._new.append(made)

    def _cost(self, visits: Ints) -> Ints:
        """What each of the visits was to cost; they are open no longer."""
        if not self.dear_:
            return np.ones(len(visits), dtype=np.int64)
        return np.array([self.dear_.pop(visit, 1) for visit in visits.tolist()], dtype=np.int64)

    def state(self) -> State:
        return {
            "balance": np.array(self.balance_),
            "until": np.array(self.until_),
            "open": np.array(self.open_),
            "dear": np.array([*self.dear_.items()], dtype=np.int64).reshape(-1, 2),
            "made": np.concatenate([self.made_, *self._new]),
        }

    def restore(self, state: State) -> None:
        self.balance_ = float(state["balance"])
        self.until_ = np.datetime64(state["until"].item(), "us")
        self.open_ = int(state["open"])
        self.dear_ = dict(state["dear"].tolist()) if "dear" in state else {}
        self.made_ = state["made"]
