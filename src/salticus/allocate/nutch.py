"""Nutch's AdaptiveFetchSchedule."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from salticus.allocate.adaptive import DAY_US, Adaptive, after, micros
from salticus.allocate.base import known
from salticus.allocate.share import first
from salticus.types import CHANGED, UNCHANGED, Codes, Floats, Outcomes, Pages, instant
from salticus.types.state import Keyed


@dataclass(kw_only=True)
class Nutch(Adaptive):
    """What Apache Nutch does with AdaptiveFetchSchedule, in its shipped configuration.

    A page found unchanged waits `inc_rate` longer, one found changed `dec_rate` shorter. With
    `sync_delta` the interval is at least the time since the last change seen (delta), and the next
    visit comes `sync_delta_rate` of it earlier. Intervals stay within `min_days` and `max_days`.

    Pages that fall due before the end of the tick compete by score, here demand, and then by due
    time, as in Nutch's generator with its top N. If there are visits to spare, the pages that come
    due next follow. Nutch tries a failed page again after a day, and after three times takes it
    for gone and waits half as long again; here it waits for its interval. Cost: linear in pages.

    >>> now, unchanged = np.array([30 * DAY_US]), np.array([UNCHANGED], dtype=np.int8)
    >>> interval, _, due = Nutch().next_times(np.array([30.0]), np.zeros(1), now, unchanged)
    >>> interval, due / DAY_US
    (array([42.]), array([63.]))
    """

    first_days: float = 30.0
    inc_rate: float = 0.4
    dec_rate: float = 0.2
    sync_delta: bool = True
    sync_delta_rate: float = 0.3
    min_days: float = 60.0 / 86_400
    max_days: float = 365.0
    modified_: Keyed = field(default_factory=Keyed, init=False, repr=False)

    def expected(self, pages: Pages, visits: float) -> Floats:
        due = self.due(pages)
        end = float(instant(pages.tick.end).astype(np.int64))
        demand = known("demand", pages.demand, pages.ids)
        return first(np.where(due < end, -demand, np.inf), visits, due)

    def next_times(
        self, interval: Floats, modified: Floats, now: Floats, changed: Codes
    ) -> tuple[Floats, Floats, Floats]:
        """Interval (days), last change and next visit (µs) after an answer at `now` (µs)."""
        factor = np.where(changed == CHANGED, 1.0 - self.dec_rate, 1.0)
        interval = interval * np.where(changed == UNCHANGED, 1.0 + self.inc_rate, factor)
        modified = np.where((changed == CHANGED) | np.isnan(modified), now, modified)
        delta = (now - modified) / DAY_US if self.sync_delta else np.zeros(len(now))
        interval = np.clip(np.maximum(interval, delta), self.min_days, self.max_days)
        return interval, modified, after(now, interval - self.sync_delta_rate * delta)

    def _answer(self, visits: Outcomes) -> None:
        rows, interval = self._intervals(visits.page)
        modified = self.modified_.values[rows]
        times = self.next_times(interval, modified, micros(visits.at), visits.changed)
        kept = (self.interval_, self.modified_, self.due_)
        for column, values in zip(kept, times, strict=True):
            column.values[rows] = values

    def _kept(self) -> dict[str, Keyed]:
        return {**super()._kept(), "modified": self.modified_}
