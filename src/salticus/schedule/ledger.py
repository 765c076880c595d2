"""The budget ledger: never exceeded on any day, and spent when there is something to visit."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from salticus.config import Budget, Caps
from salticus.types import DAY, NEVER, Grant, Outcomes, Pages, Purpose, Tick
from salticus.types.arrays import Bools, Codes, Floats, Instant, Ints, Times, days_between, instant
from salticus.types.state import State

DEFAULT_CAPS = Caps()
_CHARGED: Bools = np.array([purpose.charged for purpose in Purpose])


class Ledger:
    """Accrues the budget continuously and hands it out tick by tick.

    Laws: any 24 hours of world time hold at most the budget (a budget that does not pay for a visit
    a day: at most one); what is left over is carried for at most `carry` (if not given, one tick;
    where new pages are to be found, as long as the policy has `patience`) or up to one visit, the
    dearest if they differ, and a new ledger opens with as much, but without `carry` with a tick's
    only: a day's visits, spent at once, would come all at once on every day that follows. A dropped
    visit is refunded, one that failed is not. The first law is kept exactly: a visit that would be
    one too many is released when the visit that is a whole budget older is a day past. A visit that
    costs more than 1 counts as so many. What the user orders by hand does not count. A budget per
    page grows with pages that were found only as far as `caps` say.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        carry: timedelta | None = None,
        patience: timedelta = timedelta(),
        caps: Caps = DEFAULT_CAPS,
    ) -> None:
        self.budget = budget
        self.caps = caps
        self.carry = carry
        self.patience = patience
        self.balance_ = 0.0
        self.until_: Instant = NEVER
        self.open_ = 0
        self.made_: Times = np.empty(0, dtype="datetime64[us]")
        self.dear_: dict[int, int] = {}  # open visits that cost more than 1
        self._new: list[Times] = []

    def grant(self, pages: Pages, tick: Tick) -> Grant:
        """The visits that `tick` may spend; changes nothing (see `open`)."""
        counted = self.caps.budgeted(len(pages), int(np.count_nonzero(pages.found)))
        rate = self.budget.per_day(counted)
        start, end = instant(tick.start), instant(tick.end)
        keep = self._keep(pages, tick)
        one = float(pages.cost.max(initial=1.0))
        until, balance = self.until_, self.balance_
        if np.isnat(until):
            opening = tick.days if self.carry is None else keep
            until, balance = end, max(one, rate * opening)
        earned = balance + rate * float(days_between(until, end))
        most = max(one, rate * keep) + rate * tick.days
        balance = min(earned, most) + 1e-9  # or 1/3 + 1/3 + 1/3 is never a whole visit
        release = self._release(int(balance), int(max(one, rate + 1e-9)), start)
        return Grant(
            release[release < end], rate * tick.days, balance=balance, until=max(until, end)
        )

    def _keep(self, pages: Pages, tick: Tick) -> float:
        """Days for which what is left over is carried."""
        if self.carry is not None:
            return self.carry / timedelta(days=1)
        patience = timedelta() if pages.prospects is None else self.patience
        return max(tick.days, patience / timedelta(days=1))

    def open(self, grant: Grant, tick: Tick) -> None:
        """Give the grant: the budget has accrued up to the end of its tick."""
        self.balance_, self.until_ = grant.balance, grant.until
        self.made_ = self._made(instant(tick.start) - DAY)
        self._new.clear()

    def pays(self, purpose: Codes) -> Bools:
        """Which visits of these purposes the budget has to pay for."""
        return _CHARGED[purpose]

    def spend(self, visits: Ints, cost: Floats) -> None:
        """Take visits, of so much each, off the balance."""
        dear = np.flatnonzero(cost > 1)
        self.dear_ |= {int(visits[row]): int(cost[row]) for row in dear}
        self.balance_ -= float(cost.sum())
        self.open_ += int(cost.sum())

    def _made(self, after: Instant) -> Times:
        """When visits were made after that time, in order."""
        made = np.concatenate([self.made_, *self._new])
        return np.sort(made[made > after], kind="stable")

    def _release(self, wanted: int, daily: int, start: Instant) -> Times:
        """Earliest times at which so many visits may start, if `daily` fit in any day."""
        made = self._made(start - DAY)
        used = len(made) + self.open_
        free = max(0, min(wanted, daily - used))
        first = max(0, used - daily)
        later = made[first : first + wanted - free] + DAY
        return np.concatenate([np.full(free, start), np.maximum(later, start)])

    def learn(self, outcomes: Outcomes) -> None:
        """Refund dropped visits; remember when the others were made."""
        outcomes = outcomes.take(self.pays(outcomes.purpose))
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
