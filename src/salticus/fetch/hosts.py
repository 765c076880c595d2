"""The gate of a host: whose turn it is, and how long the host is left alone.

With a delay, requests to a host follow one another: the next one starts no earlier than the delay
after the previous one was answered. An answer cannot come before its request has arrived, so they
arrive at the host at least the delay apart, too, whatever the network does. Without a delay, as
many may be under way at once as its concurrency says. A host with hours gets no request outside
of them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import blake2b

from salticus.clock import Clock
from salticus.config import Hours
from salticus.fetch.base import Answer
from salticus.fetch.robots import Robots
from salticus.types import HostState, Status

BUSY_CODES = frozenset({429, 503})
_DAY_S = 86_400.0
_BUSY_CAP_S = 3600.0
_FAILED_CAP_S = 300.0
_FAILURES = frozenset({Status.NETWORK, Status.TIMEOUT, Status.CERTIFICATE})
_STEP = timedelta(minutes=1)  # where clocks are put back, an opening may seem to lie in the past


class Slots:
    """So many at once; who comes first is served first. Times are wall seconds.

    Laws: never more than `limit` slots are out; a waiter who is cancelled or gives up keeps none.
    """

    __slots__ = ("active", "limit", "queue")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.active = 0
        self.queue: dict[asyncio.Future[bool], float] = {}  # smaller than a deque, for idle hosts

    def take(self) -> bool:
        """Take a slot now, if one is free; then nobody waits for it."""
        if self.active >= self.limit:
            return False
        self.active += 1
        return True

    async def wait(self, before: float, now: float) -> bool:
        """Take a slot as soon as there is one; False if there is none before `before`."""
        if self.take():
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self.queue[future] = before
        timer = loop.call_later(before - now, _refuse, future) if before < math.inf else None
        try:
            return await future
        except asyncio.CancelledError:
            if not future.cancelled() and future.result():
                self.give()  # it was handed over in the moment of cancellation
            raise
        finally:
            self.queue.pop(future, None)
            if timer is not None:
                timer.cancel()

    def give(self) -> None:
        self.active -= 1
        self._serve()

    def resize(self, limit: int) -> None:
        """Let more or fewer in from now on."""
        self.limit = limit
        self._serve()

    def expire(self, earliest: float) -> None:
        """Send away those for whom `earliest` would be too late."""
        for future, before in self.queue.items():
            if before <= earliest:
                _refuse(future)

    def _serve(self) -> None:
        while self.queue and self.active < self.limit:
            future = next(iter(self.queue))
            del self.queue[future]
            if not future.done():
                self.active += 1
                future.set_result(True)


def _refuse(future: asyncio.Future[bool]) -> None:
    """Let the one who waits go on without what it waits for."""
    if not future.done():
        future.set_result(False)


class Window:
    """A host's hours, which are world time, as seen from the wall clock by which turns are taken.

    Law: nothing begins at a wall time that `holds` denies.
    """

    def __init__(self, hours: Hours, clock: Clock) -> None:
        self.hours = hours
        self.clock = clock

    def holds(self, wall: float) -> bool:
        """Whether the host may be visited at a wall time."""
        return self.hours.holds(self._world(wall))

    def opening(self, wall: float) -> float:
        """The first wall time from `wall` on at which the host may be visited."""
        world = self._world(wall)
        return wall if self.hours.holds(world) else self._wall(self._opening(world))

    def open_for(self, start: float, end: float) -> float:
        """How many of the wall seconds between `start` and `end` lie inside."""
        world, last = self._world(start), self._world(end)
        inside = timedelta()
        while world < last:
            if self.hours.holds(world):
                closing = min(max(self.hours.closing(world), world + _STEP), last)
                inside += closing - world
                world = closing
            else:
                world = self._opening(world)
        return inside.total_seconds() / self.clock.speed

    def _opening(self, world: datetime) -> datetime:
        return max(self.hours.opening(world), world + _STEP / 60)

    def _world(self, wall: float) -> datetime:
        ahead = (wall - self.clock.wall()) * self.clock.speed
        return self.clock.now() + timedelta(seconds=ahead)

    def _wall(self, world: datetime) -> float:
        ahead = (world - self.clock.now()).total_seconds()
        return self.clock.wall() + ahead / self.clock.speed


@dataclass(slots=True, eq=False, kw_only=True)
class HostLimiter:
    """One host's turns, back-off and robots.txt. Times are wall seconds.

    `next_at` is when the next request may start at the earliest. `strikes` counts the answers in
    a row that asked for patience or failed; they make the pauses longer. `paused_until` is the end
    of the last such pause. `delay` is the configured one until robots.txt raises it.
    """

    name: str = field(kw_only=False)
    delay: float
    concurrency: int
    start: InitVar[float]
    window: Window | None = None
    next_at: float = field(init=False)
    paused_until: float = 0.0
    strikes: int = 0
    robots: Robots = field(default_factory=Robots)
    slots: Slots = field(init=False)
    asking: asyncio.Future[None] | None = None  # robots.txt, on its way
    _delay: float = field(init=False)
    _naps: dict[asyncio.Future[bool], None] = field(default_factory=dict)
    _shut: bool = False

    def __post_init__(self, start: float) -> None:
        self.next_at = start + self.delay
        self._delay = self.delay
        self.slots = Slots(1 if self.delay else self.concurrency)

    def recall(self, state: HostState, start: float) -> None:
        """Take up what an earlier process left behind; times that no process of ours can have
        written (a clock was wrong) are cut to what one can."""
        self.strikes = state.strikes
        until = min(state.robots_until, start + _DAY_S)
        self.robots = Robots(state.robots_code, state.robots or "", until)
        self.heed()
        remembered = min(state.next_at, start + _DAY_S)
        self.next_at = max(self.next_at, start + self.delay, remembered)

    def state(self) -> HostState:
        """What a later process must know."""
        robots = self.robots
        text = robots.text or None
        return HostState(self.name, self.next_at, self.strikes, text, robots.code, robots.until)

    def heed(self) -> None:
        """Let robots.txt raise the delay above the configured one, never lower it."""
        last, self.delay = self.delay, max(self._delay, self.robots.delay())
        self.next_at += max(0.0, self.delay - last)
        self.slots.resize(1 if self.delay else self.concurrency)

    def earliest(self, now: float) -> float:
        """The earliest start that a newcomer can hope for."""
        if self._shut:
            return math.inf
        ahead = len(self.slots.queue) + len(self._naps)
        if self.window is None:
            return max(now, self.next_at) + self.delay * ahead
        opening = self.window.opening
        return opening(opening(max(now, self.next_at)) + self.delay * ahead)

    def capacity(self, start: float, seconds: float) -> float:
        """Requests that fit between `start` and `seconds` later; see `base.Fetcher`."""
        return room(self.next_at, self.delay, start, seconds, self.window)

    def is_open(self, now: float) -> bool:
        """Whether `now` lies within the host's hours, and in none of its pauses."""
        return now >= self.paused_until and (self.window is None or self.window.holds(now))

    def enter(self, now: float) -> bool:
        """Take the turn now, if it is there for the taking."""
        if now < self.next_at or not self.is_open(now) or not self.slots.take():
            return False
        self.next_at = now + self.delay
        return True

    async def turn(self, before: float, wall: Callable[[], float]) -> bool:
        """Wait for the turn and take it; False if it does not come before `before`."""
        now = wall()
        if self.earliest(now) >= before or not await self.slots.wait(before, now):
            return False
        came = False
        try:
            came = await self._sleep(before, wall)
        finally:
            if not came:
                self.slots.give()
        return came

    async def _sleep(self, before: float, wall: Callable[[], float]) -> bool:
        while (now := wall()) < before and not self._shut:
            start = max(now, self.next_at)
            if self.window is not None:
                start = self.window.opening(start)
            if now >= start:
                self.next_at = now + self.delay
                return True
            if start >= before:
                return False
            await self._nap(start - now)  # may end early, or find a longer pause
        return False

    async def _nap(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _refuse, future)
        self._naps[future] = None
        try:
            await future
        finally:
            timer.cancel()
            del self._naps[future]

    def shut(self) -> None:
        """Give no more turns; those who wait for one need wait no longer."""
        self._shut = True
        self.slots.expire(math.inf)
        for future in self._naps:
            _refuse(future)

    def leave(self, answered_at: float) -> None:
        """End a turn whose answer came, or failed to, at `answered_at`."""
        self.next_at = max(self.next_at, answered_at + self.delay)
        self.slots.give()

    def judge(self, answer: Answer, seed: int) -> bool:
        """Draw the host's pause from how it answered; True if that is worth remembering."""
        code, strikes = answer.code, self.strikes
        if code < 300 and answer.status is Status.OK:
            self.strikes = 0
            return strikes > 0
        pause = self._strike(answer, seed)
        if answer.retry_after is not None and code >= 300:
            pause = retry_after(answer) or pause
        if pause > 0:
            self.paused_until = max(self.paused_until, answer.answered_at + pause)
            self.next_at = max(self.next_at, self.paused_until)
            self.slots.expire(self.next_at)
        return pause > 0 or self.strikes != strikes

    def _strike(self, answer: Answer, seed: int) -> float:
        """Count an answer for or against the host; seconds to leave it alone for that."""
        busy = answer.code in BUSY_CODES
        if not busy and answer.code < 500 and answer.status not in _FAILURES:
            if answer.status is Status.OK:
                self.strikes = 0
            return 0.0  # the page may be at fault, the host is not
        self.strikes = min(self.strikes + 1, 32)
        doublings = self.strikes - (1 if busy else 2)
        if doublings < 0:
            return 0.0
        spread = 1 + jitter(seed, self.name, self.strikes) / 2
        pause = max(self.delay, 1.0) * 2.0**doublings * spread
        return min(pause, _BUSY_CAP_S if busy else _FAILED_CAP_S)


