"""News of kin: what visits to a page's kin have told of the days since its own last visit."""

from __future__ import annotations

import numpy as np

from salticus.predict.spans import Spans
from salticus.predict.worth import Table
from salticus.types import Floats, Ints
from salticus.types.dates import DAY_US
from salticus.types.state import State

DAYS = 28  # as far back as news go


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
        self._more: Table = np.zeros((0, DAYS + 1))

    def meet(self, merchant: Ints) -> None:
        """Have a row for every group: that of its merchant among the weeks."""
        new = max(0, len(merchant) - len(self.counts_))
        self.counts_ = np.pad(self.counts_, ((0, new), (0, 0), (0, 0)))
        self.merchant = merchant

    def settle(self, pace: Table) -> None:
        """Work the factors out; `pace` is each merchant's own time by hour of the week."""
        if self.off or self.day_ < 0:
            return
        daily = pace.reshape(-1, 7, 24).mean(axis=2)[self.merchant]
        weekday = (self.day_ - DAYS + 1 + np.arange(DAYS) + 3) % 7
        self._factor = self._factors()
        self._more = np.zeros((len(daily), DAYS + 1))
        np.cumsum(daily[:, weekday] * (self._factor - 1.0), axis=1, out=self._more[:, 1:])

    def more(self, group: Ints, start: Ints, end: Ints) -> Floats:
        """Own days that passed beyond those of a usual week from `start` to `end`, µs."""
        if self.day_ < 0:
            return np.zeros(len(group))
        return self._until(group, end) - self._until(group, start)

    def learn(self, group: Ints, spans: Spans, rate: Floats, pace: Table) -> None:
        """Take in what visits to pages of these groups found; all that were made, not only those
        that found a change. `rate` is in changes a day of own time."""
        if self.off or not len(group):
            return
        start, end = spans.start.view(np.int64), spans.end.view(np.int64)
        self._go_on(int(end.max()) // DAY_US)
        daily = pace.reshape(-1, 7, 24).mean(axis=2)[self.merchant]
        first = self.day_ - DAYS + 1
        low, high = np.maximum(start // DAY_US, first), -(-end // DAY_US) - 1
        parts, total = [], np.zeros(len(group))
        for back in range(int((high - low).max()) + 1):
            some = np.flatnonzero(high - back >= low)
            kin, day = group[some], high[some] - back
            whole = np.minimum(end[some], (day + 1) * DAY_US)
            length = (whole - np.maximum(start[some], day * DAY_US)) / DAY_US
            hoped = rate[some] * length * daily[kin, (day + 3) % 7]
            place = (kin, day - first)
            likely = hoped * self._factor[place]
            total[some] += likely
            parts.append((some, place, hoped, likely))
        sure = np.maximum(total, 1e-9)
        events = np.where(spans.changed, sure / -np.expm1(-sure), 0.0) / sure
        for some, place, hoped, likely in parts:
            np.add.at(self.counts_[:, 0], place, events[some] * likely)
            np.add.at(self.counts_[:, 1], place, hoped)

    def _until(self, group: Ints, at: Ints) -> Floats:
        place = np.clip(at / DAY_US - (self.day_ - DAYS + 1), 0.0, DAYS - 1e-9)
        day = place.astype(np.int64)
        begun = self._more[group, day]
        return np.asarray(begun + (self._more[group, day + 1] - begun) * (place - day))

    def _go_on(self, day: int) -> None:
        """Let the last column be that of `day`."""
        gone = min(day - self.day_, DAYS) if self.day_ >= 0 else 0
        if gone > 0:
            self.counts_ = np.pad(self.counts_[:, :, gone:], ((0, 0), (0, 0), (0, gone)))
        self.day_ = max(self.day_, day)
        self._factor = self._factors()

    def _factors(self) -> Table:
        found, expected = self.counts_[:, 0], self.counts_[:, 1]
        above: Table = np.ones_like(found)
        if np.isfinite(self.merchant_prior):
            total = np.zeros((int(self.merchant.max(initial=0)) + 1, 2, DAYS))
            np.add.at(total, self.merchant, self.counts_)
            total += self.merchant_prior
            above = (total[:, 0] / total[:, 1])[self.merchant]
        if not np.isfinite(self.kin_prior):
            return above
        own = (found + self.kin_prior) / (expected * above + self.kin_prior)
        return np.asarray(above * own)

    def state(self) -> State:
        found, expected = self.counts_[:, 0].copy(), self.counts_[:, 1].copy()
        return {"found": found, "expected": expected, "day": np.array(self.day_)}

    def restore(self, state: State) -> None:
        self.counts_ = np.stack([state["found"], state["expected"]], axis=1)
        self.day_ = int(state["day"])
