"""News of kin: what visits to a page's kin have told of the days since its own last visit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.predict.spans import Spans
from salticus.predict.worth import Table, between
from salticus.types import Floats, Ints
from salticus.types.dates import DAY_US
from salticus.types.state import State

DAYS = 28  # as far back as news go
SLOWEST = 0.05  # own time never runs slower than at this share of the usual, whatever the news


@dataclass(frozen=True, slots=True)
class DailyNews:
    """How fast own time ran on the last days, over the usual, as far as it is known.

    `factor` tells that by group and day, from day `first` on (since 1970); `beyond` the own days
    that passed before each of the days beyond the usual ones. `row` is that of a group's merchant
    among the weeks, whose `table` tells the usual own time (see `Week`). Law: own time never runs
    backwards.
    """

    first: int
    factor: Table
    beyond: Table
    row: Ints
    table: Table

    def more(self, group: Ints, start: Ints, end: Ints) -> Floats:
        """Own days that passed beyond the usual from `start` to `end`, µs; of no group none."""
        told = np.zeros(len(group))
        known = np.flatnonzero(group >= 0)
        some = group[known]
        told[known] = self._until(some, end[known]) - self._until(some, start[known])
        return told

    def _until(self, group: Ints, at: Ints) -> Floats:
        start = self.first * DAY_US
        at = np.clip(at, start, start + len(self.factor[0]) * DAY_US - 1)
        day = at // DAY_US
        own = between(self.table, self.row[group], day * DAY_US, at)
        place = group, day - self.first
        return np.asarray(self.beyond[place] + (self.factor[place] - 1.0) * own)


class News:
    """How many changes each group had on each of the last days, over what was expected of it.

    Changes found and expected by day, for groups within merchants. A day's factor of a merchant is
    (found + k)/(expected + k), k = `merchant_prior`; that of a group is drawn to its merchant's by
    `kin_prior`. Infinite priors turn a level off. A change found after several days is divided
    among them by what was expected of each, as `Week` does with hours.

    Cost: a visit as many steps as its span has days; groups × 28 numbers.
    """

    def __init__(self, *, kin_prior: float, merchant_prior: float) -> None:
        self.kin_prior, self.merchant_prior = kin_prior, merchant_prior
        self.off = bool(np.isinf(kin_prior) and np.isinf(merchant_prior))
        self.counts_: Floats = np.zeros((0, 2, DAYS))  # by group: found, expected
        self.day_ = -1  # of the last column, days since 1970; -1: nothing was told yet
        self.merchant: Ints = np.empty(0, dtype=np.int64)
        self._factor: Table = np.ones((0, DAYS))

    def meet(self, merchant: Ints) -> None:
        """Have a row for every group: that of its merchant among the weeks."""
        new = max(0, len(merchant) - len(self.counts_))
        self.counts_ = np.pad(self.counts_, ((0, new), (0, 0), (0, 0)))
        self.merchant = merchant

    def daily(self, table: Table) -> DailyNews | None:
        """The news of each day, given all merchants' own time (see `Week`); None if there are
        none."""
        if self.off or self.day_ < 0:
            return None
        first = self.day_ - DAYS + 1
        factor = self._factors()
        beyond = np.zeros((len(factor), DAYS + 1))
        np.cumsum(self._usual(table) * (factor - 1.0), axis=1, out=beyond[:, 1:])
        return DailyNews(first, factor, beyond, self.merchant, table)

    def learn(self, group: Ints, spans: Spans, rate: Floats, table: Table) -> None:
        """Take in what visits to pages of these groups found; all that were made, not only those
        that found a change. `rate` is in changes a day of own time."""
        known = group >= 0
        if self.off or not known.any():
            return
        group, spans, rate = group[known], spans.take(known), rate[known]
        start, end = spans.start.view(np.int64), spans.end.view(np.int64)
        self._advance(int(end.max()) // DAY_US)
        first = self.day_ - DAYS + 1
        low, high = np.maximum(start // DAY_US, first), -(-end // DAY_US) - 1
        parts, total = [], np.zeros(len(group))
        for back in range(int((high - low).max()) + 1):
            some = np.flatnonzero(high - back >= low)
            kin, day = group[some], high[some] - back
            begin = np.maximum(start[some], day * DAY_US)
            until = np.minimum(end[some], (day + 1) * DAY_US)
            hoped = rate[some] * between(table, self.merchant[kin], begin, until)
            place = (kin, day - first)
            likely = hoped * self._factor[place]
            total[some] += likely
            parts.append((some, place, hoped, likely))
        sure = np.maximum(total, 1e-9)
        events = np.where(spans.changed, sure / -np.expm1(-sure), 0.0) / sure
        for some, place, hoped, likely in parts:
            np.add.at(self.counts_[:, 0], place, events[some] * likely)
            np.add.at(self.counts_[:, 1], place, hoped)

    def _advance(self, day: int) -> None:
        """Let the last column be that of `day`."""
        gone = min(day - self.day_, DAYS) if self.day_ >= 0 else 0
        if gone > 0:
            self.counts_ = np.pad(self.counts_[:, :, gone:], ((0, 0), (0, 0), (0, gone)))
        self.day_ = max(self.day_, day)
        self._factor = self._factors()

    def _usual(self, table: Table) -> Table:
        """Own time of each of the last days in a usual week, by group."""
        weekday = (self.day_ - DAYS + 1 + np.arange(DAYS) + 3) % 7
        return np.asarray(np.diff(table[:, ::24], axis=1)[self.merchant][:, weekday])

    def _factors(self) -> Table:
        found, expected = self.counts_[:, 0], self.counts_[:, 1]
        above: Table = np.ones_like(found)
        if np.isfinite(self.merchant_prior):
            total = np.zeros((int(self.merchant.max(initial=0)) + 1, 2, DAYS))
            np.add.at(total, self.merchant, self.counts_)
            total += self.merchant_prior
            above = (total[:, 0] / total[:, 1])[self.merchant]
        if np.isfinite(self.kin_prior):
            above = above * (found + self.kin_prior) / (expected * above + self.kin_prior)
        return np.maximum(above, SLOWEST)

    def state(self) -> State:
        found, expected = self.counts_[:, 0].copy(), self.counts_[:, 1].copy()
        return {"found": found, "expected": expected, "day": np.array(self.day_)}

    def restore(self, state: State) -> None:
        self.counts_ = np.stack([state["found"], state["expected"]], axis=1)
        self.day_ = int(state["day"])
