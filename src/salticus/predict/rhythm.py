"""Change rates with a sense of time: every merchant's pages age by the merchant's own week."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Self

import numpy as np

from salticus.predict.pooled import Pooled
from salticus.predict.spans import Spans
from salticus.predict.worth import (
    MONDAY_US,
    WEEK_US,
    Posterior,
    Table,
    between,
    coming_week,
    own_ages,
    rhythm_worth,
)
from salticus.types import Bools, Floats, Ints, Pages, Times, instant
from salticus.types.compiled import compiled
from salticus.types.dates import DAY_US, HOUR_US
from salticus.types.state import State, part_of

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
HORIZON = 168  # ticks to look ahead at most
HOURS = 168
_PER_DAY, _PER_HOUR = 20.0, 3.0  # changes that it takes to believe a day, or an hour of it
_LEAST = 0.01
_MEMORY_DAYS = 200.0


@dataclass(frozen=True, slots=True)
class RhythmSurvival:
    """S(u) = (b/(b + H(u)))^a with H the own time that passes in u days after the last visit.

    `row` is the merchant's in `table`, which runs own time against the hours of the week; `last`
    and `now` are µs since 1970. For a page that was never visited own time is plain time. `level`
    is the change rate a day where it is not a/b.
    """

    a: Floats
    b: Floats
    row: Ints
    last: Ints
    now: int
    table: Table
    level: Floats | None = None

    def unchanged(self, ages: Floats) -> Floats:
        hazard = self.own(ages)
        hazard /= self.b
        np.log1p(hazard, out=hazard)
        hazard *= self.a
        return np.exp(np.negative(hazard, out=hazard), out=hazard)

    def integral(self, ages: Floats) -> Floats:
        """∫₀^τ S by Gauss and Legendre; slow, and no policy needs it for all pages."""
        ages = np.asarray(ages, dtype=np.float64)
        rule = zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True)
        middle = sum(w * self.unchanged(ages * (x + 1.0) / 2.0) for x, w in rule)
        return np.asarray(middle * ages / 2.0)

    def rates(self) -> Floats:
        return np.asarray(self.a / self.b) if self.level is None else self.level

    def worth(self, ages: Floats, step: float) -> Floats:
        """V(τ) in own time, with a look at the coming week (see `rhythm_worth`), days."""
        ticks = max(1, min(HORIZON, round(7.0 / step)))
        ends = self.now + (np.arange(ticks + 1) * (step * DAY_US)).astype(np.int64)
        posterior = Posterior(self.a, self.b, self.row)
        return rhythm_worth(posterior, self.own(ages), coming_week(self.table, ends, step))

    def own(self, ages: Floats) -> Floats:
        """Own time that passes in so many days after the last answer, days."""
        plain = np.ascontiguousarray(ages, dtype=np.float64)
        return own_ages(self.table, self.row, self.last, plain)

    def since(self, last: Times) -> RhythmSurvival:
        return replace(self, last=last.view(np.int64))

    def take(self, rows: Ints | Bools) -> Self:
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "table"}
        cut: Any = {name: c[rows] for name, c in kept.items() if isinstance(c, np.ndarray)}
        return replace(self, **cut)


class Rhythm(Pooled):
    """`Pooled`, on a clock that runs as each merchant's pages change through the week.

    A page's changes are a Poisson process in own time: H(t) runs fast in the hours in which the
    merchant's pages change and almost stops in the others (`Week`; learnt from the visits' own
    outcomes, drawn to the week of all merchants where there are few). So the posterior stays a
    Gamma, of changes per day of own time, and P(unchanged) = (b/(b + H))^a.

    Cost: as `Pooled`, and 168 numbers a merchant.
    """

    def __init__(self, *, memory_days: float = 50.0) -> None:
        super().__init__(memory_days=memory_days)
        self.week_ = Week()

    def survival(self, pages: Pages, now: datetime) -> RhythmSurvival:
        curves = super().survival(pages, now)
        assert isinstance(curves, RhythmSurvival)
        return curves

    def _curves(self, rows: Ints | slice, pages: Pages, now: datetime) -> RhythmSurvival:
        a, b = self._gamma(rows)
        return RhythmSurvival(
            a=a,
            b=b,
            row=self._week_row(rows),
            last=pages.last_answer.view(np.int64),
            now=int(instant(now).astype(np.int64)),
            table=self.week_.table_,
        )

    def _gamma(self, rows: Ints | slice) -> tuple[Floats, Floats]:
        """The posterior Gamma(a, b) of pages' change rates at present, in days of own time."""
        return self.pages_["a"][rows], self.pages_["b"][rows]

    def _week_row(self, rows: Ints | slice) -> Ints:
        """Row of each page's merchant in the table of weeks; 0 = unknown."""
        self.week_.meet(self._groups["merchant"])
        return np.maximum(self.pages_["merchant"][rows].astype(np.int64) + 1, 0)

    def paces(self, ids: Ints) -> Floats:
        """How fast each page's merchant changes in the hours of the week; pages × 168."""
        return self.week_.pace_[self._week_row(self.pages_.rows(ids))]

    def _own_time(self, rows: Ints, spans: Spans) -> Floats:
        start, end = spans.start.view(np.int64), spans.end.view(np.int64)
        return np.maximum(self.week_.between(self._week_row(rows), start, end), 1e-9)

    def _note(self, rows: Ints, spans: Spans, events: Floats) -> None:
        rate = self.pages_["a"][rows] / self.pages_["b"][rows]
        start, end = spans.start.view(np.int64), spans.end.view(np.int64)
        self.week_.learn(self._week_row(rows), start, end, rate, events)

    def _fit(self) -> None:
        super()._fit()
        self.week_.settle()

    def state(self) -> State:
        week = {f"week_{name}": column for name, column in self.week_.state().items()}
        return {**super().state(), **week}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.week_.restore(part_of(state, "week_"))


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
        known, more = len(self.pace_), merchants + 1 - len(self.pace_)
        if more > 0:
            for name in ("changes_", "expected_", "pace_", "table_"):
                setattr(self, name, np.pad(getattr(self, name), ((0, more), (0, 0))))
            self._believe(np.arange(known, known + more))

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
            days = (now - self._until) / DAY_US if self._until >= 0 else 0.0
            for kept in (self.changes_, self.expected_):
                kept *= np.exp(-days / _MEMORY_DAYS)
            self._until = now

    def _believe(self, rows: Ints) -> None:
        """Work the paces of these merchants out again."""
        even = np.ones((1, 7)), np.ones((1, 7, 24))
        days, shape = _paces(self.changes_[:1], self.expected_[:1], *even)
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
        kept = (state[name].copy() for name in ("changes", "expected", "pace"))
        self.changes_, self.expected_, self.pace_ = kept
        self._until = float(state["until"])
        self.table_ = _running(self.pace_)


