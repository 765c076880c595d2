"""A rhythm whose traits are fitted: memory, regimes, echoes of changes, and news of kin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from salticus.models.traits import Traits
from salticus.predict.gamma import posterior
from salticus.predict.kin import Kin
from salticus.predict.mixed import gamma_through
from salticus.predict.news import SLOWEST, DailyNews, News
from salticus.predict.pooled import at_least_one
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.predict.spans import Spans
from salticus.predict.worth import own_ages
from salticus.types import NEVER, Bools, Floats, Ints, Outcomes, Pages
from salticus.types.dates import DAY_US
from salticus.types.state import State, part_of

_WEEK = 7.0
_AEONS = 1e5  # days


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSurvival(RhythmSurvival):
    """A rhythm's curve on which news of kin make own time run faster or slower.

    `kin` is the group of each page in the `news`, -1 = none. `level` is the change rate with the
    echoes that are expected of the coming week.
    """

    kin: Ints
    news: DailyNews | None = None

    def own(self, ages: Floats) -> Floats:
        return self._own_since(self.last, np.ascontiguousarray(ages, dtype=np.float64))

    def _own_since(self, last: Ints, ages: Floats) -> Floats:
        """Own time in so many days since a time of its own for each page, days."""
        usual = own_ages(self.table, self.row, last, ages)
        if self.news is None:
            return usual
        known = np.where(last > NEVER.view(np.int64), self.kin, -1)
        start = np.maximum(last, 0)
        end = start + (np.minimum(ages, _AEONS) * DAY_US).astype(np.int64)
        return np.maximum(usual + self.news.more(known, start, end), SLOWEST * usual)


class Fitted(Rhythm):
    """`Rhythm`, with traits of the world that were fitted to visits.

    Beside the usual rate of a page (`Rhythm`'s) stands that of its present regime, drawn to the
    usual one. A change that may be the echo of the one before counts for less than a change. Own
    time runs faster on days on which kin were found changed, slower on those on which they were
    not. Law: with the usual traits it is `Rhythm`, to the bit.

    Cost: as `Rhythm`, and that of `News`.
    """

    def __init__(self, traits: Traits, kin: Kin) -> None:
        super().__init__(memory_days=traits.memory_days)
        self.traits, self.kin = traits, kin
        self.news_ = News(kin_prior=traits.kin_prior, merchant_prior=traits.merchant_prior)
        self.more_ = Roster(a=0.0, b=0.0, echo=0.0)
        self.echoes_ = np.zeros((2, 1))  # by merchant: found, expected
        self._related = False  # every group to its merchant
        self._told = False  # by visits, each as soon as it was made

    def relate(self, kin: Kin) -> None:
        """Let more be known of which pages are kin; groups keep their numbers."""
        self.kin, self._related = kin, False

    def learn(self, outcomes: Outcomes) -> None:
        self._told = bool((outcomes.visit >= 0).any())
        super().learn(outcomes)

    # ------------------------------------------------------------------------------------ curves

    def _curves(self, rows: Ints | slice, pages: Pages, now: datetime) -> FittedSurvival:
        rows = np.arange(len(self.pages_)) if isinstance(rows, slice) else rows
        plain = super()._curves(rows, pages, now)
        a, b = self._now(rows, np.ones(len(rows)))
        echo = self.more_["echo"][rows]
        return FittedSurvival(
            a=plain.a,
            b=plain.b,
            row=plain.row,
            last=plain.last,
            now=plain.now,
            table=plain.table,
            level=a / b + echo * -np.expm1(-_WEEK / self.traits.echo_days) / _WEEK,
            kin=self.kin.of(self.pages_.ids[rows]),
            news=self.news_.daily(plain.table),
        )

    def _gamma(self, rows: Ints | slice) -> tuple[Floats, Floats]:
        """The Gamma of the present regime, with the echo of the latest change."""
        rows = np.arange(len(self.pages_)) if isinstance(rows, slice) else rows
        self._grow()
        now = self._now(rows, np.ones(len(rows)))
        return self._with_echo(*now, self.more_["echo"][rows])

    def _with_echo(self, a: Floats, b: Floats, echo: Floats) -> tuple[Floats, Floats]:
        """The Gamma through −ln S after the echo's time, and after a week."""
        near = self.traits.echo_days
        far = max(_WEEK, 4 * near)
        hot = np.flatnonzero(echo > 1e-4)
        a, b, echo = a.copy(), b.copy(), echo[hot]

        def point(own: float) -> tuple[Floats, Floats]:
            base = a[hot] * np.log1p(own / b[hot])
            return np.full(len(hot), own), base - echo * np.expm1(-own / near)

        a[hot], b[hot] = gamma_through(point(near), point(far))
        return a, b

    # ---------------------------------------------------------------------------------- learning

    def _own_time(self, rows: Ints, spans: Spans) -> Floats:
        usual = super()._own_time(rows, spans)
        news = self.news_.daily(self.week_.table_) if self._told else None
        if news is None:
            return usual
        start, end = spans.start.view(np.int64), spans.end.view(np.int64)
        more = news.more(self.kin.of(self.pages_.ids[rows]), start, end)
        return np.maximum(usual + more, SLOWEST * usual)

    def _update(self, rows: Ints, spans: Spans) -> None:
        """Usual rate and regime after the spans; a change counts as far as it is no echo."""
        self._grow()
        own, changed = self._own_time(rows, spans), spans.changed
        kept = np.exp(-spans.days / self.traits.regime_days)
        before = self.more_["echo"][rows]
        echo = before * -np.expm1(-own / self.traits.echo_days)
        a, b = self._now(rows, kept)
        base = -np.expm1(-a * np.log1p(own / b))
        either = np.maximum(1 - (1 - base) * np.exp(-echo), 1e-12)
        real = np.where(changed & (echo > 0), base / either, 1.0)
        if np.isfinite(self.traits.regime):
            usual = self._usual(rows)
            lasting = own * (1.0 - kept) * self.traits.regime_days / spans.days
            found = _mixed_posterior((a, b), own, lasting, changed, real)
            self.more_["a"][rows], self.more_["b"][rows] = found[0] - usual[0], found[1] - usual[1]
        self._update_usual(rows, spans, own, real)
        if self.traits.echo:
            self._note_echoes(rows, own, changed, np.stack([before, echo, real]))

    def _update_usual(self, rows: Ints, spans: Spans, own: Floats, real: Floats) -> None:
        page, changed = self.pages_, spans.changed
        kept = np.exp(-spans.days / self.memory_days)
        lasting = own * (1.0 - kept) * self.memory_days / spans.days
        a, b = _mixed_posterior(self._faded(rows, kept), own, lasting, changed, real)
        page["a"][rows], page["b"][rows] = np.maximum(a, 1e-6), np.maximum(b, 1e-6)
        many = at_least_one(page["a"][rows] / page["b"][rows] * own)
        events = np.where(changed, real * many, 0.0)
        days = np.where(changed, real * own + (1.0 - real) * lasting, lasting)
        for name, more in (("changes", events), ("days", days)):
            page[name][rows] = kept * page[name][rows] + more
        self._note(rows, spans, events)

    def _note(self, rows: Ints, spans: Spans, events: Floats) -> None:
        super()._note(rows, spans, events)
        if self._told:
            rate = self.pages_["a"][rows] / self.pages_["b"][rows]
            kin = self.kin.of(self.pages_.ids[rows])
            self.news_.learn(kin, spans, rate, self.week_.table_)

    def _fit(self) -> None:
        super()._fit()
        self._related = False  # merchants may have been met

    def _note_echoes(self, rows: Ints, own: Floats, changed: Bools, known: Floats) -> None:
        """What may echo from here on: a change found late has died away in part."""
        before, echo, real = known
        row, days = self._week_row(rows), self.traits.echo_days
        prior = 10.0 * self.traits.echo
        loud = self.traits.echo * (self.echoes_[0] + prior) / (self.echoes_[1] + prior)
        fresh = loud[row] * -np.expm1(-own / days) * days / own
        still = before * np.exp(-own / days - echo)
        self.more_["echo"][rows] = np.where(changed, fresh, still)
        np.add.at(self.echoes_[0], row, np.where(changed, 1.0 - real, 0.0))
        np.add.at(self.echoes_[1], row, echo)

    # ------------------------------------------------------------------------------------ inside

    def _usual(self, rows: Ints) -> tuple[Floats, Floats]:
        """The prior of a regime: the usual rate, as uncertain as both are together."""
        a, b = self.pages_["a"][rows], self.pages_["b"][rows]
        shape = 1.0 / (1.0 / self.traits.regime + 1.0 / a)
        return shape, shape * b / a

    def _now(self, rows: Ints, kept: Floats) -> tuple[Floats, Floats]:
        """The Gamma of the rate at present, evidence of the regime faded to `kept`."""
        if not np.isfinite(self.traits.regime):
            return self.pages_["a"][rows], self.pages_["b"][rows]
        a, b = self._usual(rows)
        more_a, more_b = self.more_["a"][rows], self.more_["b"][rows]
        return np.maximum(a + kept * more_a, 1e-3), np.maximum(b + kept * more_b, 1e-3 * b)

    def _grow(self) -> None:
        """Have a row for every page, merchant and group."""
        self.week_.meet(self._groups["merchant"])
        new = len(self.week_.pace_) - self.echoes_.shape[1]
        if new > 0:
            self.echoes_ = np.pad(self.echoes_, ((0, 0), (0, new)))
        if self._related and len(self.more_) == len(self.pages_):
            return
        self.more_.rows(self.pages_.ids)
        if not self.news_.off:
            kin, row = self.kin.of(self.pages_.ids), self._week_row(slice(None))
            above = np.zeros(len(self.kin), dtype=np.int64)
            above[kin[kin >= 0]] = row[kin >= 0]
            self.news_.meet(above)
        self._related = True

    def state(self) -> State:
        more = {f"more_{name}": column for name, column in self.more_.state().items()}
        news = {f"news_{name}": column for name, column in self.news_.state().items()}
        return {**super().state(), **more, **news, "echoes": self.echoes_.copy()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.more_.restore(part_of(state, "more_"))
        self.news_.restore(part_of(state, "news_"))
        self.echoes_, self._related = state["echoes"].copy(), False


def _mixed_posterior(
    prior: tuple[Floats, Floats], own: Floats, lasting: Floats, changed: Bools, real: Floats
) -> tuple[Floats, Floats]:
    """Between the posterior after a change and that after none, by how far it is a change.

    Spans tell own days, those that last as evidence, the outcome, and how far it is `real`: a
    change of the page's own.
    """
    a, b = prior
    after_a, after_b = posterior(a, b, np.where(changed, own, lasting), changed)
    mixed_a = np.where(changed, real * after_a + (1 - real) * a, after_a)
    mixed_b = np.where(changed, real * after_b + (1 - real) * (b + lasting), after_b)
    return mixed_a, mixed_b
