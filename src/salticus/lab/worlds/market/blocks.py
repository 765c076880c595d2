"""Offers live block by block, so that memory does not grow; who looked at them, and what a crawler
saw of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from salticus.lab.worlds.market.changes import GONE, PricePoints, events_of, points_of
from salticus.lab.worlds.market.scene import Scene
from salticus.types import CHANGED, UNCHANGED, UNKNOWN, Bools, Codes, Columns, Ints, Purpose, Status

SIZE = 8192  # offers; part of what a seed means, so never to be changed lightly

_WEEK = np.array([1.05, 1.0, 0.98, 0.97, 0.95, 1.0, 1.05])  # people shop on Sunday and Monday
_SHOPPING = np.array([2.0, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 8, 9, 9, 7, 4])
_SHOPPING /= _SHOPPING.sum()  # share of each local hour
_QUARTERS = 4  # of an hour
_PLACED = 200  # clicks of an offer and day that are given a time; more fill few further quarters

_JITTER = 0.2  # of the interval, to either side
_DELAY = 60  # seconds: InstaCrawl visits follow their request within it
_FAULTS = np.array([Status.TIMEOUT, Status.HTTP, Status.BUSY], dtype=np.int8)
_FAULT_SHARES = (0.5, 0.3, 0.2)


@dataclass(frozen=True, slots=True)
class Block:
    """What happened to the offers of a cut `scene`, the first of which is offer `first`."""

    first: int
    scene: Scene
    points: PricePoints
    demand: DemandCounts
    requests: MarketRequests
    visits: MarketVisits


def blocks_of(scene: Scene, seed: np.random.SeedSequence) -> Iterator[Block]:
    """Live through a scene. Every block and part has its own chance."""
    firsts = range(0, len(scene), SIZE)
    for first, chance in zip(firsts, seed.spawn(len(firsts)), strict=True):
        cut = scene.block(first, min(first + SIZE, len(scene)))
        events, prices, demand, hours, crawl = map(np.random.default_rng, chance.spawn(5))
        spread = scene.preset.price_spread
        points = points_of(events_of(cut, events), cut.catalogue.price, spread, prices)
        counts = _demand(cut, demand)
        requests = _requests(cut, counts, hours)
        yield Block(first, cut, points, counts, requests, _visits(cut, points, requests, crawl))


# -------------------------------------------------------------------------------------- who looked


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


def _demand(scene: Scene, rng: np.random.Generator) -> DemandCounts:
    """Poisson counts of a block of offers on the days that they live through; popularity goes up
    and down from week to week."""
    spread, days = scene.preset.trend_spread, np.arange(scene.calendar.days)
    weeks = rng.normal(-(spread**2) / 2, spread, (len(scene), scene.calendar.days // 7 + 1))
    trend = np.exp(weeks)[:, days // 7] * _WEEK[(scene.preset.start.weekday() + days) % 7]
    trend[24 * days < scene.catalogue.born[:, None]] = 0.0
    trend[24 * (days + 1) > scene.catalogue.dies[:, None]] = 0.0
    clicks = rng.poisson(scene.clicks[:, None] * trend)
    others = rng.poisson((scene.impressions - scene.clicks)[:, None] * trend)
    row, day = np.nonzero(clicks + others)
    clicks = clicks[row, day]
    return DemandCounts(row, day, clicks, clicks + others[row, day])


def _requests(scene: Scene, demand: DemandCounts, rng: np.random.Generator) -> MarketRequests:
    """The first click of an offer in each quarter of an hour asks for a visit.

    Han 2019 (§4.1.1) takes crawls less than 15 minutes apart for one.
    """
    often = np.minimum(demand.clicks, _PLACED)
    row, day = np.repeat(demand.row, often), np.repeat(demand.day, often)
    local = np.searchsorted(np.cumsum(_SHOPPING)[:-1], rng.random(len(row)), side="right")
    hour = (local - scene.calendar.offset[scene.catalogue.zone[row], day + 1] // 60) % 24
    quarter = _QUARTERS * (24 * day + hour) + rng.integers(0, _QUARTERS, len(row))
    whole = _QUARTERS * scene.calendar.hours
    row, quarter = np.divmod(np.unique(row * whole + quarter), whole)
    length = 3600 // _QUARTERS
    return MarketRequests(row, length * quarter + rng.integers(0, length, len(row)))


# ----------------------------------------------------------------- what the production crawler saw


@dataclass(frozen=True, slots=True)
class MarketVisits(Columns):
    """Visits of a block in order of offer and time.

    `code` is the value that an answered visit saw and GONE for the others; `changed` compares it
    with the answer before, CHANGED, UNCHANGED or UNKNOWN.
    """

    row: Ints
    second: Ints
    purpose: Codes
    status: Codes
    code: Ints
    changed: Codes


def _visits(
    scene: Scene, points: PricePoints, requests: MarketRequests, rng: np.random.Generator
) -> MarketVisits:
    """All visits of the production crawler to the offers of a block."""
    batch, asked = _batch(scene, rng), requests.take(rng.random(len(requests)) < scene.preset.insta)
    second = asked.second + rng.integers(1, _DELAY, len(asked))
    insta = MarketRequests(asked.row, np.minimum(second, 3600 * scene.calendar.hours - 1))
    purpose = np.repeat([Purpose.POLICY, Purpose.INSTA], [len(batch), len(insta)]).astype(np.int8)
    planned = batch.join(insta)
    order = np.lexsort((planned.second, planned.row))
    planned, purpose = planned.take(order), purpose[order]
    failed = rng.random(len(order)) < scene.failure[planned.row]
    fault = _FAULTS[rng.choice(len(_FAULTS), len(order), p=_FAULT_SHARES)]
    whole = scene.calendar.hours + 1
    starts, met = points.row * whole + points.hour, planned.row * whole + planned.second // 3600
    code = points.code[np.searchsorted(starts, met, side="right") - 1]
    told = np.where(code == GONE, Status.GONE, Status.OK)
    return _seen(planned, purpose, np.where(failed, fault, told).astype(np.int8), code)


def _batch(scene: Scene, rng: np.random.Generator) -> MarketRequests:
    """Periodic visits, with jitter, of those offers that the batch scheduler selected."""
    preset, hours = scene.preset, scene.calendar.hours
    row = np.flatnonzero(rng.random(len(scene)) < preset.batch_share)
    every = preset.batch_hours * np.exp(rng.normal(0.0, preset.batch_spread, len(row)))
    phase = rng.random(len(row)) * every
    many = np.ceil((hours - phase) / every).clip(0).astype(np.int64)
    number = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    steps = number + rng.uniform(-_JITTER, _JITTER, len(number))
    at = np.repeat(phase, many) + np.repeat(every, many) * steps
    row = np.repeat(row, many)
    inside = (at >= scene.catalogue.born[row]) & (at < hours)
    return MarketRequests(row[inside], (3600 * at[inside]).astype(np.int64))


def _seen(planned: MarketRequests, purpose: Codes, status: Codes, code: Ints) -> MarketVisits:
    """What was learnt. The crawler forgets a page that it found gone."""
    kept = _before(planned.row, status == Status.GONE) < 0
    row, status, code = planned.row[kept], status[kept], code[kept]
    answered = status == Status.OK
    before = _before(row, answered)
    told = np.where(code == code[before], UNCHANGED, CHANGED)
    return MarketVisits(
        row=row,
        second=planned.second[kept],
        purpose=purpose[kept],
        status=status,
        code=np.where(answered, code, GONE),
        changed=np.where(answered & (before >= 0), told, UNKNOWN).astype(np.int8),
    )


def _before(row: Ints, event: Bools) -> Ints:
    """Place of the latest event before each visit of the same offer; -1 if there is none.

    >>> _before(np.array([0, 0, 0, 1, 1]), np.array([False, True, False, False, True]))
    array([-1, -1,  1, -1, -1])
    """
    latest = np.full(len(row), -1)
    latest[1:] = np.maximum.accumulate(np.where(event, np.arange(len(row)), -1))[:-1]
    return np.where((latest >= 0) & (row[latest] == row), latest, -1)
