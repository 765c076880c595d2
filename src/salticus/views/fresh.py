"""Is the copy of a page still good?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.errors import UnknownPage
from salticus.store.nouns import PageState
from salticus.views.standing import NextVisit, outdated, shown, times
from salticus.views.times import known

VANISHED = ("gone", "soft_404")  # statuses of pages that their host says are no more


class Fresh(msgspec.Struct, frozen=True):
    """How likely a copy is still right, from 0 to 1, and when its page is visited again; None if
    that is not known."""

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
