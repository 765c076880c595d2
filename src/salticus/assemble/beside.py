"""What runs beside a crawl: hooks, the desk, the training of models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from salticus.assemble.parts import predictor_of
from salticus.clock import Clock
from salticus.config import Config
from salticus.loop import Loop
from salticus.predict.registry import Registry
from salticus.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from salticus.worlds.live import Live


@asynccontextmanager
async def hooks(config: Config, store: SqliteStore) -> AsyncIterator[None]:
    """Whatever the settings want done on changes is done meanwhile."""
    if config.on_change is None:
        yield
        return
    from salticus.hooks import Hooks

    stop = asyncio.Event()
    running = asyncio.create_task(
        Hooks(config.on_change, store, Path(config.folder)).run(stop), name="hooks"
    )
    try:
        yield
    finally:
        stop.set()
        await running


@asynccontextmanager
async def desk(config: Config, loop: Loop, world: Live, clock: Clock) -> AsyncIterator[None]:
    """The desk is open meanwhile, if the settings give it an address."""
    if config.desk.listen is None:
        yield
        return
    from salticus.desk.clicks import Clicks
    from salticus.desk.server import opened

    world.lingers = True
    clicks = Clicks(loop, world, clock)
    try:
        async with opened(clicks, config.desk.listen):
            yield
    finally:
        await clicks.flush()


@asynccontextmanager
async def retraining(config: Config, clock: Clock) -> AsyncIterator[None]:
    """Models are trained beside the crawl, if one of them may come to serve in it."""
    every = config.models.retrain
    if not every or not config.file or predictor_of(config) != "serving":
        yield
        return
    from salticus.retraining import Retraining, train_command

    stop, registry = asyncio.Event(), Registry(Path(config.models.path))
    retraining = Retraining(train_command(Path(config.file)), registry, every, clock)
    running = asyncio.create_task(
        retraining.run(stop, next_training(registry, every, clock.now(), config.tick)),
        name="retraining",
    )
    try:
        yield
    finally:
        stop.set()
        await running


def next_training(registry: Registry, every: timedelta, now: datetime, tick: timedelta) -> datetime:
    """A tick from now, or when it is time again after the last model that was judged."""
    judged = [e.at for e in registry.history() if e.what in ("promoted", "kept")]
    soon = now + tick
    return max(soon, datetime.fromisoformat(judged[-1]) + every) if judged else soon
