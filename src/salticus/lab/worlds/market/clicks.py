"""Who looks at offers: impressions, clicks, and the visits that clicks ask for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.lab.worlds.market.rhythm import SHOPPING
from salticus.lab.worlds.market.scene import Scene
from salticus.types import Columns, Floats, Ints

_WEEK = np.array([1.05, 1.0, 0.98, 0.97, 0.95, 1.0, 1.05])  # people shop on Sunday and Monday
_QUARTERS = 4  # of an hour
_PLACED = 200  # clicks of an offer and day that are given a time; more fill few further quarters


@dataclass(frozen=True, slots=True)
class DemandCounts(Columns):
    """Counts by offer and UTC day, where there is any."""

    row: Ints
    day: Ints
    clicks: Ints
    impressions: Ints


@dataclass(frozen=True, slots=True)
class MarketRequests(Columns):
    """Visits asked for; `second` counts from the start of the log."""

    row: Ints
    second: Ints


def demand_of(scene: Scene, rng: np.random.Generator) -> DemandCounts:
    """Poisson counts of a block of offers on the days that they live through."""
    trend = _trend(scene, rng)
    seen = scene.popularity
    clicks = rng.poisson(seen.clicks[:, None] * trend)
    others = rng.poisson((seen.impressions - seen.clicks)[:, None] * trend)
    row, day = np.nonzero(clicks + others)
    clicks = clicks[row, day]
    return DemandCounts(row, day, clicks, clicks + others[row, day])


def _trend(scene: Scene, rng: np.random.Generator) -> Floats:
    """Popularity by offer and day, beside the offer's mean: ups and downs from week to week."""
    spread, days = scene.preset.trend_spread, np.arange(scene.calendar.days)
    weeks = rng.normal(-(spread**2) / 2, spread, (len(scene), scene.calendar.days // 7 + 1))
    trend = np.exp(weeks)[:, days // 7] * _WEEK[(scene.preset.start.weekday() + days) % 7]
    trend[24 * days < scene.catalogue.born[:, None]] = 0.0
    trend[24 * (days + 1) > scene.catalogue.dies[:, None]] = 0.0
    return np.asarray(trend, dtype=np.float64)


def requests_of(scene: Scene, demand: DemandCounts, rng: np.random.Generator) -> MarketRequests:
    """The first click of an offer in each quarter of an hour asks for a visit.

    Han 2019 (§4.1.1) takes crawls less than 15 minutes apart for one.
    """
    often = np.minimum(demand.clicks, _PLACED)
    row, day = np.repeat(demand.row, often), np.repeat(demand.day, often)
    local = np.searchsorted(np.cumsum(SHOPPING)[:-1], rng.random(len(row)), side="right")
    hour = (local - scene.calendar.offset[scene.catalogue.zone[row], day + 1] // 60) % 24
    quarter = _QUARTERS * (24 * day + hour) + rng.integers(0, _QUARTERS, len(row))
    whole = _QUARTERS * scene.calendar.hours
    row, quarter = np.divmod(np.unique(row * whole + quarter), whole)
    length = 3600 // _QUARTERS
    return MarketRequests(row, length * quarter + rng.integers(0, length, len(row)))
