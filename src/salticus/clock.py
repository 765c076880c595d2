"""Time is a part. Ticks, budget and ages follow world time; network waits follow wall time."""

from __future__ import annotations

import asyncio
import gc
import mmap
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_TURN_S = 0.01  # wall seconds that pass at most in one turn of a crawler's event loop


class Clock(Protocol):
    """World time, which may run faster than the wall's.

    Laws: `now` and `wall` never go back; `until(t)` returns at or after world time t; `speed` world
    seconds pass in one wall second.
    """

    speed: float

    def now(self) -> datetime:
        """World time, aware UTC."""

    def wall(self) -> float:
        """Real seconds since 1970; what politeness is measured in. Every one of them passes, also
        when the machine's clock is set meanwhile."""

    async def until(self, when: datetime) -> None:
        """Wait until world time `when`."""

    def paused(self) -> AbstractContextManager[None]:
        """While the crawler plans: a clock that can wait for it stands still."""


def _running() -> float:
    """Seconds that the machine has been up; setting its clock does not change them. On Linux those
    that it slept count, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def _read_offset() -> tuple[float, float]:
    """How unsure the second number is, and the seconds from 1970 to the start of the machine."""
    before, now, after = _running(), time.time(), _running()
    return after - before, now - (before + after) / 2


_OFFSET_S = min(_read_offset() for _ in range(5))[1]  # the surest: we may have been interrupted


def wall_time() -> float:
    """Real seconds since 1970 by the machine's clock as it was set when this process began.

    If the clock is set while a crawl runs, a pause that a host asked for must not end sooner, nor
    the crawl stop until the time comes round again.
    """
    return _running() + _OFFSET_S


class SystemClock:
    """The machine's clock, optionally accelerated from a common origin.

    Two processes with the same origin and speed agree on world time, also after a restart; unless
    the machine's clock was set in between. All clocks of one process agree.
    """

    def __init__(
        self,
        *,
        speed: float = 1.0,
        world_origin: datetime | None = None,
        wall_origin: datetime | None = None,
    ) -> None:
        self.speed = speed
        self.world_origin = world_origin
        self.wall_origin = wall_origin
        self._wall_zero = wall_origin.timestamp() if wall_origin else 0.0
        self._world_zero = world_origin.timestamp() if world_origin else self._wall_zero

    def now(self) -> datetime:
        seconds = self._world_zero + (self.wall() - self._wall_zero) * self.speed
        return datetime.fromtimestamp(seconds, UTC)

    def wall(self) -> float:
        return wall_time()

    async def until(self, when: datetime) -> None:
        while (left := (when - self.now()).total_seconds()) > 0:  # noqa: ASYNC110 timers fire early
            await asyncio.sleep(left / self.speed)

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


class WaitingClock:
    """An accelerated clock that waits for the crawler, so that no machine is too slow for a mall.

    Time passes only while someone awaits `until`, not while paused, and at most 10 ms of it in one
    turn of the event loop, however long that took. World time is kept in a file, so that the mall
    and all commands agree on it, also after a restart. Wall time goes with it: it never passes
    faster than the machine's, so that delays kept by it are kept.
    """

    def __init__(
        self, path: Path, *, speed: float, world_origin: datetime, wall_origin: datetime
    ) -> None:
        self.path = path
        self.speed = speed
        self.world_origin = world_origin
        self.wall_origin = wall_origin
        self._waiting = self._pauses = 0
        self._turned: float | None = None  # when the present turn began; None: time stands still
        self._base = 0

    def now(self) -> datetime:
        return self.world_origin + timedelta(microseconds=self._passed())

    def wall(self) -> float:
        return self.wall_origin.timestamp() + self._passed() / 1e6 / self.speed

    async def until(self, when: datetime) -> None:
        self._waiting += 1
        try:
            while (left := (when - self.now()).total_seconds()) > 0:
                if not self._pauses:  # a new turn begins
                    self._base, self._turned = self._passed(), time.monotonic()
                await asyncio.sleep(min(left / self.speed, _TURN_S / 2))
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._stand()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._stand()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1

    def _passed(self) -> int:
        """World microseconds since the origin; here they are counted, elsewhere they are read."""
        if self._turned is not None:
            turn_s = min(time.monotonic() - self._turned, _TURN_S)
            passed = self._base + int(turn_s * self.speed * 1e6)
            self._cell[0] = max(self._cell[0], passed)
        return self._cell[0]

    def _stand(self) -> None:
        self._base, self._turned = self._passed(), None

    @cached_property
    def _cell(self) -> memoryview:
        """The file's only number."""
        with self.path.open("a+b") as file:
            if file.tell() < 8:
                file.truncate(8)
            return memoryview(mmap.mmap(file.fileno(), 8)).cast("q")


class VirtualClock:
    """A clock that jumps: waiting takes no time. The simulator's and the tests' clock.

    >>> clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    >>> asyncio.run(clock.until(datetime(2026, 1, 2, tzinfo=UTC)))
    >>> clock.now().day
    2
    """

    speed = 1.0

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def wall(self) -> float:
        return self._now.timestamp()

    async def until(self, when: datetime) -> None:
        self._now = max(self._now, when)
        await asyncio.sleep(0)

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def advance(self, span: timedelta) -> None:
        self._now += span


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """The work goes on meanwhile, and is cancelled in the end."""
    going = asyncio.ensure_future(work)
    try:
        yield
    finally:
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)


@asynccontextmanager
async def passing(clock: Clock) -> AsyncIterator[None]:
    """World time passes meanwhile, though nobody else may wait for one."""
    async with meanwhile(clock.until(clock.now() + timedelta(days=36_500))):
        yield


async def until_or(clock: Clock, when: datetime, stopped: asyncio.Event) -> None:
    """Wait until world time `when`, or until stopped."""
    if stopped.is_set() or clock.now() >= when:
        return
    waits = [asyncio.ensure_future(wait) for wait in (clock.until(when), stopped.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def collect_rarely() -> None:
    """Look for garbage in rings less often: a visit makes hundreds of objects and no rings."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def run_fast(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