def _paces(changes: Table, expected: Table, days: Table, within: Table) -> tuple[Table, Table]:
    """Pace by day (n × 7), drawn to `days`; and by hour (n × 168), drawn to that times `within`."""
    found, hoped = (x.sum(axis=1, keepdims=True) + 1.0 for x in (changes, expected))
    fair = expected * (found / hoped)  # only the shape of the week is of interest
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


@compiled
def _spread(rows: int, row: Ints, start: Ints, end: Ints, weight: Floats) -> Table:
    """Days that fall into each hour of the week, times `weight`, summed by row."""
    total, whole = np.zeros((rows, HOURS)), np.zeros(rows)
    edge = np.zeros((rows, HOURS + 1))  # what begins at an hour, and ends at another
    start, end = start - MONDAY_US, end - MONDAY_US
    for k in range(len(row)):
        weeks = (end[k] - start[k]) // WEEK_US
        whole[row[k]] += weeks * weight[k]
        first, last = start[k] % WEEK_US, (end[k] - weeks * WEEK_US - start[k])
        _add_part(total[row[k]], edge[row[k]], first, min(last, WEEK_US - first), weight[k])
        _add_part(total[row[k]], edge[row[k]], 0, max(0, last + first - WEEK_US), weight[k])
    for r in range(rows):
        run = 0.0
        for hour in range(HOURS):
            run += edge[r, hour]
            total[r, hour] += (run + whole[r]) / 24.0
    return total


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
