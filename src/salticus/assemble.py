"""From settings to a crawler: every part is made here, and given to those who need it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from salticus import allocate, plugins, predict, schedule
from salticus.allocate.limits import check_feasible
from salticus.clock import SystemClock
from salticus.config import Config
from salticus.errors import ConfigError
from salticus.loop import Loop
from salticus.memory import Memory
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.store.lock import instance_lock
from salticus.store.sqlite import SqliteStore
from salticus.types import Tick

if TYPE_CHECKING:
    from salticus.worlds.live import Live


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


def _loop(
    config: Config, world: Live, clock: SystemClock, store: SqliteStore, *, once: bool
) -> Loop:
    policy = plugins.load("policy", config.policy, allocate.BUILTIN)()
    predictor = plugins.load("predictor", config.predictor, predict.BUILTIN)()
    spacing = plugins.load("spacing", config.spacing, schedule.BUILTIN)(seed=config.seed)
    ledger = Ledger(config.budget, carry=timedelta(days=1) if once else None)
    planner = Planner(seed=config.seed, at_once=once)
    ticks = Ticks(clock, config.tick)
    parts = {
        "ticks": ticks,
        "predictor": predictor,
        "policy": policy,
        "spacing": spacing,
        "ledger": ledger,
        "planner": planner,
    }
    return Loop(world=world, memory=Memory(parts, store), **parts)


async def _check(config: Config, world: Live, clock: SystemClock) -> None:
    """Refuse settings that cannot hold together."""
    now = clock.now()
    tick = Tick(0, now, now + config.tick)
    pages = await world.pages(tick)
    check_feasible(pages, config.budget.per_day(len(pages)), tick, world.census.hosts)
