"""Traits fitted to the visits of a crawl: which would have foretold its explore visits best?

The stored visits are replayed with the rhythm of every candidate. What decides are visits to
explore and of the panel alone, weighted as in `contest`, in the later half of the time; each is
foretold by what was known at the start of its tick.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any

import numpy as np

from salticus.crawl.contest import Crowd, Foretold, JudgedTime, before, everyone, foretold, losses
from salticus.models.training.traits import likeliest
from salticus.models.traits import Traits
from salticus.predict.fitted import Fitted
from salticus.predict.kin import Kin, KnownKin
from salticus.predict.retrace import ticks
from salticus.store.base import Store
from salticus.types import Ints, Outcomes, Pages
from salticus.types.coins import coins
from salticus.types.state import places

MOST = 200_000  # visits that are replayed with each candidate
_DAY = timedelta(days=1)
_ASKED = 50_000  # pages at a time

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Material:
    """What traits are fitted to: some pages, their kin, and all their visits in a time."""

    pages: Pages
    kin: Kin
    visits: Outcomes
    when: JudgedTime


async def fit_traits(
    store: Store, when: JudgedTime, *, seed: int = 0, told: Told = lambda step: None
) -> tuple[Traits, dict[str, Any]]:
    """The likeliest traits, and what is to be told of how they were found. Visits until `when.end`
    are looked at, those from `when.start` on decide.

    A trait is believed if it is worth more than chance would make of it: ½ ln n nats on n visits
    for each that differs from the usual (BIC). Cost: some 30 replays of at most 200,000 visits;
    of a larger store some of the pages are taken, whole groups of kin.
    """
    material = await material_of(store, when, seed=seed)
    told("fitting traits")
    best = likeliest(lambda traits: _loss(replayed(material, traits), traits))
    found, usual = replayed(material, best), replayed(material, Traits())
    fitting = {
        "pages": len(material.pages),
        "visits": len(material.visits),
        "judged": len(found.changed),
        "log_loss": found.figures(0)["log_loss"],
        "usual_log_loss": usual.figures(0)["log_loss"],
    }
    return best, {"seed": seed, "fitting": fitting}


def _loss(found: Foretold, traits: Traits) -> float:
    """Log loss a visit, and what the traits cost that differ from the usual."""
    if not len(found.changed):
        return 0.0
    visits = float(found.weight.sum() ** 2 / np.sum(found.weight**2))
    price = 0.5 * math.log(visits) / visits * len(traits.unusual())
    return float(np.average(losses(found, 0), weights=found.weight)) + price


def replayed(material: Material, traits: Traits) -> Foretold:
    """What a rhythm with these traits gives the visits of the later half, each before it came."""
    when, fitted, crowd = material.when, Fitted(traits, material.kin), Crowd(material.pages)
    for now, outcomes in ticks(iter([material.visits]), _DAY, end=when.start):
        fitted.meet(crowd.pages(now), now)
        fitted.learn(outcomes)
        crowd.learn(outcomes)
    later = ticks(iter([material.visits]), when.tick, when.start, when.end)
    return foretold([fitted], crowd, later)


async def material_of(store: Store, when: JudgedTime, *, seed: int) -> Material:
    """The visits of a store until `when.end`, of so many pages that there are 200,000 of them at
    most; pages that are kin are drawn together."""
    pages = await everyone(store, when.end)
    made = np.zeros(len(pages), dtype=np.int64)
    for chunk in before(store.history(), when.end):
        row, known = places(pages.ids, chunk.page)
        np.add.at(made, row[known], 1)
    kin = _kin(store, pages.ids[made > 0])
    group = kin.of(pages.ids)
    coin = np.where(group < 0, coins(seed, pages.ids, -2), coins(seed, group, -1))
    order = np.lexsort((pages.ids, coin))
    drawn = np.sort(order[np.cumsum(made[order]) <= MOST])
    pages = pages.take(drawn[made[drawn] > 0])
    chunks = (c.take(places(pages.ids, c.page)[1]) for c in before(store.history(), when.end))
    visits = reduce(Outcomes.join, (chunk for chunk in chunks if len(chunk)))
    return Material(pages, kin, visits, when)


def _kin(store: Store, ids: Ints) -> Kin:
    known = KnownKin()
    for start in range(0, len(ids), _ASKED):
        some = ids[start : start + _ASKED]
        known.place(some, store.facts(some))
    return known.kin
