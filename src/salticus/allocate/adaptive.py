"""The adaptive schedulers of Nutch and StormCrawler: every page has an interval and a due time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from salticus.allocate.base import known
from salticus.allocate.share import first
from salticus.types import CHANGED, UNCHANGED, Outcomes, Pages
from salticus.types.arrays import DAY, Codes, Floats, Ints, Times, instant
from salticus.types.state import Keyed, State, rank_within

DAY_US = float(DAY.astype(np.int64))
_MINUTES = 1440.0  # of a day


@dataclass(kw_only=True)
class Adaptive:
    """Keeps when each page is due, and asks its subclass for the next time after every answer.

    A failed visit is made up for one interval later, the interval unchanged; a dropped one changes
    nothing. A page never visited is due since it was added; one of which only the last visit is
    known, a first interval after it. Due times are µs since 1970 (exact in a float), intervals are
    in days, NaN where no visit has been learnt from.
    """

    first_days: float
    interval_: Keyed = field(default_factory=Keyed, init=False, repr=False)
    due_: Keyed = field(default_factory=Keyed, init=False, repr=False)

    def due(self, pages: Pages) -> Floats:
        """When each page is due, µs since 1970."""
        due = self.due_.get(pages.ids, np.full(len(pages), np.nan))
        new = np.flatnonzero(np.isnan(due))
        last = pages.last_visit[new]
        again = micros(last) + self.first_days * DAY_US
        due[new] = np.where(np.isnat(last), micros(pages.added[new]), again)
        return due

    def learn(self, outcomes: Outcomes) -> None:
        for visits in _once_each(outcomes.take(outcomes.made)):
            self._meet(visits.page)
            self._fail(visits.take(~visits.answered))
            self._answer(visits.take(visits.answered))

    def _answer(self, visits: Outcomes) -> None:
        """Set interval and due time of pages that were answered, each at most once."""
        raise NotImplementedError

    def _fail(self, visits: Outcomes) -> None:
        rows, interval = self._intervals(visits.page)
        self.due_.values[rows] = after(micros(visits.at), interval)

    def _intervals(self, ids: Ints) -> tuple[Ints, Floats]:
        """Where these pages are kept, and their intervals so far."""
        rows, _ = self.interval_.rows(ids)
        interval = self.interval_.values[rows]
        return rows, np.where(np.isnan(interval), self.first_days, interval)

    def _kept(self) -> dict[str, Keyed]:
        return {"interval": self.interval_, "due": self.due_}

    def _meet(self, ids: Ints) -> None:
        """Have a row for each of these pages; those met before are kept."""
        if np.array_equal(ids, self.due_.ids):
            return
        _, met = self.due_.rows(ids)
        new = np.sort(ids[~met])  # np.unique hashes first, which takes longer than all the rest
        new = new[np.diff(new, prepend=new[:1] - 1) > 0]
        if len(new):
            at = np.searchsorted(self.due_.ids, new)
            together = np.insert(self.due_.ids, at, new)
            for kept in self._kept().values():
                kept.put(together, np.insert(kept.values, at, np.nan))

    def state(self) -> State:
        values = {name: kept.values for name, kept in self._kept().items()}
        return {"ids": self.due_.ids, **values}

    def restore(self, state: State) -> None:
        for name, kept in self._kept().items():
            kept.put(state["ids"], state[name].copy())


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


def micros(times: Times) -> Floats:
    """Times as µs since 1970."""
    return times.view(np.int64).astype(np.float64)


def after(start_us: Floats, days: Floats) -> Floats:
    """The times so many days later, in whole µs."""
    return np.rint(start_us + days * DAY_US)


def _once_each(outcomes: Outcomes) -> Iterator[Outcomes]:
    """The visits in rounds in which no page occurs twice; one round as a rule."""
    number = rank_within(outcomes.page)
    for k in range(int(number.max(initial=-1)) + 1):
        yield outcomes.take(number == k)
