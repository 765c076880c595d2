"""How good the copies are now, and when their pages are visited next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.crawl.standing import Standing, Visit
from salticus.errors import SalticusError, UnknownPage
from salticus.store.nouns import PageState
from salticus.types import Floats, Ints, Pages, Purpose, Times, instant, moment
from salticus.views.times import known


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
    """How likely each page's copy, last answered then, is out of date now; 1 if there is none."""
    standing = await crawl.standing()
    return copies_of(standing, ids, answered).outdated(instant(standing.now))


async def outdated_or_unknown(crawl: Crawl, ids: Ints, answered: Times) -> Floats:
    """The same; NaN if the crawl could not go on, so that nothing is known."""
    try:
        return await outdated(crawl, ids, answered)
    except SalticusError:
        return np.full(len(ids), np.nan)


def copies_of(standing: Standing, ids: Ints, answered: Times) -> Pages:
    """These pages of the store, last answered then, with the curves that the crawl planned by last:
    so all who are asked whether a copy is out of date give one answer."""
    start = standing.open.tick.start
    return standing.census.copies(ids, standing.parts.predictor, start, answered)


def times(micros: list[int | None]) -> Times:
    """Times of the store as a column; NaT where there is none."""
    nat = np.iinfo(np.int64).min
    return np.array([nat if t is None else t for t in micros], dtype=np.int64).view("M8[us]")


VANISHED = ("gone", "soft_404")  # statuses of pages that their host says are no more


class Fresh(msgspec.Struct, frozen=True):
    """How likely a copy is still right (0 to 1), and its page's next visit (None = not known)."""

    url: str
    state: str
    fresh: float
    last_visit: datetime | None
    last_answer: datetime | None
    next_visit: NextVisit | None


class Unknown(msgspec.Struct, frozen=True):
    """A page that is not in the store, and what to do."""

    url: str
    error: str


async def fresh(
    crawl: Crawl, urls: Sequence[str], *, foresee: bool = False
) -> list[Fresh | Unknown]:
    """For each URL the chance that its copy is still right, and its next visit.

    Without `foresee` only visits that are planned already are told. To foresee others the ticks of
    the coming month are planned, which takes a while if there are many pages.
    """
    found = await asyncio.gather(*(_known(crawl, url) for url in urls))
    pages = {page.page: page for page in found if isinstance(page, PageState)}
    told = await _told(crawl, pages, foresee=foresee) if pages else {}
    return [told[page.page] if isinstance(page, PageState) else page for page in found]


async def _known(crawl: Crawl, url: str) -> PageState | Unknown:
    try:
        return await crawl.store.page(url)
    except UnknownPage as error:
        return Unknown(url, str(error))


async def _told(crawl: Crawl, pages: dict[int, PageState], *, foresee: bool) -> dict[int, Fresh]:
    ids = np.array(sorted(pages), dtype=np.int64)
    answered = times([pages[page].last_answer for page in ids.tolist()])
    chance = dict(zip(ids.tolist(), await outdated(crawl, ids, answered), strict=True))
    if foresee:
        standing = await crawl.foreseeing()
        standing.study()
        visits = standing.next_visits(ids).visits
    else:
        visits = (await crawl.standing()).planned(ids)
    return {
        number: Fresh(
            url=page.url,
            state=page.state,
            fresh=0.0 if page.status in VANISHED else 1.0 - float(chance[number]),
            last_visit=known(page.last_visit),
            last_answer=known(page.last_answer),
            next_visit=shown(visits.get(number)),
        )
        for number, page in pages.items()
    }


class PlannedVisit(msgspec.Struct, frozen=True):
    """A visit of the coming tick: when it is due, why it was chosen, the probability of that
    choice, and the chance that it finds a change (None = nobody said)."""

    url: str
    due: datetime
    purpose: str
    propensity: float
    chance: float | None


async def plan(crawl: Crawl) -> list[PlannedVisit]:
    """The visits of the coming tick by the time at which they are due, as a crawler that started
    now would plan them. Nothing is fetched or stored."""
    standing = await crawl.foreseeing()
    standing.study()
    visits = standing.plan()
    urls = {target.page: target.url for target in await crawl.store.targets(visits.page)}
    columns = (visits.page.tolist(), visits.due, visits.purpose, visits.propensity, visits.chance)
    return [
        PlannedVisit(
            url=urls[page],
            due=moment(due),
            purpose=Purpose(int(purpose)).label,
            propensity=float(propensity),
            chance=None if np.isnan(chance) else float(chance),
        )
        for page, due, purpose, propensity, chance in zip(*columns, strict=True)
    ]
