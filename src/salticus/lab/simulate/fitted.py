"""A rhythm whose traits are fitted: memory, regimes, echoes of changes, and news of kin."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from datetime import datetime

import numpy as np

from salticus.errors import InputError
from salticus.lab.simulate.news import News
from salticus.predict.gamma import posterior
from salticus.predict.mixed import gamma_through
from salticus.predict.pooled import at_least_one
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.predict.spans import Spans
from salticus.predict.worth import between, own_ages
from salticus.types import Bools, Floats, Ints, Outcomes, Pages, Times
from salticus.types.dates import DAY_US
from salticus.types.state import State, part_of, places

_USUAL, _TRIES = 0.9, 0.5  # the chance of an answer before any, and how many tries that is worth
_RECENT = 200.0  # tries that a merchant is judged by
_PATIENCE = 0.25  # a page that failed n times is worth (1 + n)^-¼ of what it would be
_WEEK = 7.0
_SLOWEST = 0.05  # own time of a span never falls below this share of the usual, whatever the news


@dataclass(frozen=True, slots=True)
class Traits:
    """How the pages of a world change; those given are `Rhythm`'s own.

    Evidence of a page's usual rate fades over `memory_days`. Round it the rate of the day is a
    Gamma of shape `regime` whose evidence fades over `regime_days`; infinite: it is always the
    usual. A change raises the changes expected soon by `echo` in all, of which 1/e are left after
    `echo_days` of own time. `kin_prior` and `merchant_prior` are the changes that it takes to
    believe the news of a day (see `News`).
    """

    memory_days: float = 50.0
    echo: float = 0.0
    echo_days: float = 0.1
    regime: float = math.inf
    regime_days: float = 6.0
    kin_prior: float = math.inf
    merchant_prior: float = math.inf

    def told(self) -> str:
        """What differs from the usual, in words.

        >>> Traits(memory_days=20.0, echo=0.6).told()
        'memory_days 20, echo 0.6'
        """
        usual = Traits()
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        other = [f"{name} {x:g}" for name, x in own.items() if x != getattr(usual, name)]
        return ", ".join(other) or "nothing that differs from the usual"


@dataclass(frozen=True, slots=True)
class Kin:
    """Pages by id, ascending, and the group of kin that each is in, from 0 on."""

    ids: Ints
    group: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSurvival(RhythmSurvival):
    """A rhythm's curve that knows of news, of echoes in its rate, and of visits that failed.

    `level` is the change rate in days of own time, `news` the own days since the last answer beyond
    the usual, `seen` when that was (µs since 1970), `answers` the chance that a visit is answered.
    """

    level: Floats
    news: Floats
    seen: Ints
    answers: Floats

    def own(self, ages: Floats) -> Floats:
        """Own time since `seen`, days; `ages` count from the last answer, or what the world calls
        one: a page that says it is gone is as old as its last value."""
        late = np.where((self.last >= 0) & (self.seen < self.last), self.last - self.seen, 0)
        waited = np.ascontiguousarray(ages + late / DAY_US)
        usual = own_ages(self.table, self.row, self.last - late, waited)
        return np.maximum(usual + self.news, _SLOWEST * usual)

    def rates(self) -> Floats:
        """Changes a day, at the pace of the day that ends now."""
        now = np.full(len(self.row), self.now)
        pace = np.maximum(between(self.table, self.row, now - DAY_US, now), 1e-3)
        return np.asarray(self.level * pace)

    def since(self, last: Times) -> FittedSurvival:
        late = last.view(np.int64)
        return replace(self, last=late, seen=np.where(late > self.last, late, self.seen))


class Fitted(Rhythm):
    """`Rhythm`, with traits of the world that were fitted to visits before the crawl.

    Beside the usual rate of a page (`Rhythm`'s) stands that of its present regime, drawn to the
    usual one. A change that may be the echo of the one before counts for less than a change. Own
    time runs faster on days on which kin were found changed, slower on those on which they were
    not. Merchants that do not answer are found out, and pages are as old as their last answer.

    Cost: as `Rhythm`, and that of `News`.
    """

    def __init__(self, traits: Traits, kin: Kin) -> None:
        super().__init__(memory_days=traits.memory_days)
        self.traits, self.kin = traits, kin
        self.news_ = News(kin_prior=traits.kin_prior, merchant_prior=traits.merchant_prior)
        self.more_ = Roster(a=0.0, b=0.0, echo=0.0, seen=-1.0, failed=0.0)
        self.tries_ = np.zeros((2, 1))  # by merchant: answered, all
        self.echoes_ = np.zeros((2, 1))  # by merchant: found, expected
        self._told = False  # by visits, each as soon as it was made

    def learn(self, outcomes: Outcomes) -> None:
        self._told = bool((outcomes.visit >= 0).any())
        super().learn(outcomes)
        self._note_answers(outcomes.take(outcomes.made))

    # ------------------------------------------------------------------------------------ curves

    def _curves(self, rows: Ints | slice, pages: Pages, now: datetime) -> FittedSurvival:
        rows = np.arange(len(self.pages_)) if isinstance(rows, slice) else rows
        plain = super()._curves(rows, pages, now)
        self._grow()
        a, b = self._now(rows, np.ones(len(rows)))
        echo, seen = self.more_["echo"][rows], self.more_["seen"][rows].astype(np.int64)
        seen = np.where(seen < 0, np.maximum(plain.last, 0), seen)
        self.news_.settle(self.week_.pace_)
        news = self.news_.more(self._kin(rows), seen, np.full(len(rows), plain.now))
        chance = (self.tries_[0] + _USUAL * _TRIES) / (self.tries_[1] + _TRIES)
        shape, days = self._with_echo(a, b, echo)
        return FittedSurvival(
            a=shape,
            b=days,
            row=plain.row,
            last=plain.last,
            now=plain.now,
            table=plain.table,
            level=a / b + echo * -np.expm1(-_WEEK / self.traits.echo_days) / _WEEK,
            news=news,
            seen=seen,
            answers=chance[plain.row] * (1.0 + self.more_["failed"][rows]) ** -_PATIENCE,
        )

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
        if not self._told:
            return usual
        self._grow()
        self.news_.settle(self.week_.pace_)
        start, end = spans.start.view(np.int64), spans.end.view(np.int64)
        return np.maximum(usual + self.news_.more(self._kin(rows), start, end), _SLOWEST * usual)

    def _update(self, rows: Ints, spans: Spans) -> None:
        """Usual rate and regime after the spans; a change counts as far as it is no echo."""
        self._grow()
        own, changed = self._own_time(rows, spans), spans.changed
        kept = np.exp(-spans.days / self.traits.regime_days)
        before = self.more_["echo"][rows]
        echo = before * -np.expm1(-own / self.traits.echo_days)
        a, b = self._now(rows, kept)
        base = -np.expm1(-a * np.log1p(own / b))
        real = np.where(changed, base / np.maximum(1 - (1 - base) * np.exp(-echo), 1e-12), 1.0)
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
            self.news_.learn(self._kin(rows), spans, rate, self.week_.pace_)

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

    def _note_answers(self, made: Outcomes) -> None:
        """When pages answered last, and how often merchants do; only real visits tell of that."""
        rows = self.pages_.rows(made.page)
        self._grow()
        good = made.answered
        at = made.at.view(np.int64).astype(np.float64)
        np.maximum.at(self.more_["seen"], rows[good], at[good])
        np.add.at(self.more_["failed"], rows[~good], 1.0)
        self.more_["failed"][rows[good]] = 0.0
        real = made.visit >= 0
        row = self._week_row(rows)
        self._grow()
        np.add.at(self.tries_[0], row[good & real], 1.0)
        np.add.at(self.tries_[1], row[real], 1.0)
        self.tries_ /= np.maximum(self.tries_[1] / _RECENT, 1.0)

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

    def _kin(self, rows: Ints) -> Ints:
        place, known = places(self.kin.ids, self.pages_.ids[rows])
        if not known.all():
            raise InputError(f"page {self.pages_.ids[rows][~known][0]}: its kin is not known")
        return np.asarray(self.kin.group[place])

    def _grow(self) -> None:
        """Have a row for every page, merchant and group."""
        if len(self.more_) != len(self.pages_):
            self.more_.rows(self.pages_.ids)
            everyone = np.arange(len(self.pages_))
            above = np.zeros(int(self.kin.group.max(initial=-1)) + 1, dtype=np.int64)
            above[self._kin(everyone)] = self._week_row(everyone)
            self.news_.meet(above)
        new = len(self.week_.pace_) - self.tries_.shape[1]
        if new > 0:
            self.tries_ = np.pad(self.tries_, ((0, 0), (0, new)))
            self.echoes_ = np.pad(self.echoes_, ((0, 0), (0, new)))

    def state(self) -> State:
        more = {f"more_{name}": column for name, column in self.more_.state().items()}
        news = {f"news_{name}": column for name, column in self.news_.state().items()}
        own = {"tries": self.tries_.copy(), "echoes": self.echoes_.copy()}
        return {**super().state(), **more, **news, **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.more_ = Roster(**self.more_.defaults)
        self._grow()
        self.more_.restore(part_of(state, "more_"))
        self.news_.restore(part_of(state, "news_"))
        self.tries_, self.echoes_ = state["tries"].copy(), state["echoes"].copy()


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
