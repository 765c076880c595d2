"""The gates of all hosts: every request of the crawler passes here, in its turn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from salticus.clock import Clock
from salticus.config import Config
from salticus.fetch.base import Answer, Engine
from salticus.fetch.hosts import BUSY_CODES, HostLimiter, Slots, Window, room
from salticus.types import HostState, Status

NO_HEADERS: Mapping[str, str] = {}


@dataclass(slots=True)
class PendingRequest:
    """A request to make before wall time `before`, and to repeat up to `retries` times.

    `elapsed_s` sums the seconds that its exchanges took, not those spent waiting for turns. With
    `most`, only so many bytes of the body are wanted. `moved_for_good` says whether all redirects
    were permanent, None before the first.
    """

    url: str
    host: HostLimiter
    before: float = math.inf
    retries: int = 0
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    most: int | None = None
    elapsed_s: float = 0.0
    moved_for_good: bool | None = None


class Hosts:
    """All hosts, each met when it is first asked for, with what was remembered of it."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self._start = clock.wall()
        self._hosts: dict[str, HostLimiter] = {}
        self._remembered: dict[str, HostState] = {}

    def at(self, name: str) -> HostLimiter:
        return self._hosts.get(name) or self._open(name)

    def host(self, name: str) -> HostState:
        return self.at(name).state()

    def concurrency(self, name: str) -> int:
        """How many requests to the host may be under way at once; 1 if it has a delay."""
        return self.at(name).slots.limit

    def capacity(self, name: str, start: float, seconds: float) -> float:
        """What the host can take; see `base.Fetcher`. One never met needs no gate for that."""
        if name in self._hosts or name in self._remembered:
            return self.at(name).capacity(start, seconds)
        delay = self.config.delay(name)
        return room(self._start + delay, delay, start, seconds, self._window(name))

    def restore(self, states: list[HostState]) -> None:
        """Take up what an earlier process left; each host waits its delay once more."""
        self._start = self.clock.wall()
        for state in states:
            if state.host in self._hosts:
                self._hosts[state.host].recall(state, self._start)
            else:
                self._remembered[state.host] = state

    def _open(self, name: str) -> HostLimiter:
        host = HostLimiter(
            name,
            delay=self.config.delay(name),
            concurrency=self.config.concurrency(name),
            start=self._start,
            window=self._window(name),
        )
        if (state := self._remembered.pop(name, None)) is not None:
            host.recall(state, self._start)
        self._hosts[name] = host
        return host

    def _window(self, name: str) -> Window | None:
        hours = self.config.hours(name)
        return None if hours is None else Window(hours, self.clock)


class Dispatcher(Hosts):
    """Sends requests through an engine, each in its host's turn, so many at once in all.

    Laws: those of `base.Fetcher` that speak of turns; a request that is cancelled frees its turn.
    """

    def __init__(self, engine: Engine, config: Config, clock: Clock) -> None:
        super().__init__(config, clock)
        self.engine = engine
        self._seats = Slots(config.fetch.concurrency)
        self._noted: dict[str, HostLimiter] = {}
        self._shut = False

    def note(self, host: HostLimiter) -> None:
        """There is something to remember of the host."""
        self._noted[host.name] = host

    def news(self) -> list[HostState]:
        noted, self._noted = self._noted, {}
        return [host.state() for host in noted.values()]

    def stop(self) -> None:
        self._shut = True
        self._seats.expire(math.inf)
        for host in self._hosts.values():
            host.shut()

    def may_help(self, request: PendingRequest, answer: Answer) -> bool:
        """Whether the same request may be made again, and may fare better in its next turn."""
        if request.retries <= 0 or answer.code in BUSY_CODES or answer.retry_after:
            return False  # the visit ends, so that what the host asked for is stored at once
        return answer.code >= 500 or answer.status is Status.NETWORK

    async def send(self, request: PendingRequest) -> Answer | None:
        """One exchange in the host's turn; None if that does not come before `before`."""
        host, wall = request.host, self.clock.wall
        start = wall()
        if self._shut or start >= request.before:
            return None
        if not host.enter(start) and not await host.turn(request.before, wall):
            return None
        if not self._seats.take() and not await self._seated(request):
            return None
        start = wall()
        if not host.is_open(start):  # its hours ended, or a pause began, while it waited for a seat
            self._seats.give()
            host.slots.give()
            return await self.send(request)
        try:
            answer = await self.engine.get(request.url, request.headers, most=request.most)
        except BaseException:
            host.leave(wall())
            raise
        finally:
            self._seats.give()
        request.elapsed_s += wall() - start
        noteworthy = host.judge(answer, self.config.seed)
        host.leave(answer.answered_at)
        if noteworthy:
            self.note(host)
        return answer

    async def _seated(self, request: PendingRequest) -> bool:
        """Wait for one of the seats that all hosts share; without one the turn is given up."""
        seated = False
        try:
            seated = await self._seats.wait(request.before, self.clock.wall())
            if seated and self._shut:
                self._seats.give()
                seated = False
        finally:
            if not seated:
                request.host.slots.give()
        return seated
