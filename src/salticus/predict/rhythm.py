"""Change rates with a sense of time: every merchant's pages age by the merchant's own week."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from salticus.predict.pooled import Pooled
from salticus.predict.spans import Spans
from salticus.predict.week import Week
from salticus.predict.worth import Ahead, Posterior, Table, coming_week, own_ages, rhythm_worth
from salticus.types import DAY, Bools, Floats, Ints, Pages, Survival, Times, instant
from salticus.types.state import State, part_of

_DAY_US = int(DAY.astype(np.int64))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
HORIZON = 168  # ticks to look ahead at most


@dataclass(frozen=True, slots=True)
class RhythmSurvival:
    """S(u) = (b/(b + H(u)))^a with H the own time that passes in u days after the last visit.

    `row` is the merchant's in `table`, which runs own time against the hours of the week; `last`
    and `now` are µs since 1970. For a page that was never visited own time is plain time.
    """

    a: Floats
    b: Floats
    row: Ints
    last: Ints
    now: int
    table: Table

    def unchanged(self, ages: Floats) -> Floats:
        return np.exp(-self.a * np.log1p(self.own(ages) / self.b))

    def integral(self, ages: Floats) -> Floats:
        """∫₀^τ S by Gauss and Legendre; slow, and no policy needs it for all pages."""
        ages = np.asarray(ages, dtype=np.float64)
        middle = sum(w * self.unchanged(ages * (x + 1.0) / 2.0) for x, w in _rule())
        return np.asarray(middle * ages / 2.0)

    def rates(self) -> Floats:
        return np.asarray(self.a / self.b)

    def worth(self, ages: Floats, step: float) -> Floats:
        """V(τ) in own time, with a look at the coming week (see `rhythm_worth`), days."""
        posterior = Posterior(self.a, self.b, self.row)
        return rhythm_worth(posterior, self.own(ages), look_ahead(self.table, self.now, step))

    def own(self, ages: Floats) -> Floats:
        """Own time that passes in so many days after the last answer, days."""
        plain = np.ascontiguousarray(ages, dtype=np.float64)
        return own_ages(self.table, self.row, self.last, plain)

    def since(self, last: Times) -> RhythmSurvival:
        return replace(self, last=last.view(np.int64))

    def take(self, rows: Ints | Bools) -> RhythmSurvival:
        return replace(
            self, a=self.a[rows], b=self.b[rows], row=self.row[rows], last=self.last[rows]
        )


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

    def _curves(self, rows: Ints | slice, pages: Pages, now: datetime) -> Survival:
        return RhythmSurvival(
            a=self.pages_["a"][rows],
            b=self.pages_["b"][rows],
            row=self._week_row(rows),
            last=pages.last_answer.view(np.int64),
            now=int(instant(now).astype(np.int64)),
            table=self.week_.table_,
        )

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


def look_ahead(table: Table, now: int, step: float) -> Ahead:
    """The coming week of each merchant in ticks of `step` days, from `now` (µs since 1970) on."""
    ticks = max(1, min(HORIZON, round(7.0 / step)))
    return coming_week(
        table, now + (np.arange(ticks + 1) * (step * _DAY_US)).astype(np.int64), step
    )


def _rule() -> zip[tuple[float, float]]:
    return zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True)
