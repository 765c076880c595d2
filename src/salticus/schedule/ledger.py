"""The budget ledger: never exceeded on any day, and spent when there is something to visit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from salticus.columns import State
from salticus.config import Budget
from salticus.types import (
    DAY,
    NEVER,
    Instant,
    Outcomes,
    Pages,
    Plan,
    Tick,
    Times,
    days_between,
    instant,
)


@dataclass(frozen=True, slots=True)
class Grant:
    """Visits that a tick may spend: the k-th to start may not do so before `release[k]`.

    `per_tick` is what later ticks of this length may count on.
    """

    release: Times
    per_tick: float

    @property
    def visits(self) -> int:
        return len(self.release)


class Ledger:
    """Accrues the budget continuously and hands it out tick by tick.

    Laws: any 24 hours of world time hold at most the budget (a budget under one visit a day: at
    most one); what is left over is carried for at most `carry` (one tick if not given) or up to one
    visit, and a new ledger opens with as much; a dropped visit is refunded, one that failed is not.
    The first law is kept exactly: a visit that would be one too many is released when the visit
    that is a whole budget older is a day past.
    """

    def __init__(self, budget: Budget, *, carry: timedelta | None = None) -> None:
        self.budget = budget
        self.carry = carry
        self.balance_ = 0.0
        self.until_: Instant = NEVER
        self.open_ = 0
        self.made_: Times = np.empty(0, dtype="datetime64[us]")
        self._new: list[Times] = []

    def grant(self, pages: Pages, tick: Tick) -> Grant:
        """The visits that `tick` may spend."""
        rate = self.budget.per_day(len(pages))
        start, end = instant(tick.start), instant(tick.end)
        keep = tick.days if self.carry is None else self.carry.total_seconds() / 86_400
        if np.isnat(self.until_):
            self.until_, self.balance_ = end, max(1.0, rate * keep)
        earned = self.balance_ + rate * float(days_between(self.until_, end))
        most = max(1.0, rate * keep) + rate * tick.days
        self.balance_ = min(earned, most) + 1e-9  # or 1/3 + 1/3 + 1/3 is never a whole visit
        self.until_ = max(self.until_, end)
        self._gather(start - DAY)
        release = self._release(int(self.balance_), max(1, int(rate + 1e-9)), start)
        return Grant(release[release < end], rate * tick.days)

    def spend(self, plan: Plan) -> None:
        """Take the planned visits off the balance."""
        self.balance_ -= len(plan)
        self.open_ += len(plan)

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
        """Refund dropped visits; remember when the others were made."""
        made = outcomes.at[outcomes.made]
        self.balance_ += len(outcomes) - len(made)
        self.open_ -= len(outcomes)
        self._new.append(made)

    def state(self) -> State:
        return {
            "balance": np.array(self.balance_),
            "until": np.array(self.until_),
            "open": np.array(self.open_),
            "made": np.concatenate([self.made_, *self._new]),
        }

    def restore(self, state: State) -> None:
        self.balance_ = float(state["balance"])
        self.until_ = np.datetime64(state["until"].item(), "us")
        self.open_ = int(state["open"])
        self.made_ = state["made"]
