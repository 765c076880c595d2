"""Machine code before the clock: whatever the parts of a crawl compile, they compile here."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import numpy as np

from salticus.allocate.panel import Panel
from salticus.clock import VirtualClock
from salticus.config import Budget, Config
from salticus.crawl.census import Census
from salticus.crawl.loop import Loop
from salticus.crawl.parts import make_parts
from salticus.crawl.snapshot import Snapshot
from salticus.errors import SalticusError
from salticus.store import open_store
from salticus.store.base import Store
from salticus.types import (
    Count,
    Entry,
    NewPage,
    Observation,
    Outcomes,
    Pages,
    Plan,
    Record,
    Tick,
    instant,
)

logger = logging.getLogger(__name__)

_PAGES = 24
_LOOKS = 4  # at a source, which named one of the pages each time
_TICKS = 2  # in each of two runs; the second takes up what the first has learnt
_ROOM = (math.inf, 2.0, 1.0)  # visits that the hosts can take in a tick
_HOUR = 3_600_000_000  # µs
_START = datetime(2026, 1, 1, tzinfo=UTC)


async def warm_up(config: Config) -> None:
    """Compile all that a crawl with these settings will run, or load it if it was compiled before.

    Without it the first ticks of a crawl wait for the compiler, half a minute on a fresh machine,
    while its clock runs. The parts are made as those of the crawl are, and plan, visit and learn a
    few ticks of a crawl that is invented; nothing of it is kept.
    """
    try:
        await asyncio.to_thread(asyncio.run, _invented_crawl(config))
    except SalticusError:
        raise  # the settings are wrong, and would be when the crawl is made
    except Exception:  # a part of the user's own may not like pages that are invented
        logger.warning("what the crawl needs could not be compiled beforehand", exc_info=True)


async def _invented_crawl(config: Config) -> None:
    each = Budget(0.5 * 86_400 / config.tick.total_seconds(), per_page=True)
    config = msgspec.structs.replace(config, budget=each, pages=(), max_interval=None)
    store, clock = await open_store("memory:"), VirtualClock(_START)
    pages = [NewPage(f"http://shop{n % 3}.example/{n}") for n in range(_PAGES)]
    await _announce(store, [page.url for page in pages[:_LOOKS]])
    await store.add(pages, at=int(_START.timestamp() * 1e6))
    for _ in range(2):
        await _loop(config, clock, store).run(clock.now() + _TICKS * config.tick)


async def _announce(store: Store, urls: Sequence[str]) -> None:
    """A source is looked at every hour before the crawl."""
    first = int(_START.timestamp() * 1e6) - len(urls) * _HOUR
    await store.add([NewPage("http://shop0.example/feed", kind="source")], at=first)
    (source,) = (await store.table()).ids.tolist()
    for number, url in enumerate(urls):
        seen = Observation(
            visit=number + 1,
            page=source,
            at=first + number * _HOUR,
            purpose="policy",
            propensity=1.0,
            status="ok",
        )
        await store.record([Record(seen, entries=(Entry(url),), looked=True)])


def _loop(config: Config, clock: VirtualClock, store: Store) -> Loop:
    parts = replace(make_parts(config, clock, store), panel=Panel())
    parts.make_read_only()  # the registries of models must not hear of this
    world = _Invented(store)
    loop = Loop(world, parts, Snapshot(parts.named(), store))
    world.loop = loop
    return loop


class _Invented:
    """A world in which every page answers, and every other answer is a change."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.census = Census(store)
        self.loop: Loop

    async def pages(self, tick: Tick) -> Pages:
        await self.census.refresh()
        await self.census.heed()
        room = dict(zip(self.census.hosts, _ROOM, strict=True))
        return self.census.pages(tick, lambda host: room[host])

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        targets = {target.page: target for target in await self.store.targets(plan.page)}
        seen = [
            Observation(
                visit=int(plan.visit[row]),
                page=page,
                at=int(plan.due[row].astype(np.int64)),
                purpose="policy",
                propensity=float(plan.propensity[row]),
                status="ok",
                changed=None if targets[page].seen is None else bool((page + row) % 2),
                since=targets[page].seen,
                digest=str(row),
            )
            for row, page in enumerate(plan.page.tolist())
        ]
        await self.store.record([Record(observation) for observation in seen])
        await self.store.count([Count(targets[each.page].url, each.at, clicks=1) for each in seen])
        outcomes = Outcomes.of(seen)
        self.census.learn(outcomes)
        yield outcomes
        insta = self.loop.parts.insta
        insta.ask(plan.page, instant(plan.tick.end))  # as if all of them were clicked

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        nothing: list[Outcomes] = []
        for outcomes in nothing:
            yield outcomes
