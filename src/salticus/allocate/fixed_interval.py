"""The fixed interval: what a cron job over all pages does."""

from __future__ import annotations

import math
from typing import NamedTuple

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


class Afforded(NamedTuple):
    """What the visits given so far, in so many days, afford in a tick."""

    tick: int = -1
    interval: float = 0.0
    given: float = 0.0
    days: float = 0.0
    all_spent: bool = True


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
    >>> policy.adopt()
    >>> policy.kept_.interval * 24
    4.0
    """

    spends = False

    def __init__(self, *, interval_days: float | None = None) -> None:
        self.interval_days = interval_days
        self.kept_ = Afforded()
        self._asked: Afforded | None = None  # by the first answer of the last tick asked about

    def expected(self, pages: Pages, visits: float) -> Floats:
        number, afforded = pages.tick.number, self.kept_
        if number != afforded.tick:
            if self._asked is None or self._asked.tick != number:
                self._asked = self._afforded(pages, visits)
            afforded = self._asked
        due = _due(pages, afforded.interval)
        expected = np.zeros(len(pages))
        expected[due] = first(pages.last_visit[due].view(np.int64), visits)
        return expected

    def begin(self, pages: Pages) -> None:
        """Nothing was asked about this tick yet."""
        self._asked = None

    def adopt(self) -> None:
        """The visits given were counted, and the interval is that which they afford."""
        if self._asked is not None:
            self.kept_ = self._asked

    def _afforded(self, pages: Pages, visits: float) -> Afforded:
        """Count the visits given and choose the interval that they afford."""
        _, _, given, days, all_spent = self.kept_
        if all_spent:
            fade = 1.0 if days <= _MEMORY_DAYS else _MEMORY_DAYS / days
            given, days = given * fade + visits, days * fade + pages.tick.days
        # whole visits are given, so that up to one is still to come
        interval = self.interval_days or usual_interval(len(pages) * days / (given + 1.0))
        spent = len(_due(pages, interval)) >= visits
        return Afforded(pages.tick.number, interval, given, days, spent)

    def learn(self, outcomes: Outcomes) -> None:
        """A dropped visit will be given again."""
        dropped = float(np.count_nonzero(~outcomes.made))
        self.kept_ = self.kept_._replace(given=max(0.0, self.kept_.given - dropped))

    def state(self) -> State:
        tick, *numbers, all_spent = self.kept_
        return {"numbers": np.array([*numbers, tick, all_spent], dtype=np.float64)}

    def restore(self, state: State) -> None:
        interval, given, days, tick, spent = state["numbers"].tolist()
        self.kept_ = Afforded(int(tick), interval, given, days, bool(spent))


def _due(pages: Pages, interval: float) -> Ints:
    """Rows whose interval, in days, ends before the tick does."""
    span = np.timedelta64(round(interval * float(DAY.astype(np.int64))), "us")
    last = pages.last_visit
    return np.flatnonzero(np.isnat(last) | (last < instant(pages.tick.end) - span))
