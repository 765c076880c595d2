"""Time is a part. Ticks, budget and ages follow world time; network waits follow wall time."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


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

    def advance(self, span: timedelta) -> None:
        """Let `span` pass."""
        self._now += span


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
