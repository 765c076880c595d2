"""StormCrawler's AdaptiveScheduler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.allocate.adaptive import Adaptive, after, micros
from salticus.allocate.share import first
from salticus.types import CHANGED, UNCHANGED, Codes, Floats, Outcomes, Pages

_MINUTES = 1440.0


@dataclass(kw_only=True)
class StormCrawler(Adaptive):
    """What Apache StormCrawler does with AdaptiveScheduler and its defaults.

    Intervals are whole minutes, cut off. A page found unchanged waits `inc_rate` longer, up to
    `max_minutes`; one found changed moves `dec_rate` of the way towards `min_minutes`. The page
    that has been due longest comes first, so that with visits to spare those that come due next
    follow. StormCrawler tries a failed page again after two hours, forgets its interval, and takes
    it for gone after three failures in a row; here it waits for its interval. Cost: linear in
    pages.

    >>> StormCrawler().next_minutes(np.array([1440.0, 1440.0]), np.array([0, 1], "i1"))
    array([2160.,  750.])
    """

    first_days: float = 1.0
    inc_rate: float = 0.5
    dec_rate: float = 0.5
    min_minutes: int = 60
    max_minutes: int = 20_160

    def expected(self, pages: Pages, visits: float) -> Floats:
        return first(self.due(pages), visits)

    def next_minutes(self, minutes: Floats, changed: Codes) -> Floats:
        """The interval after an answer, in minutes."""
        longer = np.minimum(np.floor((1.0 + self.inc_rate) * minutes), self.max_minutes)
        nearer = (1.0 - self.dec_rate) * minutes + self.dec_rate * self.min_minutes
        told = [changed == UNCHANGED, changed == CHANGED]
        return np.select(told, [longer, np.floor(nearer)], minutes)

    def _answer(self, visits: Outcomes) -> None:
        rows, interval = self._intervals(visits.page)
        minutes = self.next_minutes(np.rint(interval * _MINUTES), visits.changed)
        self.interval_.values[rows] = minutes / _MINUTES
        self.due_.values[rows] = after(micros(visits.at), minutes / _MINUTES)
