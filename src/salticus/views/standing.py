"""Where a crawl stands: how good the copies are now, and when they are visited next."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.standing import Standing, recalled
from salticus.predict.base import Predictor
from salticus.store.base import Store
from salticus.types import (
    Bools,
    Floats,
    Ints,
    Outcomes,
    Pages,
    Plan,
    Purpose,
    Tick,
    instant,
)
from salticus.types.state import places

HORIZON = timedelta(days=30)  # how far ahead visits are foreseen


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit that is foreseen; `planned` if its tick has been planned already."""

    tick: Tick
    due: np.datetime64
    purpose: Purpose
    planned: bool


async def chances(config: Config, store: Store, ids: Ints, clock: Clock | None = None) -> Floats:
    """The chance that the copy of each page is out of date now; 1 for pages without a copy."""
    standing = await recalled(config, store, clock)
    return copies_of(standing, ids).outdated(instant(standing.now))


def copies_of(standing: Standing, ids: Ints) -> Pages:
    """These pages, which must be in the store, with the curves of the last plan, as the crawl has
    them: so all who are asked whether a copy is out of date give one answer."""
    start = standing.open.tick.start
    return standing.world.census.copies(ids, standing.loop.predictor, start)


def aside(standing: Standing) -> Predictor:
    """A copy of the predictor: it meets pages when it is asked about them, and what is foreseen
    must not depend on what we ask."""
    return deepcopy(standing.loop.predictor)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The next visits of some pages, by page, and all visits of the coming tick."""

    visits: dict[int, Visit]
    coming: Plan | None


async def next_visits(standing: Standing, ids: Ints) -> Forecast:
    """The next visit of each of these pages, if it comes within 30 days.

    The loop plans tick after tick, as in a crawl, with the visit price frozen where the policy has
    one, and without news: visits are made when they are due, and nothing is learnt from them.
    """
    loop, open_ = standing.loop, standing.open
    found: dict[int, Visit] = {}
    if standing.now < open_.tick.end:
        _note(found, open_, ids, planned=True)
        await loop.make(open_)
    else:
        loop.learn(Outcomes.dropped(open_, instant(standing.now)))
    loop.policy = getattr(loop.policy, "frozen", lambda: loop.policy)()
    tick, last = standing.coming, standing.coming.start + HORIZON
    wanted = ids[_ever(standing, ids, replace(tick, start=last, end=last + HORIZON))]
    coming: Plan | None = None
    while tick.start < last and not found.keys() >= set(wanted.tolist()):
        plan = await loop.plan(tick)
        coming = plan if coming is None else coming
        _note(found, plan, ids, planned=False)
        await loop.make(plan)
        tick = Tick(tick.number + 1, tick.end, tick.end + (tick.end - tick.start))
    return Forecast(found, coming)


def _ever(standing: Standing, ids: Ints, later: Tick) -> Bools:
    """Which pages will not rest for good."""
    census = standing.world.census
    rows, _ = places(standing.world.everyone(later).ids, ids)
    return census.up(later)[rows]


def _note(found: dict[int, Visit], plan: Plan, ids: Ints, *, planned: bool) -> None:
    for row in np.flatnonzero(np.isin(plan.page, ids)):
        purpose = Purpose(int(plan.purpose[row]))
        visit = Visit(plan.tick, plan.due[row], purpose, planned)
        found.setdefault(int(plan.page[row]), visit)
