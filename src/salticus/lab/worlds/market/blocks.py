"""Offers live block by block, so that memory does not grow; and what a crawler saw of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from salticus.lab.worlds.market.changes import events_of
from salticus.lab.worlds.market.clicks import DemandCounts, MarketRequests, demand_of, requests_of
from salticus.lab.worlds.market.prices import GONE, PricePoints, points_of
from salticus.lab.worlds.market.scene import Scene
from salticus.types import CHANGED, UNCHANGED, UNKNOWN, Bools, Codes, Columns, Ints, Purpose, Status

_JITTER = 0.2  # of the interval, to either side
_DELAY = 60  # seconds: InstaCrawl visits follow their request within it
_FAULTS = np.array([Status.TIMEOUT, Status.HTTP, Status.BUSY], dtype=np.int8)
_FAULT_SHARES = (0.5, 0.3, 0.2)

SIZE = 8192  # offers; part of what a seed means, so never to be changed lightly


@dataclass(frozen=True, slots=True)
class Block:
    """What happened to `offers` offers from `first` on; rows count from there."""

    first: int
    offers: int
    points: PricePoints
    demand: DemandCounts
    requests: MarketRequests
    visits: MarketVisits


def blocks_of(scene: Scene, seed: np.random.SeedSequence) -> Iterator[Block]:
    """Live through a scene. Every block and part has its own chance."""
    firsts = range(0, len(scene), SIZE)
    for first, chance in zip(firsts, seed.spawn(len(firsts)), strict=True):
        yield _block(scene.block(slice(first, min(first + SIZE, len(scene)))), first, chance)


def _block(scene: Scene, first: int, seed: np.random.SeedSequence) -> Block:
    events, prices, demand, hours, crawl = map(np.random.default_rng, seed.spawn(5))
    spread = scene.preset.price_spread
    points = points_of(events_of(scene, events), scene.catalogue.price, spread, prices)
    counts = demand_of(scene, demand)
    requests = requests_of(scene, counts, hours)
    return Block(
        first, len(scene), points, counts, requests, visits_of(scene, points, requests, crawl)
    )


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


def visits_of(
    scene: Scene, points: PricePoints, requests: MarketRequests, rng: np.random.Generator
) -> MarketVisits:
    """All visits of the production crawler to the offers of a block."""
    batch, insta = _batch(scene, rng), _insta(scene, requests, rng)
    purpose = np.repeat([Purpose.POLICY, Purpose.INSTA], [len(batch), len(insta)]).astype(np.int8)
    planned = batch.join(insta)
    order = np.lexsort((planned.second, planned.row))
    planned, purpose = planned.take(order), purpose[order]
    failed = rng.random(len(order)) < scene.failure[planned.row]
    fault = _FAULTS[rng.choice(len(_FAULTS), len(order), p=_FAULT_SHARES)]
    code = _truth(points, planned, scene.calendar.hours)
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


def _insta(scene: Scene, requests: MarketRequests, rng: np.random.Generator) -> MarketRequests:
    """Visits that follow their request after some seconds."""
    crawled = requests.take(rng.random(len(requests)) < scene.preset.insta)
    second = crawled.second + rng.integers(1, _DELAY, len(crawled))
    return MarketRequests(crawled.row, np.minimum(second, 3600 * scene.calendar.hours - 1))


def _truth(points: PricePoints, planned: MarketRequests, hours: int) -> Ints:
    """The value that each visit meets."""
    starts = points.row * (hours + 1) + points.hour
    visits = planned.row * (hours + 1) + planned.second // 3600
    return np.asarray(points.code[np.searchsorted(starts, visits, side="right") - 1])


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
