"""Visits by the user's own order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.assembly import check_contact, fetching, live
from salticus.crawl.opening import clock_of
from salticus.store.base import PageState, Query
from salticus.types import Plan, Purpose, Tick, instant, unplanned

if TYPE_CHECKING:
    from salticus.crawl.live import Live

MANUAL = 1000  # pages that are visited by one order of the user's
_PATIENCE_S = 3600.0  # wall seconds that these visits may take in all


async def visit_now(config: Config, urls: Sequence[str]) -> list[PageState]:
    """Visit known pages at once, and the sitemaps that sitemaps among them name.

    These visits are the user's own: they are polite like all others, but do not count against the
    budget. Raises StoreLocked if a crawler runs on the store.
    """
    check_contact(config)
    clock = clock_of(config)
    async with (
        fetching(config, clock) as fetcher,
        live(config, clock, fetcher) as (world, store),
    ):
        waiting = [await store.page(url) for url in urls]
        seen: dict[int, PageState] = {}
        while waiting and len(seen) < MANUAL:
            await _make(world, clock, [page.page for page in waiting])
            seen |= {page.page: await store.page(page.url) for page in waiting}
            sources = await store.find(Query(kind="source", state="new"))
            waiting = [p for p in sources if p.page not in seen and p.sources][:MANUAL]
        async for _ in world.finish():
            pass
        return list(seen.values())


async def _make(world: Live, clock: Clock, pages: Sequence[int]) -> None:
    """Visit pages now."""
    now = clock.now()
    tick = Tick(0, now, now + timedelta(seconds=_PATIENCE_S * clock.speed))
    await world.pages(tick)
    async for _ in world.visit(by_hand(pages, tick)):
        pass


def by_hand(pages: Sequence[int], tick: Tick) -> Plan:
    """The user's own visits, beyond the budget, due at once.

    They are numbered by the start of the tick.
    """
    return Plan(
        visit=unplanned(instant(tick.start), len(pages)),
        page=np.array(pages, dtype=np.int64),
        due=np.full(len(pages), instant(tick.start)),
        purpose=np.full(len(pages), Purpose.MANUAL, dtype=np.int8),
        propensity=np.ones(len(pages)),
        tick=tick,
    )
