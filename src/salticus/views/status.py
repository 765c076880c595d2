"""The state of a crawl: what the store holds and which promises are under strain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from salticus.allocate.limits import deadlines
from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.opening import clock_of, stored
from salticus.crawl.parts import predictor_of
from salticus.crawl.standing import visit_price
from salticus.errors import InputError
from salticus.models.registry import NONE, Registry
from salticus.store.base import Query
from salticus.types import Tick, instant
from salticus.views.freshness import freshness_of, in_words, target_in_words
from salticus.views.times import when


def predictor_told(config: Config) -> str:
    """Who foretells changes, and since when."""
    name = predictor_of(config)
    if name != "serving":
        return name
    try:
        pointer = Registry(Path(config.models.path)).pointer()
    except InputError as error:
        return f"rhythm, or the model that served last: {error}"
    version = pointer.chain()[0]
    said = "rhythm, no model yet" if version == NONE else f"model {version}"
    if pointer.since is not None:
        word = "pinned" if pointer.pinned else "chosen"
        said = f"{said.partition(',')[0]}, {word} {pointer.since}"
    if version != pointer.serving:
        said += f"; model {pointer.serving} is broken: {pointer.broken[str(pointer.serving)]}"
    return said


async def status_of(config: Config) -> dict[str, Any]:
    """Counts, budget, pages beyond their maximum interval, hosts that asked for patience."""
    clock = clock_of(config)
    async with stored(config) as store:
        summary = await store.summary()
        census = Census(store, max_interval=config.max_interval_days, rules=config.pages)
        await census.refresh()
        now = clock.now()
        pages = census.pages(Tick(0, now, now + config.tick), lambda name: np.inf)
        hosts = await store.hosts()
        alerts = await store.alerts()
        price = await visit_price(config, store)
        running = await store.holder() is not None
        sources = len(await store.find(Query(kind="source")))
    fresh = await freshness_of(config)
    limited = pages.take(np.isfinite(pages.max_interval))
    overdue = int(np.count_nonzero(deadlines(limited) < instant(now)))
    return {
        "store": config.store,
        "running": running,
        "pages": summary.pages,
        "never visited": summary.pages - summary.visited,
        "resting": summary.resting,
        "sources": sources,
        "hosts": summary.hosts,
        "visits": summary.visits,
        "answered": summary.answered,
        "changes": summary.changes,
        "last visit": when(summary.last),
        "last status": summary.by_status,
        "predictor": predictor_told(config),
        "budget a day": config.per_day(len(pages), int(pages.found.sum())),
        "visit price": price,
        "freshness of the last day": in_words(fresh),
        **({"target": target_in_words(fresh["target"])} if fresh.get("target") else {}),
        "beyond maximum interval": overdue,
        "open alerts": [f"{alert.host} ({alert.kind})" for alert in alerts],
        "hosts backing off": sorted(h.host for h in hosts if h.next_at > clock.wall()),
        "bytes": summary.bytes,
    }
