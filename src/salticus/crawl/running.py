"""A crawl that runs until it is told to end, and takes up new settings on the way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from salticus.clock import Clock, collect_rarely
from salticus.clock import run_fast as run_fast
from salticus.config import Config, load
from salticus.crawl.assembly import Companion, crawler
from salticus.crawl.loop import Loop
from salticus.crawl.opening import holder_of
from salticus.crawl.parts import Learner
from salticus.errors import ConfigError, InputError, PluginError
from salticus.schedule.ticks import FOREVER

Told = Callable[[str], None]


async def run(
    settings: Config | Path | str, *, once: bool = False, stopped: asyncio.Event | None = None
) -> None:
    """Crawl in the event loop of the caller: for one tick, or until `stopped` is set.

    Visits in flight end first. StoreLocked if another crawler runs on the store.
    """
    config = settings if isinstance(settings, Config) else load(Path(settings))
    async with crawler(config, once=once) as loop:
        waiting = asyncio.create_task(_stop(loop, stopped or asyncio.Event()))
        try:
            await loop.run(once=once)
        finally:
            waiting.cancel()


async def _stop(loop: Loop, stopped: asyncio.Event) -> None:
    await stopped.wait()
    loop.stop()


class Run:
    """A crawl in a process of its own: for so long (wall time), for one tick, or until SIGTERM.

    SIGHUP lets it begin again with the settings read anew, or go on with the old ones if those
    cannot be used. The store carries everything from one to the next, as over a restart.
    """

    def __init__(
        self,
        watcher: Learner,
        companions: Sequence[Companion],
        told: Told,
        *,
        once: bool = False,
        length: timedelta | None = None,
    ) -> None:
        self.watcher, self.companions, self.told = watcher, companions, told
        self.once, self.length = once, length
        self._ended = self._again = False
        self._ends_at: float | None = None
        self._loop: Loop | None = None

    def run(self, read: Callable[[], Config]) -> None:
        """Crawl with the settings that `read` gives."""
        _raise_file_limit()
        collect_rarely()
        logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
        run_fast(self.crawl(read))

    async def crawl(self, read: Callable[[], Config]) -> None:
        """Crawl, and when told to reload begin again with new settings, or the old ones."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled, number)
        config, tried = read(), None
        while True:
            try:
                await self._stretch(config)
            except (ConfigError, PluginError) as error:
                if tried is None:
                    raise
                self._warn(error)
                config, tried = tried, None
                continue
            if self._ended or not self._again:
                return
            self._again = False
            config, tried = self._reread(read, config), config

    async def _stretch(self, config: Config) -> None:
        """Crawl until the time is over, or until told to stop."""
        async with crawler(config, once=self.once, companions=self.companions) as loop:
            self._loop = loop
            if self._ended or self._again:
                loop.stop()
            loop.watchers.append(self.watcher)
            await loop.run(self._until(loop.parts.ticks.clock), once=self.once)

    def _until(self, clock: Clock) -> datetime:
        """World time at which the crawl ends; its length counts from when it was first ready."""
        if self.length is None:
            return FOREVER
        if self._ends_at is None:
            self._ends_at = clock.wall() + self.length.total_seconds()
        left = timedelta(seconds=max(0.0, self._ends_at - clock.wall()))
        return clock.now() + left * clock.speed

    def _signalled(self, number: int) -> None:
        self._again |= number == signal.SIGHUP
        self._ended |= number != signal.SIGHUP
        if self._loop is not None:
            self._loop.stop()

    def _reread(self, read: Callable[[], Config], config: Config) -> Config:
        """The settings as they stand in the file now; the old ones if those cannot be used."""
        try:
            config = read()
        except (ConfigError, PluginError) as error:
            self._warn(error)
        else:
            self.told("the settings were read again")
        return config

    def _warn(self, error: Exception) -> None:
        self.told(f"the crawl goes on with its old settings: {error}")


def _raise_file_limit() -> None:
    """Let thousands of hosts have a connection each; many systems allow 1,024 files at first."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))


def reload(config: Config) -> int:
    """Let the crawl that is running read its settings again; its process. InputError if none is."""
    holder, store = asyncio.run(holder_of(config)), config.store
    if holder is None:
        raise InputError(f"no crawl is running on {store}; `salticus run` reads the settings anew")
    process = _crawler(store, holder)
    os.kill(process, signal.SIGHUP)
    return process


def _crawler(store: str, holder: str) -> int:
    """The process that crawls on the store; other commands that hold it must not get a signal."""
    if not holder.isdecimal():
        raise InputError(f"it is not known which process crawls on {store}; send it SIGHUP")
    words = Path("/proc", holder, "cmdline")
    if words.exists() and b"run" not in words.read_bytes().split(b"\0"):
        raise InputError(f"process {holder} works on {store}, but it is no `salticus run`")
    return int(holder)
