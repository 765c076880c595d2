"""The share of the last thirty days on which a page was found changed (Han et al. 2020)."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from salticus.predict.poisson import PoissonSurvival
from salticus.predict.roster import Roster
from salticus.predict.spans import answered
from salticus.types import Floats, Ints, Outcomes, Pages, Times, instant
from salticus.types.dates import DAY_US
from salticus.types.state import State

_UNKNOWN = -1.0


class Frequency:
    """Δ = days with a change found / days watched, of the last `days`; for comparison.

    "The average daily price changes in the past 30 days" of Han et al. (2020), §5.2.2, as a chance
    a day. What changed twice a day, or was looked at seldom, is counted too low; a page that did
    not change for a month is taken for one that never will. Pages that never answered have the mean
    of the others, `default_rate` before there are any.

    A page's days are bits of one number. Cost: linear in pages, once a day.

    >>> from salticus.checks.samples import poisson_outcomes
    >>> from salticus.testing import START, blank_pages
    >>> pages, model = blank_pages(2000), Frequency()
    >>> for outcomes in poisson_outcomes(pages, 0.1, visits=60, spacing="even", seed=1):
    ...     model.learn(outcomes)
    >>> model.meet(pages, START)
    >>> bool(0.07 < model.rates(pages.ids).mean() < 0.12)
    True
    """

    recovers = ()

    def __init__(self, *, days: int = 30, default_rate: float = 0.25) -> None:
        self.days = days
        self.default_rate = default_rate
        self.pages_ = Roster(changed=0.0, first=_UNKNOWN, last=_UNKNOWN)  # UTC days since 1970
        self._today = 0

    def meet(self, pages: Pages, now: datetime) -> None:
        """Have a row for exactly these pages; yesterday is over."""
        self.pages_.keep(pages.ids)
        self._today = max(self._today, int(instant(now).astype(np.int64)) // DAY_US)

    def survival(self, pages: Pages, now: datetime) -> PoissonSurvival:
        return PoissonSurvival(self.rates(pages.ids))

    def rates(self, ids: Ints) -> Floats:
        """Changes a day at which a day has such a chance of one; ids ascending."""
        first = self.pages_.get("first", ids)
        last, changed = self.pages_.get("last", ids), self.pages_.get("changed", ids)
        found = np.bitwise_count(self._kept(changed, self._today - last)).astype(np.float64)
        watched = np.clip(self._today - first, 1, self.days)
        chance = np.minimum(found / watched, 1.0 - 0.5 / self.days)
        met = first != _UNKNOWN
        rate = -np.log1p(-chance)
        usual = float(rate[met].mean()) if met.any() else self.default_rate
        return np.where(met, rate, usual)

    def learn(self, outcomes: Outcomes) -> None:
        for spans in answered(outcomes).rounds():
            rows, day = self.pages_.rows(spans.page), _days(spans.end)
            page = self.pages_.columns
            known = page["last"][rows] != _UNKNOWN
            day = np.maximum(day, page["last"][rows])
            shift = np.where(known, day - page["last"][rows], 0)
            changed = self._kept(page["changed"][rows], shift) | spans.changed.astype(np.uint64)
            page["changed"][rows], page["last"][rows] = changed, day
            page["first"][rows] = np.where(known, page["first"][rows], _days(spans.start))
            self._today = max(self._today, int(day.max(initial=0)))

    def _kept(self, changed: Floats, days: Floats) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """The bits of the last days, so many days later: bit k is k days ago."""
        shift = np.clip(days, 0, self.days).astype(np.uint64)
        window = np.uint64((2 << self.days) - 1)  # today has begun, and does not count as a day
        return np.asarray((changed.astype(np.uint64) << shift) & window)

    def state(self) -> State:
        return {**self.pages_.state(), "today": np.array(self._today)}

    def restore(self, state: State) -> None:
        self.pages_.restore(state)
        self._today = int(state["today"])


def _days(times: Times) -> Floats:
    return np.asarray(times.view(np.int64) // DAY_US, dtype=np.float64)
