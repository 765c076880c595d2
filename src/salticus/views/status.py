"""The state of a crawl: what the store holds and which promises are under strain."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np

from salticus.allocate.limits import deadlines
from salticus.crawl.census import Census
from salticus.crawl.opening import Crawl
from salticus.crawl.standing import visit_price
from salticus.store.nouns import Query
from salticus.types import Pages, Tick, instant
from salticus.views.freshness import freshness
from salticus.views.models import learnt_weights, predictor_told
from salticus.views.times import known, spaced


class StatusView(
    msgspec.Struct,
    frozen=True,
    rename=spaced(
        freshness="freshness of the last day",
        weights="weight of models",
        overdue="beyond maximum interval",
        backing_off="hosts backing off",
    ),
):
    """Counts, budget, pages beyond their maximum interval, hosts that asked for patience."""

    store: str
    running: bool
    pages: int
    never_visited: int
    resting: int
    sources: int
    hosts: int
    visits: int
    answered: int
    changes: int
    last_visit: datetime | None
    last_status: dict[str, int]
    predictor: str
    weights: dict[str, dict[str, float]]
    budget_a_day: float
    visit_price: float | None
    freshness: str
    overdue: int
    open_alerts: list[str]
    backing_off: list[str]
    bytes: int
    target: str | msgspec.UnsetType = msgspec.UNSET


async def status(crawl: Crawl) -> StatusView:
    """What the store holds, and which promises are under strain."""
    config, store = crawl.config, crawl.store
    summary = await store.summary()
    pages = await _awake(crawl)
    fresh = await freshness(crawl)
    limited = pages.take(np.isfinite(pages.max_interval))
    wall = crawl.clock.wall()
    target = fresh.target
    return StatusView(
        store=config.store,
        running=await crawl.running(),
        pages=summary.pages,
        never_visited=summary.pages - summary.visited,
        resting=summary.resting,
        sources=len(await store.find(Query(kind="source"))),
        hosts=summary.hosts,
        visits=summary.visits,
        answered=summary.answered,
        changes=summary.changes,
        last_visit=known(summary.last),
        last_status=summary.by_status,
        predictor=predictor_told(config),
        weights=await learnt_weights(crawl),
        budget_a_day=config.per_day(len(pages), int(pages.found.sum())),
        visit_price=await visit_price(config, store),
        freshness=fresh.words(),
        overdue=int(np.count_nonzero(deadlines(limited) < instant(crawl.now()))),
        open_alerts=[f"{alert.host} ({alert.kind})" for alert in await store.alerts()],
        backing_off=sorted(h.host for h in await store.hosts() if h.next_at > wall),
        bytes=summary.bytes,
        target=target if isinstance(target, msgspec.UnsetType) else target.words(),
    )


async def _awake(crawl: Crawl) -> Pages:
    config, now = crawl.config, crawl.now()
    census = Census(crawl.store, max_interval=config.max_interval_days, rules=config.pages)
    await census.refresh()
    return census.pages(Tick(0, now, now + config.tick), lambda name: np.inf)
