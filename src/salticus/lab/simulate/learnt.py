"""Trained models as predictors of change in a simulation: alone, or beside the rhythm."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from salticus.lab.simulate.fitted import FittedReplay
from salticus.lab.simulate.forecasts import Forecasts, KnownPages
from salticus.predict.mixed import Mixed
from salticus.predict.poisson import PoissonSurvival
from salticus.predict.rhythm import RhythmSurvival
from salticus.types import Floats, Ints, Outcomes, Pages, instant
from salticus.types.dates import HOUR_US
from salticus.types.state import State

_DAY_H = 24


class ModelRates:
    """The word of a model and nothing else: P(change within a day), asked anew every UTC day.

    As Han et al. (2020) use it: the chance becomes a constant rate, −ln(1 − P) a day. Of a model
    that does not tell of a day, the edge nearest to one counts. New pages are asked about at once.

    Cost: features and scores of all pages, once a day.
    """

    def __init__(self, forecasts: Forecasts, known: KnownPages) -> None:
        self.forecasts, self.known = forecasts, known
        self.rates_: Floats = np.full(len(known.ids), np.nan)
        self._day = -1
        self._edge = int(np.argmin(np.abs(np.log(np.array(forecasts.edges) / _DAY_H))))

    def meet(self, pages: Pages, now: datetime) -> None:
        hour, rows = _hour(now), self.known.rows(pages.ids)
        asked = rows if hour // _DAY_H > self._day else rows[np.isnan(self.rates_[rows])]
        self._day = max(self._day, hour // _DAY_H)
        if len(asked):
            stays = -np.log1p(-self.forecasts.hazards(asked, hour)).cumsum(axis=1)
            days = self.forecasts.edges[self._edge] / _DAY_H
            self.rates_[asked] = stays[:, self._edge] / days

    def survival(self, pages: Pages, now: datetime) -> PoissonSurvival:
        return PoissonSurvival(np.nan_to_num(self.rates_[self.known.rows(pages.ids)]))

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing: what visits tell are features of the model."""


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
        hour, rows = _hour(now), self.known.rows(pages.ids)
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
        self.take_up(curves.take(some), ids[some], hazards, np.array(self.forecasts.edges))

    def state(self) -> State:
        own = {"news": self._news.copy(), "hour": np.array(self._hour)}
        return {**super().state(), **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._news, self._hour = state["news"].copy(), int(state["hour"])


class LearntBesideFitted(Learnt, FittedReplay):
    """A model beside a rhythm whose traits were fitted."""


def _hour(now: datetime) -> int:
    return int(instant(now).astype(np.int64)) // HOUR_US
