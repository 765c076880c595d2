"""What every command needs: the clock, the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from salticus.clock import Clock, SystemClock, WaitingClock
from salticus.config import Config, Rule
from salticus.errors import ConfigError, StoreMissing
from salticus.store import open_store
from salticus.store.base import Store

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
