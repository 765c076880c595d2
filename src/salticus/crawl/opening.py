"""What every command needs: the clock, the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from salticus.clock import Clock, SystemClock, WaitingClock
from salticus.config import Config, Rule
from salticus.errors import ConfigError
from salticus.store.sqlite import SqliteStore

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
async def stored(config: Config) -> AsyncIterator[SqliteStore]:
    """The store that the settings name, for a command that does not crawl."""
    store = await SqliteStore.open(
        config.store, keep_content=config.extract.keep_content, caps=config.caps
    )
    try:
        yield store
    finally:
        await store.close()


def cost_of(rule: Rule) -> float:
    """What a visit to a page of this rule costs; rendering asks a host for far more than a page."""
    return float(rule.cost or (RENDERED if rule.render else 1))
