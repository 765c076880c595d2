"""The fixed interval: what a cron job over all pages does."""

from __future__ import annotations

import math

import numpy as np

from salticus.allocate.share import first
from salticus.types import DAY, Floats, Ints, Outcomes, Pages, instant
from salticus.types.state import State

USUAL_HOURS = (1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168, 336, 720)
_MEMORY_DAYS = 30.0


def usual_interval(needed_days: float) -> float:
    """The shortest interval that people write into a crontab and that is long enough, in days.

    1, 2, 3, 4, 6, 8, 12 hours, 1, 2, 3, 7, 14, 30 days, then multiples of 30 days.

    >>> [usual_interval(days) for days in (0.3, 1.0, 5.0, 31.0)]
    [0.3333333333333333, 1.0, 7.0, 60.0]
    """
    hours = needed_days * 24 * (1 - 1e-9)
    enough = [usual for usual in USUAL_HOURS if usual >= hours]
    return enough[0] / 24 if enough else 30.0 * math.ceil(hours / 720)


class FixedInterval:
    """Every page at one interval: the shortest usual one at which the visits suffice for all.

    A page is visited in the tick in which its interval ends; if there are too many, the oldest
    visit comes first. What is not needed is left unspent, as a cron job would leave it, so
    ``spends`` is False. `interval_days` fixes the interval. Otherwise it follows the visits given
    of late (a month or so), not counting those that were carried over from a tick with less to do.

    Cost: linear in pages.

    >>> from salticus.testing import blank_pages
    >>> policy = FixedInterval()
    >>> policy.expected(blank_pages(4), visits=1.0)  # all due, one visit in two hours
    array([0.25, 0.25, 0.25, 0.25])
    >>> policy.interval_ * 24
    4.0
    """

    spends = False

    def __init__(self, *, interval_days: float | None = None) -> None:
        self.interval_days = interval_days
        self.interval_ = 0.0
        self.given_ = self.days_ = 0.0
        self.tick_ = -1
        self.all_spent_ = True

    def expected(self, pages: Pages, visits: float) -> Floats:
        anew = pages.tick.number != self.tick_
        if anew:
            self._settle(pages, visits)
        due = self._due(pages)
        if anew:
            self.all_spent_ = len(due) >= visits
        expected = np.zeros(len(pages))
        expected[due] = first(pages.last_visit[due].view(np.int64), visits)
        return expected

    def _settle(self, pages: Pages, visits: float) -> None:
        """Count the visits given and choose the interval that they afford."""
        self.tick_ = pages.tick.number
        if self.all_spent_:
            fade = 1.0 if self.days_ <= _MEMORY_DAYS else _MEMORY_DAYS / self.days_
            self.given_ = self.given_ * fade + visits
            self.days_ = self.days_ * fade + pages.tick.days
        # whole visits are given, so that up to one is still to come
        needed = len(pages) * self.days_ / (self.given_ + 1.0)
        self.interval_ = self.interval_days or usual_interval(needed)

    def _due(self, pages: Pages) -> Ints:
        """Rows whose interval ends before the tick does."""
        span = np.timedelta64(round(self.interval_ * float(DAY.astype(np.int64))), "us")
        last = pages.last_visit
        return np.flatnonzero(np.isnat(last) | (last < instant(pages.tick.end) - span))

    def learn(self, outcomes: Outcomes) -> None:
        """A dropped visit will be given again."""
        dropped = float(np.count_nonzero(~outcomes.made))
        self.given_ = max(0.0, self.given_ - dropped)

    def state(self) -> State:
        numbers = (self.interval_, self.given_, self.days_, self.tick_, self.all_spent_)
        return {"numbers": np.array(numbers, dtype=np.float64)}

    def restore(self, state: State) -> None:
        self.interval_, self.given_, self.days_, tick, spent = state["numbers"].tolist()
        self.tick_, self.all_spent_ = int(tick), bool(spent)
