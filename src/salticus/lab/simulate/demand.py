"""How often pages are thought to be clicked and shown: by counts, by models, by both, or truly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np

from salticus.lab.simulate.forecasts import Forecasts
from salticus.lab.simulate.readers import Readership
from salticus.predict.demand import PooledDemand, rate_of
from salticus.types import DAY, Floats, Ints, Tick, instant, moment
from salticus.types.dates import HOUR_US

Estimate = Callable[[datetime, int], Floats]
"""Clicks (or impressions) a day of the first so many pages, as they are thought of at a time."""

CLICKS, IMPRESSIONS = 0, 1
_MONTH = 30.0  # days that counts are kept


class EstimatedDemand:
    """Clicks and impressions a day of a log's pages, each by an estimate of its own."""

    def __init__(self, clicks: Estimate, impressions: Estimate) -> None:
        self.clicks, self.impressions = clicks, impressions

    def known(self, now: datetime, pages: int) -> tuple[Floats, Floats]:
        return self.clicks(now, pages), self.impressions(now, pages)


def counted(readers: Readership, which: int) -> Estimate:
    """The mean of the trailing 30 days, as the readers tell it."""
    return lambda now, pages: readers.known(now, pages)[which]


def true_demand(rates: Floats) -> Estimate:
    """What the pages will turn out to get a day."""
    return lambda now, pages: rates[:pages]


class ToldDemand:
    """A model's P(click on the next UTC day), asked of all pages at the first tick of every day.

    As Han et al. (2020) use it: the chance is the demand. New pages are asked about at once.
    """

    def __init__(self, forecasts: Forecasts, pages: int) -> None:
        self.forecasts = forecasts
        self.chance_: Floats = np.full(pages, np.nan)
        self.day_ = -1

    def __call__(self, now: datetime, pages: int) -> Floats:
        hour, rows = int(instant(now).astype(np.int64)) // HOUR_US, np.arange(pages)
        asked = rows if hour // 24 > self.day_ else rows[np.isnan(self.chance_[:pages])]
        self.day_ = max(self.day_, hour // 24)
        if len(asked):
            self.chance_[asked] = self.forecasts.hazards(asked, hour)[:, 0]
        return self.chance_[:pages]


class MixedDemand:
    """Counts and a model, pooled with a weight that every new day teaches (`PooledDemand`)."""

    def __init__(self, counts: Estimate, told: ToldDemand, came: Callable[[Tick], Floats]) -> None:
        self.counts, self.told, self.came = counts, told, came
        self.pooled_ = PooledDemand()
        self._said: tuple[int, Floats, Floats] | None = None  # day, by counts, by the model

    def __call__(self, now: datetime, pages: int) -> Floats:
        day, counts = self._day(now), self.counts(now, pages)
        model = rate_of(self.told(now, pages))
        if self._said is not None and day > self._said[0]:
            self._learn(day)
        if self._said is None or day > self._said[0]:
            self._said = (day, counts.copy(), model.copy())
        return self.pooled_.rates(counts, model, _known(counts))

    def _learn(self, day: int) -> None:
        """The day of which was said something is over, unless days were left out."""
        assert self._said is not None
        before, counts, model = self._said
        if day == before + 1:
            start = np.datetime64(before, "D").astype("M8[us]")
            tick = Tick(0, moment(start), moment(start + DAY))
            came = self.came(tick)[: len(counts)]
            self.pooled_.learn((counts, model), came, _known(counts), start + DAY)

    @staticmethod
    def _day(now: datetime) -> int:
        return int(instant(now).astype(np.int64)) // HOUR_US // 24


def _known(counts: Floats) -> Ints:
    """How many clicks a mean of so many a day comes from."""
    return np.rint(counts * _MONTH).astype(np.int64)
