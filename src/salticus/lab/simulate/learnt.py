"""Trained models as predictors of change in a simulation: alone, or beside the rhythm."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from salticus.lab.simulate.fitted import FittedReplay
from salticus.lab.simulate.forecasts import Forecasts, KnownPages
from salticus.predict.mixed import Mixed
from salticus.predict.poisson import PoissonSurvival
from salticus.predict.rhythm import RhythmSurvival
from salticus.types import Bools, Floats, Instant, Ints, Outcomes, Pages, instant
from salticus.types.dates import HOUR_US
from salticus.types.state import State

_DAY_H = 24


class ModelRates:
    """The word of a model and nothing else: P(change within a day), asked anew every UTC day.

    As Han et al. (2020) use it: the chance becomes a constant rate, −ln(1 − P) a day. Of a model
    that does not tell of a day, the edge nearest to one counts. New pages are asked about at once.
    How likely pages change soon it is asked in the hour that it matters (`ModelSurvival`).

    Cost: features and scores of all pages, once a day.
    """

    def __init__(self, forecasts: Forecasts, known: KnownPages) -> None:
        self.forecasts, self.known = forecasts, known
        self.rates_: Floats = np.full(len(known.ids), np.nan)
        self.soon_ = SoonChances(forecasts, len(known.ids))
        self._day = -1
        self._edge = int(np.argmin(np.abs(np.log(np.array(forecasts.edges) / _DAY_H))))

    def meet(self, pages: Pages, now: datetime) -> None:
        hour, rows = _hour(instant(now)), self.known.rows(pages.ids)
        asked = rows if hour // _DAY_H > self._day else rows[np.isnan(self.rates_[rows])]
        self._day = max(self._day, hour // _DAY_H)
        if len(asked):
            stays = -np.log1p(-self.forecasts.hazards(asked, hour)).cumsum(axis=1)
            days = self.forecasts.edges[self._edge] / _DAY_H
            self.rates_[asked] = stays[:, self._edge] / days

    def survival(self, pages: Pages, now: datetime) -> ModelSurvival:
        rows = self.known.rows(pages.ids)
        return ModelSurvival(np.nan_to_num(self.rates_[rows]), rows, self.soon_)

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing: what visits tell are features of the model."""


class SoonChances:
    """How likely pages change soon, as a model says in the hour in which it is asked.

    What this very hour brings is no feature yet, so that it is asked once an hour about a page; and
    then about all pages that were asked about before, as those are likely to be clicked again.
    """

    def __init__(self, forecasts: Forecasts, pages: int) -> None:
        self.forecasts = forecasts
        self._before = np.zeros(pages, dtype=np.bool_)
        self._chance: Floats = np.full(pages, np.nan)
        self._of = (-1, 0.0)  # the hour and the horizon of these chances

    def within(self, rows: Ints, hour: int, hours: float) -> Floats:
        """P(change within so many hours) of pages."""
        self._before[rows] = True
        if self._of != (hour, hours):
            self._of, self._chance[:] = (hour, hours), np.nan
        if np.isnan(self._chance[rows]).any():
            asked = np.flatnonzero(self._before & np.isnan(self._chance))
            self._chance[asked] = self._asked(asked, hour, hours)
        return np.asarray(self._chance[rows])

    def _asked(self, rows: Ints, hour: int, hours: float) -> Floats:
        """By the shortest edge of the model that reaches so far, at a constant rate up to it; by
        its longest where none does."""
        edges = np.array(self.forecasts.edges)
        edge = min(int(np.searchsorted(edges, hours - 1e-6)), len(edges) - 1)
        hazards = self.forecasts.hazards(rows, hour)
        stays = -np.log1p(-hazards[:, : edge + 1]).sum(axis=1)
        return np.asarray(-np.expm1(-stays * (hours / edges[edge])))


@dataclass(frozen=True, slots=True)
class ModelSurvival(PoissonSurvival):
    """The rates that a model gave for the day; what comes soon it is asked about anew. `row` are
    the pages as the model knows them."""

    row: Ints
    soon: SoonChances

    def changing(self, at: Instant, days: float) -> Floats:
        return self.soon.within(self.row, _hour(at), days * _DAY_H)

    def take(self, rows: Ints | Bools) -> ModelSurvival:
        return ModelSurvival(self.rate[rows], self.row[rows], self.soon)


class Learnt(Mixed):
    """`Rhythm`, with the word of a model on each page beside its own (see `Mixed`).

    After every answer of a page the model is asked how likely it changes in the stretches ahead;
    that holds until the next answer. Pages that have never answered are judged by what they are.
    With `daily` it is asked of all pages once a day, as where the whole log is seen. Nothing is
    asked before `since`.

    Cost: as `Rhythm`, and the features and scores of the pages that were visited.
    """

    def __init__(
        self,
        forecasts: Forecasts,
        known: KnownPages,
        since: datetime,
        *,
        daily: bool = False,
        **history: Any,
    ) -> None:
        super().__init__(**history)
        self.forecasts, self.known, self.since, self.daily = forecasts, known, since, daily
        self._news = np.zeros(len(known.ids), dtype=np.int64)  # hour of the latest; -1: none
        self._hour = -1  # of the last question

    def meet(self, pages: Pages, now: datetime) -> None:
        super().meet(pages, now)
        if now < self.since:
            return
        hour, rows = _hour(instant(now)), self.known.rows(pages.ids)
        if self.daily and hour // _DAY_H > self._hour // _DAY_H:
            self._news[rows] = np.maximum(self._news[rows], self._hour)
        self._ask(super().survival(pages, now), pages.ids, rows, hour)

    def survival(self, pages: Pages, now: datetime) -> RhythmSurvival:
        return self.blend(super().survival(pages, now), pages.ids)

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        seen = outcomes.take(outcomes.answered)
        rows, hours = self.known.rows(seen.page), seen.at.view(np.int64) // HOUR_US
        np.maximum.at(self._news, rows, hours)

    def _ask(self, curves: RhythmSurvival, ids: Ints, rows: Ints, hour: int) -> None:
        """Ask the model about pages of which there is news, at most once an hour.

        What this very hour brought is not a feature yet, and stays news.
        """
        some = np.flatnonzero(self._news[rows] >= 0)
        if hour <= self._hour or not len(some):
            return
        asked = rows[some]
        self._hour, self._news[asked[self._news[asked] < hour]] = hour, -1
        hazards = self.forecasts.hazards(asked, hour)
        self.set_hazards(curves.take(some), ids[some], hazards, np.array(self.forecasts.edges))

    def state(self) -> State:
        own = {"news": self._news.copy(), "hour": np.array(self._hour)}
        return {**super().state(), **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._news, self._hour = state["news"].copy(), int(state["hour"])


class LearntBesideFitted(Learnt, FittedReplay):
    """A model beside a rhythm whose traits were fitted."""


def _hour(now: Instant) -> int:
    return int(now.astype(np.int64)) // HOUR_US
