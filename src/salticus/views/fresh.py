"""Is the copy of a page still good?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.forecast import Visit
from salticus.crawl.opening import stored
from salticus.crawl.standing import Standing, recalled
from salticus.errors import UnknownPage
from salticus.store.base import PageState, PageStore
from salticus.types import instant
from salticus.views.standing import copies_of
from salticus.views.times import iso

VANISHED = ("gone", "soft_404")  # statuses of pages that their host says are no more


async def fresh_report(
    config: Config, urls: Sequence[str], clock: Clock | None = None
) -> list[dict[str, Any]]:
    """For each URL the chance that its copy is still right, and when it is visited; for those that
    are not in the store, an error."""
    async with stored(config) as store:
        found = [await _known(store, url) for url in urls]
        pages = {page.page: page for page in found if isinstance(page, PageState)}
        told = await _told(await recalled(config, store, clock), pages) if pages else {}
    return [
        told[page.page] if isinstance(page, PageState) else {"url": url, "error": str(page)}
        for url, page in zip(urls, found, strict=True)
    ]


async def _known(store: PageStore, url: str) -> PageState | UnknownPage:
    try:
        return await store.page(url)
    except UnknownPage as error:
        return error


async def _told(standing: Standing, pages: dict[int, PageState]) -> dict[int, dict[str, Any]]:
    ids = np.array(sorted(pages), dtype=np.int64)
    copies = copies_of(standing, ids)
    chance = dict(zip(ids.tolist(), copies.outdated(instant(standing.now)).tolist(), strict=True))
    standing.study()
    visits = standing.next_visits(ids).visits
    return {
        number: {
            "url": page.url,
            "state": page.state,
            "fresh": 0.0 if page.status in VANISHED else 1.0 - chance[number],
            "last_visit": iso(page.last_visit),
            "last_answer": iso(page.last_answer),
            "next_visit": shown(visits.get(number)),
        }
        for number, page in pages.items()
    }


def shown(visit: Visit | None) -> dict[str, Any] | None:
    """A visit that is foreseen, for machines."""
    if visit is None:
        return None
    start, end = (instant(when).astype(int) for when in (visit.tick.start, visit.tick.end))
    return {
        "tick": visit.tick.number,
        "start": iso(int(start)),
        "end": iso(int(end)),
        "due": iso(int(visit.due.astype(np.int64))),
        "purpose": visit.purpose.label,
        "planned": visit.planned,
    }
