"""The referee: reads every copy after every tick, and keeps the score of the measured days."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime

import numpy as np

from salticus.lab.simulate.arms import ArmRecord
from salticus.lab.simulate.readers import Readership
from salticus.lab.worlds.copies import SimulatedCopies
from salticus.types import (
    Bools,
    Floats,
    Ints,
    Outcomes,
    Purpose,
    Status,
    Tick,
    Times,
    days_between,
    instant,
)

_WORKED = (Status.OK, Status.NOT_MODIFIED, Status.GONE)
_FAILED = np.array([status not in _WORKED for status in Status])  # by the code of a status


@dataclass
class Score:
    """What a run achieved. The lists have one entry a measured day.

    `clicks`: share of the clicks that found a fresh copy (Han 2020, eq. 4), NaN on a day without
    clicks; `midnight`: share of the pages that are fresh at the end of the day (eq. 3); `ticks`:
    the same averaged over the ticks of the day; `untouched`: share of the pages
    that have not changed since their visit, at midnight (a page that changed and changed back is
    fresh but not untouched). `age` and `harmonic` are means over pages and
    ticks of the days since a copy went stale and of H of the changes it missed. `gap` is the mean,
    over the visits, of the days since the page's last answer. `visited` counts the visits of each
    page, by its id, `purposes` those for each purpose. `clicked` and `stale_clicks` count clicks
    one by one, where they may bring visits, and those that found a copy out of date; `windows` are
    the shares of them that found a fresh one, in every 6 h of the crawl; `found_stale` says of each
    click of the crawl whether it found a copy out of date. `cost` is what the visits cost. `young`
    are the clicks on pages younger than a week, and those that found a fresh copy;
    `arms` what a bandit drew.
    """

    days: list[date] = field(default_factory=list)
    clicks: list[float] = field(default_factory=list)
    midnight: list[float] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    untouched: list[float] = field(default_factory=list)
    age: float = 0.0
    harmonic: float = 0.0
    visits: int = 0
    failed: int = 0
    caught: int = 0
    missed: int = 0
    page_days: float = 0.0
    page_ticks: int = 0
    seconds: float = 0.0
    gap: float = float("nan")
    clicked: int = 0
    stale_clicks: int = 0
    windows: list[float] = field(default_factory=list)
    cost: float = 0.0
    young: tuple[float, float] = (0.0, 0.0)
    purposes: Counter[str] = field(default_factory=Counter)
    found_stale: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_), repr=False)
    visited: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    arms: ArmRecord | None = field(default=None, repr=False)

    @property
    def visits_per_page_day(self) -> float:
        return self.visits / self.page_days if self.page_days else 0.0

    def column(self, name: str) -> Floats:
        """One of the daily lists as an array."""
        return np.array(getattr(self, name), dtype=np.float64)


@dataclass
class _Day:
    """One day's sums."""

    day: date
    fresh: list[float] = field(default_factory=list)
    untouched: float = 0.0
    clicked: float = 0.0
    happy: float = 0.0


_YOUNG = np.timedelta64(7, "D")


class Referee:
    """Watches a replay from `start` on; what came before is warm-up.

    Learns outcomes to count visits, and reads the copies at the end of every tick. `born` tells
    when each page was born, ascending; without it none is young.
    """

    def __init__(self, readers: Readership, start: datetime, born: Times | None = None) -> None:
        self.readers = readers
        self.start = start
        self.born = np.empty(0, dtype="M8[us]") if born is None else born
        self.score = Score()
        self._day: _Day | None = None
        self._ticks = 0
        self._before: tuple[int, int] | None = None
        self._total = np.zeros(0)
        self._gaps, self._waited = 0, 0.0

    def learn(self, outcomes: Outcomes) -> None:
        late = outcomes.made & (outcomes.at >= instant(self.start))
        self.score.visits += int(np.count_nonzero(late))
        self.score.failed += int(np.count_nonzero(late & _FAILED[outcomes.status]))
        for purpose, visits in enumerate(np.bincount(outcomes.purpose[late]).tolist()):
            if visits:
                self.score.purposes[Purpose(purpose).label] += visits
        self.score.visited = _counted(self.score.visited, outcomes.page[late])
        waited = days_between(outcomes.since[late], outcomes.at[late])
        self._gaps += int(np.count_nonzero(~np.isnan(waited)))
        self._waited += float(np.nansum(waited))

    def read(self, tick: Tick, copies: SimulatedCopies) -> None:
        self.score.page_ticks += copies.born
        if self._before is None or tick.start < self.start:
            self._open(copies)
        if tick.start < self.start:
            return
        if self._day is None or self._day.day != tick.start.date():
            self.close()
            self._day = _Day(tick.start.date())
        self._count(self._day, tick, copies)

    def _open(self, copies: SimulatedCopies) -> None:
        """Until the measured days begin: keep what was caught and missed before them."""
        weights = self.readers.weights()
        if self._before is None and weights is not None:
            copies.weigh(weights)
            self._total = np.cumsum(weights)
        self._before = (copies.caught, copies.missed)

    def _count(self, day: _Day, tick: Tick, copies: SimulatedCopies) -> None:
        n = max(1, copies.born)
        day.fresh.append(copies.fresh_count / n)
        day.untouched = copies.untouched / n
        self._count_clicks(day, tick, copies)
        self._ticks += 1
        score = self.score
        score.age += (copies.age_days(instant(tick.end)) / n - score.age) / self._ticks
        score.harmonic += (copies.harmonic / n - score.harmonic) / self._ticks
        score.page_days += n * tick.days
        caught, missed = self._before or (0, 0)
        score.caught, score.missed = copies.caught - caught, copies.missed - missed

    def _count_clicks(self, day: _Day, tick: Tick, copies: SimulatedCopies) -> None:
        young = int(np.searchsorted(self.born, instant(tick.start) - _YOUNG))
        if copies.weights is not None:
            day.clicked += float(self._total[copies.born - 1])
            day.happy += copies.fresh_weight
            rows = np.arange(young, copies.born) if len(self.born) else np.arange(0)
            clicks = copies.weights[rows]
        else:
            rows, clicks = self.readers.clicks(tick)
            day.clicked += float(clicks.sum())
            day.happy += float(clicks[copies.fresh[rows]].sum())
            some = rows >= (young if len(self.born) else len(copies.fresh))
            rows, clicks = rows[some], clicks[some]
        clicked, happy = self.score.young
        happy += float(clicks[copies.fresh[rows]].sum())
        self.score.young = clicked + float(clicks.sum()), happy

    def close(self) -> None:
        """End the present day."""
        if self._day is not None:
            day, self._day = self._day, None
            self.score.days.append(day.day)
            self.score.clicks.append(day.happy / day.clicked if day.clicked else float("nan"))
            self.score.midnight.append(day.fresh[-1])
            self.score.untouched.append(day.untouched)
            self.score.ticks.append(float(np.mean(day.fresh)))
        self.score.gap = self._waited / self._gaps if self._gaps else float("nan")


def _counted(visited: Ints, page: Ints) -> Ints:
    """The counts with one more for each of the pages; they grow as higher ids come.

    >>> _counted(np.array([1, 0]), np.array([3, 0, 3])).tolist()
    [2, 0, 0, 2]
    """
    missing = int(page.max(initial=-1)) + 1 - len(visited)
    if missing > 0:
        visited = np.append(visited, np.zeros(missing, dtype=np.int64))
    np.add.at(visited, page, 1)
    return visited
