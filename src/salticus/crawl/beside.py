"""What runs beside a crawl: hooks, the training of models, and what callers bring along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.loop import Loop
from salticus.crawl.parts import predictor_of
from salticus.models.registry import YOUNG, Registry
from salticus.store.base import ChangeStore, PageStore

if TYPE_CHECKING:
    from salticus.crawl.live import Live

Companion = Callable[[Config, Loop, "Live", Clock], AbstractAsyncContextManager[None]]
"""Something that is open while a crawl runs, such as the desk; made by whoever starts the crawl."""


@asynccontextmanager
async def hooks(config: Config, store: ChangeStore) -> AsyncIterator[None]:
    """Whatever the settings want done on changes is done meanwhile."""
    if config.on_change is None:
        yield
        return
    from salticus.crawl.hooks import Hooks

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
async def retraining(config: Config, clock: Clock, store: PageStore) -> AsyncIterator[None]:
    """Models are trained beside the crawl, if one of them may come to serve in it."""
    every = config.models.retrain
    if not every or not config.file or predictor_of(config) != "serving":
        yield
        return
    from salticus.crawl.retraining import Retraining, train_command

    stop, registry = asyncio.Event(), Registry(Path(config.models.path))
    retraining = Retraining(train_command(Path(config.file)), registry, every, clock)
    soonest = max(clock.now() + config.tick, grown_up((await store.summary()).first, clock.now()))
    due = next_training(registry, every, soonest)
    running = asyncio.create_task(retraining.run(stop, due), name="retraining")
    try:
        yield
    finally:
        stop.set()
        await running


def grown_up(first: int | None, now: datetime) -> datetime:
    """When there will be enough to learn from, given the first visit (µs)."""
    began = now if first is None else datetime.fromtimestamp(first / 1e6, UTC)
    return began + YOUNG


def next_training(registry: Registry, every: timedelta, soonest: datetime) -> datetime:
    """When it is time again after the last model that was judged, or as soon as may be."""
    judged = [e.at for e in registry.history() if e.what in ("promoted", "kept")]
    return max(soonest, datetime.fromisoformat(judged[-1]) + every) if judged else soonest
