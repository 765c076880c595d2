"""Models trained beside a crawl, in a process of their own, so that the crawl never waits."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from salticus.clock import Clock, until_or
from salticus.config import Config
from salticus.models.registry import NONE, YOUNG, Registry
from salticus.store.base import PageStore

logger = logging.getLogger(__name__)

LEAST_S = 600.0  # wall seconds from one training to the next, however fast the clock
_KIND = 19  # the lowest priority
_PATIENCE_S = 5.0  # that a process has to end when it is asked to
_SHOWN = 300  # characters of what a process says at its end

Work = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""Something that is done beside a crawl until the event is set."""


async def retraining(config: Config, clock: Clock, store: PageStore) -> Work | None:
    """The training of models beside a crawl, if the settings want it."""
    every = config.models.retrain
    if not every or not config.file:
        return None
    registry = Registry(Path(config.models.path))
    soonest = max(clock.now() + config.tick, grown_up((await store.summary()).first, clock.now()))
    part = Retraining(train_command(Path(config.file)), registry, every, clock)
    return functools.partial(part.run, first=next_training(registry, every, soonest))


def grown_up(first: int | None, now: datetime) -> datetime:
    """When there will be enough to learn from, given the first visit (µs)."""
    began = now if first is None else datetime.fromtimestamp(first / 1e6, UTC)
    return began + YOUNG


def next_training(registry: Registry, every: timedelta, soonest: datetime) -> datetime:
    """When it is time again after the last model that was judged, or as soon as may be."""
    judged = [e.at for e in registry.history() if e.what in ("promoted", "kept")]
    return max(soonest, datetime.fromisoformat(judged[-1]) + every) if judged else soonest


def train_command(settings: Path) -> list[str]:
    """Train on the store that a settings file names."""
    return [sys.executable, "-m", "salticus.crawl.training", str(settings)]


class Retraining:
    """Trains a model every so often (world time) until stopped, one at a time.

    `command` trains, judges and promotes; it says on its output, as JSON, what came of it. That it
    fails is logged and written into the registry's history, and the crawl goes on.
    """

    def __init__(
        self, command: Sequence[str], registry: Registry, every: timedelta, clock: Clock
    ) -> None:
        self.command, self.registry, self.every, self.clock = command, registry, every, clock

    async def run(self, stop: asyncio.Event, first: datetime) -> None:
        """Train at world time `first`, and again and again."""
        due = first
        while True:
            await until_or(self.clock, due, stop)
            if stop.is_set():
                return
            began, due = self.clock.wall(), self.clock.now() + self.every
            await self._train(stop)
            rest = timedelta(seconds=max(0.0, began + LEAST_S - self.clock.wall()))
            due = max(due, self.clock.now() + rest * self.clock.speed)

    async def _train(self, stop: asyncio.Event) -> None:
        with _lifeline() as lifeline:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.command,
                    stdin=lifeline,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                )
            except OSError as error:
                self._failed(str(error))
                return
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, process.pid, _KIND)
            said = asyncio.ensure_future(process.communicate())
            stopped = asyncio.ensure_future(stop.wait())
            try:
                await asyncio.wait([said, stopped], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
                if not said.done():
                    await _end(process, said)
            if not stop.is_set():
                self._ended(process.returncode, *said.result())

    def _ended(self, code: int | None, told: bytes, fault: bytes) -> None:
        if code != 0:
            last = fault.decode(errors="replace").strip()[-_SHOWN:]
            self._failed(last or f"it ended with {code}")
            return
        try:
            for found in msgspec.json.decode(told, type=list[dict[str, Any]]):
                told_of = found["version"], found["task"], found["why"]
                logger.info("model %s of %s was trained: %s", *told_of)
        except (msgspec.MsgspecError, KeyError) as error:
            self._failed(f"it said what is not understood: {error}")

    def _failed(self, why: str) -> None:
        logger.error("a model could not be trained, the crawl goes on: %s", why)
        with contextlib.suppress(OSError):
            self.registry.note(self.clock.now(), "failed", NONE, why)


async def _end(
    process: asyncio.subprocess.Process, said: asyncio.Future[tuple[bytes, bytes]]
) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    await asyncio.wait([said], timeout=_PATIENCE_S)
    if not said.done():
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.wait([said])


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe that nothing is written to: it ends when this process does, however that happens."""
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(read)
        os.close(write)


def end_with_parent() -> None:
    """Let this process, which trains, end when the crawl that started it is gone, even killed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # temporary files are removed then
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_PATIENCE_S)
    os._exit(1)
