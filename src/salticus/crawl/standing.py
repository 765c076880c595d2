"""A crawl as its store tells of it, for commands that do not crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from salticus.allocate.base import Priced
from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.forecast import Outlook
from salticus.crawl.lessons import Lessons
from salticus.crawl.opening import clock_of
from salticus.crawl.parts import Parts, make_parts, make_policy
from salticus.crawl.plan import meet
from salticus.crawl.snapshot import Memory, no_plan, recover
from salticus.predict.base import Quiet
from salticus.store.base import Store
from salticus.types import Floats, Ints, Outcomes, Tick

if TYPE_CHECKING:
    from salticus.fetch.gate import Hosts


@dataclass(frozen=True, slots=True)
class Standing(Outlook):
    """A crawl as its store tells of it, for commands that do not crawl. `hosts` tell what they can
    take. What visits taught since the last plan waits to be studied, as it does in the crawl.
    """

    config: Config
    hosts: Hosts
    lessons: Lessons

    def study(self) -> None:
        """Let the parts learn what the crawl will learn when it plans next, and meet its pages."""
        self.lessons.teach(*self.parts.learners)
        meet(self.parts, self.pages(self.coming))


@dataclass
class _Onlooker:
    """As much of a loop as it takes to learn what was stored after the last snapshot."""

    parts: Parts
    memory: Memory
    census: Census
    lessons: Lessons

    def learn(self, outcomes: Outcomes) -> None:
        for part in (*self.parts.accounts, self.lessons):
            part.learn(outcomes)

    async def costs(self, pages: Ints) -> Floats:
        await self.census.refresh()
        return self.census.costs(pages)


async def recalled(config: Config, store: Store, clock: Clock | None = None) -> Standing:
    """The crawl's parts as they are now, or would be if it went on now. Only reads the store, and
    needs no lock: a crawl may be running."""
    from salticus.fetch.gate import Hosts

    clock = clock or clock_of(config)
    now, wall = clock.now(), clock.wall()
    parts = make_parts(config, clock, store)
    if isinstance(parts.predictor, Quiet):
        parts.predictor.tells = False  # we only look on
    hosts = Hosts(config, clock)
    hosts.restore(await store.hosts())
    census = Census(store, max_interval=config.max_interval_days, rules=config.pages)
    lessons = Lessons()
    memory = Memory({**parts.named(), "demand": census.demand}, store)
    plan = await recover(_Onlooker(parts, memory, census, lessons))
    await census.refresh()
    await census.heed()
    await parts.panel.refresh()
    plan = no_plan(now) if plan is None else plan
    start = now if await store.holder() is None else max(now, plan.tick.end)
    coming = Tick(parts.ticks.number_, start, start + config.tick)

    def room(host: str, tick: Tick) -> float:
        ahead, length = tick.start - now, tick.end - tick.start
        start = wall + ahead.total_seconds() / clock.speed
        return hosts.capacity(host, start, length.total_seconds() / clock.speed)

    return Standing(parts, census, room, plan, coming, now, config, hosts, lessons)


async def visit_price(config: Config, store: Store) -> float | None:
    """The visit price of the last plan; None if the policy has none, or has not planned yet."""
    policy = make_policy(config)
    await Memory({"policy": policy}, store).recall()
    price = policy.price_ if isinstance(policy, Priced) else np.nan
    return None if np.isnan(price) else price
