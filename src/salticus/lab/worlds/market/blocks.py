"""Offers live block by block, so that memory does not grow with the market."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from salticus.lab.worlds.market.changes import events_of
from salticus.lab.worlds.market.clicks import DemandCounts, MarketRequests, demand_of, requests_of
from salticus.lab.worlds.market.crawl import MarketVisits, visits_of
from salticus.lab.worlds.market.prices import PricePoints, points_of
from salticus.lab.worlds.market.scene import Scene

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
