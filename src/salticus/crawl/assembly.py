"""From settings to a crawler: every part is made here, and given to those who need it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from salticus.allocate.limits import check_feasible
from salticus.clock import Clock
from salticus.config import Config, check_hours
from salticus.crawl.loop import Loop
from salticus.crawl.opening import clock_of, stored
from salticus.crawl.parts import make_parts
from salticus.crawl.retiring import Retiring
from salticus.crawl.retraining import Work, retraining
from salticus.crawl.scout import admit
from salticus.crawl.snapshot import Snapshot, set_apart
from salticus.crawl.warming import warm_up
from salticus.errors import ConfigError
from salticus.freshness.note import Gauging
from salticus.store.base import ChangeStore, Store
from salticus.types import Tick

if TYPE_CHECKING:
    from salticus.crawl.live import Live
    from salticus.fetch.base import Fetcher, Renderer
    from salticus.fetch.polite import PoliteFetcher

Companion = Callable[[Config, Loop, "Live", Clock], AbstractAsyncContextManager[None]]
"""Something that is open while a crawl runs, such as the desk; made by whoever starts the crawl."""


@asynccontextmanager
async def crawler(
    config: Config, *, once: bool = False, companions: Sequence[Companion] = ()
) -> AsyncIterator[Loop]:
    """A loop on the live web, ready to run; everything is closed at the end.

    The `companions` are open as long as it is. With `once` the visits are due at once, and a day's
    budget may have been saved up for them.
    Raises StoreLocked if another crawler runs on the store, ConfigError and Infeasible for
    settings that cannot be kept.
    """
    check_contact(config)
    set_apart()
    async with stored(config):
        pass  # what is wrong with it is said now, not after half a minute of compiling
    await warm_up(config)
    clock = clock_of(config)
    async with (
        fetching(config, clock) as fetcher,
        guided(config, clock, fetcher, once=once, companions=companions) as (loop, _),
    ):
        yield loop


@asynccontextmanager
async def guided(
    config: Config,
    clock: Clock,
    fetcher: Fetcher,
    *,
    once: bool = False,
    companions: Sequence[Companion] = (),
) -> AsyncIterator[tuple[Loop, Live]]:
    """A loop and its world whose visits are made by the fetcher given, such as another crawler.

    All that `crawler` says holds.
    """
    async with live(config, clock, fetcher) as (world, store):
        await _check(config, world, clock)
        parts = make_parts(config, clock, store, once=once)
        world.census.serve(parts.followed, parts.clicks, parts.impressions)
        snapshot = Snapshot(
            {**parts.named(), "demand": world.demand, "scout": world.census.scout}, store
        )
        loop = Loop(world, parts, snapshot, gauge=Gauging(store), threaded=True)
        world.asks = partial(admit, loop)
        retiring = Retiring(store, world.census, parts.policy, config.sources.retire)
        world.looks_over = retiring.note
        async with AsyncExitStack() as beside:
            await beside.enter_async_context(_beside(_hooks(config, store)))
            for companion in companions:
                await beside.enter_async_context(companion(config, loop, world, clock))
            await beside.enter_async_context(_beside(await retraining(config, clock, store)))
            yield loop, world


@asynccontextmanager
async def _beside(work: Work | None) -> AsyncIterator[None]:
    """Something is done meanwhile, and told to stop at the end."""
    if work is None:
        yield
        return
    stop = asyncio.Event()
    running = asyncio.create_task(work(stop))
    try:
        yield
    finally:
        stop.set()
        await running


def _hooks(config: Config, store: ChangeStore) -> Work | None:
    """Whatever the settings want done on changes."""
    if config.on_change is None:
        return None
    from salticus.crawl.hooks import Hooks

    return Hooks(config.on_change, store, Path(config.folder)).run


@asynccontextmanager
async def live(config: Config, clock: Clock, fetcher: Fetcher) -> AsyncIterator[tuple[Live, Store]]:
    """The live web as a world on the store that the settings name, which is locked meanwhile."""
    from salticus.crawl.live import Live  # aiohttp takes a while; other commands need it not
    from salticus.extract.pool import Extraction
    from salticus.extract.rules import check_rules

    check_rules(config.pages)
    async with stored(config) as store, store.lock():
        extraction = Extraction(config.extract, rules=config.pages, pause=clock.paused)
        try:
            fetcher.restore(await store.hosts())
            world = Live(store, fetcher, extraction, clock, config)
            world.watch.restore([(a.host, a.kind) for a in await store.alerts()])
            yield world, store
        finally:
            await extraction.close()


@asynccontextmanager
async def fetching(config: Config, clock: Clock) -> AsyncIterator[PoliteFetcher]:
    """A polite fetcher; with a browser behind it if a rule asks for one."""
    from salticus.fetch.http import HttpEngine
    from salticus.fetch.identity import Identities
    from salticus.fetch.polite import PoliteFetcher

    engine = HttpEngine(config.fetch, clock, identities=Identities(config))
    fetcher = PoliteFetcher(engine, config, clock, _renderer(config))
    try:
        yield fetcher
    finally:
        await fetcher.close()


def check_contact(config: Config) -> None:
    """Site owners must be able to turn to someone."""
    if not config.fetch.contact:
        raise ConfigError(
            "fetch.contact is empty; give an e-mail or web address that site owners can turn to"
        )


def _renderer(config: Config) -> Renderer | None:
    if not any(rule.render for rule in config.pages):
        return None
    from salticus.fetch.render import BrowserRenderer  # playwright is an extra

    return BrowserRenderer(config.fetch)


async def _check(config: Config, world: Live, clock: Clock) -> None:
    """Refuse settings that cannot hold together.

    What hosts can take is counted over a day: now they may be asleep, or asking for patience.
    """
    check_hours(config)  # again: the tick may come from the command line
    now = clock.now()
    pages = await world.pages(Tick(0, now, now + timedelta(days=1)))
    tick = Tick(0, now, now + config.tick)
    pages = replace(pages, tick=tick, capacity=pages.capacity * tick.days)
    budget = config.per_day(len(pages), int(pages.found.sum()))
    check_feasible(pages, budget, tick, world.census.hosts)
