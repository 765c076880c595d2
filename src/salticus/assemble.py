"""From settings to a crawler: every part is made here, and given to those who need it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from salticus import allocate, plugins, predict, schedule
from salticus.allocate.limits import check_feasible
from salticus.clock import Clock, SystemClock
from salticus.config import Config
from salticus.errors import ConfigError
from salticus.loop import Loop
from salticus.memory import Memory
from salticus.observe import digest
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.store.lock import instance_lock
from salticus.store.sqlite import SqliteStore
from salticus.types import Plan, Tick

if TYPE_CHECKING:
    from salticus.worlds.live import Live

_LESSON = 50_000  # stored visits that are learnt at a time


def clock_of(config: Config) -> SystemClock:
    """The clock that the settings describe."""
    time = config.clock
    return SystemClock(
        speed=time.speed, world_origin=time.world_origin, wall_origin=time.wall_origin
    )


@asynccontextmanager
async def stored(config: Config) -> AsyncIterator[SqliteStore]:
    """The store that the settings name, for a command that does not crawl."""
    store = await SqliteStore.open(config.store, keep_content=config.extract.keep_content)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def crawler(config: Config, *, once: bool = False) -> AsyncIterator[Loop]:
    """A loop on the live web, ready to run; everything is closed at the end.

    With `once` the visits are due at once, and a day's budget may have been saved up for them.
    Raises StoreLocked if another crawler runs on the store, ConfigError and Infeasible for
    settings that cannot be kept.
    """
    if not config.fetch.contact:
        raise ConfigError(
            "fetch.contact is empty; give an e-mail or web address that site owners can turn to"
        )
    from salticus.extract.pool import Extraction
    from salticus.fetch.http import HttpEngine  # aiohttp takes a while; other commands need it not
    from salticus.fetch.polite import PoliteFetcher
    from salticus.worlds.live import Live

    clock = clock_of(config)
    with instance_lock(Path(config.store)):
        async with stored(config) as store:
            fetcher = PoliteFetcher(HttpEngine(config.fetch, clock), config, clock)
            extraction = Extraction(config.extract)
            try:
                fetcher.restore(await store.hosts())
                world = Live(
                    store,
                    fetcher,
                    extraction,
                    clock,
                    max_interval=config.max_interval_days,
                    retention=config.retention,
                )
                await _check(config, world, clock)
                yield _loop(config, world, clock, store, once=once)
            finally:
                await extraction.close()
                await fetcher.close()


async def import_log(config: Config, folder: Path, *, values: bool = True) -> dict[str, int]:
    """Warm the store with a log: its pages, its visits, its clicks; how many were new.

    All of it or nothing: InputError says what is wrong with the log, StoreLocked that a crawler
    runs on the store. What the visits teach of change rates is learnt once they are stored.
    """
    from salticus.log.folder import Log
    from salticus.log.past import Past

    past = Past(Log(folder), digest, values=values)
    past.check()
    clock = clock_of(config)
    with instance_lock(Path(config.store)):
        async with stored(config) as store:
            at = int(clock.now().timestamp() * 1e6)
            loaded = await store.load(past.pages(), past.visits, at=at, most=past.most)
            await _teach(config, clock, store, range(loaded.first, loaded.end))
    return {"pages": loaded.pages, "visits": loaded.visits}


async def _teach(config: Config, clock: Clock, store: SqliteStore, visits: range) -> None:
    """Let the predictor learn stored visits, and keep what it has learnt for the next run."""
    parts = _parts(config, clock, once=False)
    memory = Memory(parts, store)
    recalled = await memory.recall()
    for start in visits[::_LESSON]:
        numbers = np.arange(start, min(start + _LESSON, visits.stop))
        parts["predictor"].learn(await store.outcomes(numbers))
    if visits:
        await memory.save(None if recalled else _no_plan(clock.now()))


def _no_plan(now: datetime) -> Plan:
    none = np.empty(0, dtype=np.int64)
    return Plan(
        visit=none,
        page=none,
        due=none.view("M8[us]"),
        purpose=none.astype(np.int8),
        propensity=none.astype(np.float64),
        tick=Tick(0, now, now),
    )


def _loop(
    config: Config, world: Live, clock: SystemClock, store: SqliteStore, *, once: bool
) -> Loop:
    parts = _parts(config, clock, once=once)
    return Loop(world=world, memory=Memory(parts, store), **parts)


def _parts(config: Config, clock: Clock, *, once: bool) -> dict[str, Any]:
    """What plans and learns, by role."""
    return {
        "ticks": Ticks(clock, config.tick),
        "predictor": plugins.load("predictor", config.predictor, predict.BUILTIN)(),
        "policy": plugins.load("policy", config.policy, allocate.BUILTIN)(),
        "spacing": plugins.load("spacing", config.spacing, schedule.BUILTIN)(seed=config.seed),
        "ledger": Ledger(config.budget, carry=timedelta(days=1) if once else None),
        "planner": Planner(seed=config.seed, at_once=once),
    }


async def _check(config: Config, world: Live, clock: SystemClock) -> None:
    """Refuse settings that cannot hold together."""
    now = clock.now()
    tick = Tick(0, now, now + config.tick)
    pages = await world.pages(tick)
    check_feasible(pages, config.budget.per_day(len(pages)), tick, world.census.hosts)
