"""A crawl as its store tells of it, for commands that do not crawl."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.loop import Loop
from salticus.crawl.opening import clock_of
from salticus.crawl.parts import no_plan, parts_of
from salticus.crawl.snapshot import Memory, recover
from salticus.store.base import Store
from salticus.types import Plan, Tick

if TYPE_CHECKING:
    from salticus.crawl.forecast import Foreseen
    from salticus.fetch.gate import Hosts


@dataclass(frozen=True, slots=True)
class Standing:
    """A crawl as its store tells of it, for commands that do not crawl.

    `loop` knows what the crawl knows, in a world that is only foreseen: what visits taught since
    the last plan waits to be studied, as it does in the crawl. `open` are visits that are
    planned and not made yet, `coming` is the next tick to plan. `hosts` tell what they can take.
    """

    config: Config
    loop: Loop
    world: Foreseen
    hosts: Hosts
    open: Plan
    coming: Tick
    now: datetime


async def recalled(config: Config, store: Store, clock: Clock | None = None) -> Standing:
    """The crawl's parts as they are now, or would be if it went on now. Only reads the store, and
    needs no lock: a crawl may be running."""
    from salticus.crawl.forecast import Foreseen
    from salticus.fetch.gate import Hosts

    clock = clock or clock_of(config)
    now, wall = clock.now(), clock.wall()
    parts = parts_of(config, clock, store, once=False)
    if hasattr(parts["predictor"], "tells"):
        parts["predictor"].tells = False  # we only look on
    hosts = Hosts(config, clock)
    hosts.restore(await store.hosts())
    census = Census(store, max_interval=config.max_interval_days, rules=config.pages)

    def room(host: str, tick: Tick) -> float:
        ahead, length = tick.start - now, tick.end - tick.start
        start = wall + ahead.total_seconds() / clock.speed
        return hosts.capacity(host, start, length.total_seconds() / clock.speed)

    world = Foreseen(census, room)
    loop = Loop(world=world, memory=Memory({**parts, "demand": census.demand}, store), **parts)
    left = await recover(loop)
    plan = no_plan(now) if left is None else left
    loop.memory = Memory({})  # nothing is kept of what is foreseen
    loop.panel = await loop.panel.apart()
    await census.refresh()
    await census.heed()
    running = await store.holder() is not None
    start = max(now, plan.tick.end) if running else now
    coming = Tick(loop.ticks.number_, start, start + config.tick)
    return Standing(config, loop, world, hosts, plan, coming, now)


async def visit_price(config: Config, store: Store) -> float | None:
    """The visit price of the last plan; None if the policy has none, or has not planned yet."""
    policy = parts_of(config, clock_of(config), store, once=False)["policy"]
    await Memory({"policy": policy}, store).recall()
    price = float(getattr(policy, "price_", np.nan))
    return None if np.isnan(price) else price