def room(
    next_at: float, delay: float, start: float, seconds: float, window: Window | None = None
) -> float:
    """Requests that fit into the `seconds` after `start`, the first at `next_at` or later.

    >>> room(next_at=2.0, delay=0.5, start=0.0, seconds=10.0)
    16.0
    """
    first, end = max(start, next_at), start + seconds
    left = end - first if window is None or end <= first else window.open_for(first, end)
    if left <= 0:
        return 0.0
    return left / delay if delay else math.inf


def may_pause(answer: Answer) -> bool:
    """Whether an answer may ask us to leave its host alone, by its headers.

    >>> [may_pause(Answer("", Status.OK, 0.0, code=code)) for code in (200, 404, 429, 500)]
    [False, False, True, True]
    """
    code = answer.code
    return code in BUSY_CODES or code >= 500 or (code >= 300 and answer.retry_after is not None)


def retry_after(answer: Answer) -> float:
    """Seconds that the answer asks us to wait, a day at most; 0 if it does not say.

    >>> retry_after(Answer("", Status.OK, 0.0, retry_after="120"))
    120.0
    """
    text = (answer.retry_after or "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text), _DAY_S)
    try:
        when = parsedate_to_datetime(text)
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return min(max(0.0, aware.timestamp() - answer.answered_at), _DAY_S)
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0


def jitter(seed: int, host: str, strikes: int) -> float:
    """A number in [0, 1) that is the same whenever and wherever it is asked for."""
    digest = blake2b(f"{seed}/{host}/{strikes}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 256**7
