"""Where a crawl stands: how good the copies are now, and when they are visited next."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.crawl.standing import Standing, Visit
from salticus.errors import SalticusError
from salticus.types import Floats, Ints, Pages, Times, instant, moment


class NextVisit(msgspec.Struct, frozen=True):
    """A visit that is foreseen; `planned` if its tick has been planned already."""

    tick: int
    start: datetime
    end: datetime
    due: datetime
    purpose: str
    planned: bool


def shown(visit: Visit | None) -> NextVisit | None:
    """A visit, if there is one, as it is told."""
    if visit is None:
        return None
    tick, due, purpose = visit.tick, moment(visit.due), visit.purpose.label
    return NextVisit(tick.number, tick.start, tick.end, due, purpose, visit.planned)


async def outdated(crawl: Crawl, ids: Ints, answered: Times) -> Floats:
    """The chance that the copy of each page, last answered then, is out of date now; 1 for pages
    without a copy."""
    standing = await crawl.standing()
    return copies_of(standing, ids, answered).outdated(instant(standing.now))


async def outdated_or_unknown(crawl: Crawl, ids: Ints, answered: Times) -> Floats:
    """The same; NaN if the crawl could not go on, so that nothing is known."""
    try:
        return await outdated(crawl, ids, answered)
    except SalticusError:
        return np.full(len(ids), np.nan)


def copies_of(standing: Standing, ids: Ints, answered: Times) -> Pages:
    """These pages, which must be in the store, last answered then, with the curves of the last
    plan, as the crawl has them: so all who are asked whether a copy is out of date give one
    answer."""
    start = standing.open.tick.start
    return standing.census.copies(ids, standing.parts.predictor, start, answered)


def times(micros: list[int | None]) -> Times:
    """Times of the store as a column; NaT where there is none."""
    nat = np.iinfo(np.int64).min
    return np.array([nat if t is None else t for t in micros], dtype=np.int64).view("M8[us]")
