"""The week of each merchant: at which hours its pages change, as far as visits can tell."""

from __future__ import annotations

import numpy as np

from salticus.predict.worth import Table, between
from salticus.types import Floats, Ints
from salticus.types.compiled import compiled
from salticus.types.state import State

HOUR_US = 3_600_000_000
HOURS = 168
_WEEK_US = HOURS * HOUR_US
_MONDAY_US = 4 * 24 * HOUR_US  # 1970 began on a Thursday
_PER_DAY, _PER_HOUR = 20.0, 3.0  # changes that it takes to believe a day, or an hour of it
_LEAST = 0.01
_MEMORY_DAYS = 200.0


class Week:
    """How fast the own time of every merchant runs in each hour of the week (UTC); 1 on average.

    In own time changes come evenly. An hour's pace is changes found over changes expected. Where
    there are few, the pace of a day is drawn to that of all merchants, and that of an hour to its
    day's. A change that was found after more than an hour is divided among the hours since the
    visit before, by the paces believed so far (the EM algorithm for a rate that is only known by
    intervals). Row 0 is for merchants of which nothing is known.

    Cost: linear in the visits learnt and the merchants that they concern.
    """

    def __init__(self) -> None:
        self.changes_: Table = np.zeros((1, HOURS))
        self.expected_: Table = np.zeros((1, HOURS))
        self.pace_: Table = np.ones((1, HOURS))
        self.table_: Table = _running(self.pace_)
        self._until = -1.0  # µs since 1970

    def meet(self, merchants: int) -> None:
        """Have a row for so many, besides row 0."""
        more = merchants + 1 - len(self.pace_)
        if more > 0:
            self.changes_ = np.pad(self.changes_, ((0, more), (0, 0)))
            self.expected_ = np.pad(self.expected_, ((0, more), (0, 0)))
            new = np.arange(len(self.pace_), len(self.pace_) + more)
            self.pace_ = np.pad(self.pace_, ((0, more), (0, 0)))
            self.table_ = np.pad(self.table_, ((0, more), (0, 0)))
            self._believe(new)

    def between(self, row: Ints, start: Ints, end: Ints) -> Floats:
        """Days of own time from `start` to `end` (µs since 1970) for merchants in these rows."""
        return between(self.table_, row, start, end)

    def learn(self, row: Ints, start: Ints, end: Ints, rate: Floats, events: Floats) -> None:
        """Pages of these merchants with this change rate (a day of own time) were watched from
        `start` to `end`; so many changes are supposed to have happened meanwhile."""
        self._fade(float(end.max(initial=0)))
        some, place = np.unique(row, return_inverse=True)
        own = self.between(row, start, end)
        watched = _spread(len(some), place, start, end, rate)
        found = _spread(len(some), place, start, end, events / np.maximum(own, 1e-12))
        found *= self.pace_[some]
        for kept, new in ((self.expected_, watched), (self.changes_, found)):
            kept[some] += new
            kept[0] += new[some != 0].sum(axis=0)
        self._believe(np.union1d(some, [0]))

    def settle(self) -> None:
        """Work all paces out again, so that merchants not visited of late follow the others."""
        self._believe(np.arange(len(self.pace_)))

    def _fade(self, now: float) -> None:
        """Let what is long ago count less."""
        if now > self._until:
            days = (now - self._until) / (24 * HOUR_US) if self._until >= 0 else 0.0
            for kept in (self.changes_, self.expected_):
                kept *= np.exp(-days / _MEMORY_DAYS)
            self._until = now

    def _believe(self, rows: Ints) -> None:
        """Work the paces of these merchants out again."""
        days, shape = _paces(
            self.changes_[:1], self.expected_[:1], np.ones((1, 7)), np.ones((1, 7, 24))
        )
        within = shape.reshape(1, 7, 24) / np.maximum(days[:, :, None], 1e-12)
        _, pace = _paces(self.changes_[rows], self.expected_[rows], days, within)
        pace = np.maximum(pace, _LEAST)
        self.pace_[rows] = pace / pace.mean(axis=1, keepdims=True)
        self.table_[rows] = _running(self.pace_[rows])

    def state(self) -> State:
        return {
            "changes": self.changes_,
            "expected": self.expected_,
            "pace": self.pace_,
            "until": np.array(self._until),
        }

    def restore(self, state: State) -> None:
        self.changes_, self.expected_ = state["changes"].copy(), state["expected"].copy()
        self._until = float(state["until"])
        self.pace_ = state["pace"].copy()
        self.table_ = _running(self.pace_)


def _paces(changes: Table, expected: Table, days: Table, within: Table) -> tuple[Table, Table]:
    """Pace by day (n × 7), drawn to `days`; and by hour (n × 168), drawn to that times `within`.

    What was expected is scaled to what was found in all: only the shape of the week is of interest.
    """
    found, hoped = (x.sum(axis=1, keepdims=True) + 1.0 for x in (changes, expected))
    fair = expected * (found / hoped)
    by_day, fair_by_day = (x.reshape(-1, 7, 24).sum(axis=2) for x in (changes, fair))
    day = (by_day + _PER_DAY * days) / (fair_by_day + _PER_DAY)
    parent = (day[:, :, None] * within * np.ones(24)).reshape(-1, HOURS)
    return day, (changes + _PER_HOUR * parent) / (fair + _PER_HOUR)


def _running(pace: Table) -> Table:
    """Days of own time since Monday 00:00 at the start of each hour, and at the end of the week."""
    table = np.zeros((len(pace), HOURS + 1))
    np.cumsum(pace / 24.0, axis=1, out=table[:, 1:])
    table[:, -1] = 7.0
    return table


def _spread(rows: int, row: Ints, start: Ints, end: Ints, weight: Floats) -> Table:
    """Days that fall into each hour of the week, times `weight`, summed by row."""
    total = np.zeros((rows, HOURS))
    _add_hours(total, row, start - _MONDAY_US, end - _MONDAY_US, weight)
    return total


@compiled
def _add_hours(total: Table, row: Ints, start: Ints, end: Ints, weight: Floats) -> None:
    whole = np.zeros(len(total))
    edge = np.zeros((len(total), HOURS + 1))  # what begins at an hour, and ends at another
    for k in range(len(row)):
        weeks = (end[k] - start[k]) // _WEEK_US
        whole[row[k]] += weeks * weight[k]
        first, last = start[k] % _WEEK_US, (end[k] - weeks * _WEEK_US - start[k])
        _add_part(total[row[k]], edge[row[k]], first, min(last, _WEEK_US - first), weight[k])
        _add_part(total[row[k]], edge[row[k]], 0, max(0, last + first - _WEEK_US), weight[k])
    for r in range(len(total)):
        run = 0.0
        for hour in range(HOURS):
            run += edge[r, hour]
            total[r, hour] += (run + whole[r]) / 24.0


@compiled
def _add_part(total: Floats, edge: Floats, start: int, length: int, weight: float) -> None:
    """Add `length` µs from `start` on, both within one week: whole hours by their edges."""
    if length <= 0:
        return
    end = start + length
    first, last = start // HOUR_US, end // HOUR_US
    if first == last:
        total[first] += weight * (length / HOUR_US) / 24.0
        return
    total[first] += weight * ((first + 1) - start / HOUR_US) / 24.0
    edge[first + 1] += weight
    edge[last] -= weight
    if last < HOURS:
        total[last] += weight * (end / HOUR_US - last) / 24.0
