"""An open crawl, for those who look at it: store, settings, clock and state, kept current."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from salticus.clock import Clock, SystemClock, WaitingClock
from salticus.config import Config, Rule, load
from salticus.errors import ConfigError, StoreMissing
from salticus.store import open_store
from salticus.store.base import Store
from salticus.types import instant

if TYPE_CHECKING:
    from salticus.crawl.standing import Standing
    from salticus.store.nouns import Stamp


RENDERED = 5  # what a rendered visit costs if its rule does not say


def clock_of(config: Config) -> Clock:
    """The clock that the settings describe."""
    time = config.clock
    if time.path is None:
        return SystemClock(
            speed=time.speed, world_origin=time.world_origin, wall_origin=time.wall_origin
        )
    if time.world_origin is None or time.wall_origin is None:
        raise ConfigError("clock.path needs clock.world_origin and clock.wall_origin")
    return WaitingClock(
        Path(time.path),
        speed=time.speed,
        world_origin=time.world_origin,
        wall_origin=time.wall_origin,
    )


@asynccontextmanager
async def stored(config: Config, *, create: bool = True) -> AsyncIterator[Store]:
    """The store that the settings name, for a command that does not crawl.

    StoreMissing if there is none and `create` is False.
    """
    keep = config.extract.keep_content
    store = await open_store(config.store, keep_content=keep, create=create)
    store.caps = config.caps
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def alone(config: Config) -> AsyncIterator[Store | None]:
    """The store that the settings name, None if there is none, with no crawler on it meanwhile: for
    a command that asks hosts. StoreLocked if one runs; two would not be polite."""
    async with AsyncExitStack() as held:
        store = None
        with suppress(StoreMissing):
            store = await held.enter_async_context(stored(config, create=False))
            await held.enter_async_context(store.lock())
        yield store


async def holder_of(config: Config) -> str | None:
    """The process that crawls on the store that the settings name; None if none does."""
    try:
        async with stored(config, create=False) as store:
            return await store.holder()
    except StoreMissing:
        return None


def cost_of(rule: Rule) -> float:
    """What a visit to a page of this rule costs; rendering asks a host for far more than a page."""
    return float(rule.cost or (RENDERED if rule.render else 1))


@asynccontextmanager
async def open_crawl(
    settings: Config | Path | str, clock: Clock | None = None
) -> AsyncIterator[Crawl]:
    """The crawl that the settings describe, or the file that holds them; its store is made if there
    is none. Others may open it too, and a crawler may run on it meanwhile."""
    config = settings if isinstance(settings, Config) else load(Path(settings))
    async with stored(config) as store:
        yield Crawl(config, store, clock or clock_of(config))


class Crawl:
    """A crawl that is open for looking at it. Whoever keeps it open reads the store's columns and
    the crawler's state once, and later only what has changed.

    Law: it answers as one that was opened just now.
    """

    def __init__(self, config: Config, store: Store, clock: Clock) -> None:
        self.config = config
        self.store = store
        self.clock = clock
        self._stamp: Stamp | None = None
        self._standing: Standing | None = None

    def now(self) -> datetime:
        """World time."""
        return self.clock.now()

    @property
    def micros(self) -> int:
        """World time in µs since 1970, as the store counts."""
        return int(instant(self.now()).astype(np.int64))

    async def running(self) -> bool:
        """Whether a crawler works on the store."""
        return await self.store.holder() is not None

    async def standing(self) -> Standing:
        """What the crawl had learnt when it planned last, all pages, and the visits still open.
        Nothing may be studied or planned with it; for that see `foreseeing`."""
        stamp = await self.store.stamp()
        if self._standing is None or self._stamp is None or stamp.state != self._stamp.state:
            self._standing = await self.foreseeing()
        elif stamp.data != self._stamp.data:
            self._standing = await self._followed(self._standing)
        self._stamp = stamp
        return replace(self._standing, now=self.now())

    async def foreseeing(self) -> Standing:
        """What the crawl knows, read anew, to plan ahead with."""
        from salticus.crawl.standing import recalled  # compiled parts; not everyone needs them

        return await recalled(self.config, self.store, self.clock)

    async def _followed(self, standing: Standing) -> Standing:
        """With the pages that were added and edited since, and without the visits that were made;
        what these taught is studied when the crawl plans next."""
        await standing.census.refresh()
        made = await self.store.outcomes(standing.open.visit)
        return replace(standing, open=standing.open.without(made.visit))
