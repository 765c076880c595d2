"""One visit, politely: robots.txt, turns, back-off, redirects, retries."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from yarl import URL

from salticus.clock import Clock
from salticus.config import Config
from salticus.fetch.base import Answer, Engine
from salticus.fetch.gate import NO_HEADERS, Gate, Request
from salticus.fetch.hosts import BUSY_CODES
from salticus.types import Fetched, HostState, Status, Target

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ROBOTS_HOPS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class PoliteFetcher:
    """Makes visits through an engine, each request in its host's turn.

    Failed connections and 5xx answers are tried again `retries` times; a 429, a 503 or any answer
    with Retry-After ends the visit, and so do time-outs and damaged bodies. All requests take
    turns, those for robots.txt and those of redirects too. A redirect whose turn does not come
    before `before` ends the visit as BUSY.
    """

    def __init__(self, engine: Engine, config: Config, clock: Clock) -> None:
        self.engine = engine
        self.config = config
        self.clock = clock
        self._gate = Gate(engine, config, clock)

    async def fetch(self, target: Target, before: float = math.inf) -> Fetched | None:
        """Visit `target`; None if its turn did not come before wall time `before`."""
        request = Request(
            target.url,
            self._gate.at(target.host),
            before=before,
            retries=self.config.fetch.retries,
            headers=_conditions(target),
        )
        answer = await self._ask(request)
        if answer is None:
            return None
        if _redirects(answer):
            answer = await self._follow(request, answer)
        return self._fetched(request, answer)

    def host(self, name: str) -> HostState:
        """What must be remembered of the host."""
        return self._gate.at(name).state()

    def news(self) -> list[HostState]:
        """Hosts of which there is more to remember than when this was last asked."""
        return self._gate.news()

    def restore(self, states: list[HostState]) -> None:
        """Take up what was remembered; every host waits its delay once more."""
        self._gate.restore(states)

    def capacity(self, name: str, start: float, seconds: float) -> float:
        """Visits that the host can take in the `seconds` that follow wall time `start`."""
        return self._gate.capacity(name, start, seconds)

    def concurrency(self, name: str) -> int:
        """How many requests to the host may be under way at once; 1 if it has a delay."""
        return self._gate.at(name).slots.limit

    def stop(self) -> None:
        """Begin no more visits; those still waiting for their turn are not made."""
        self._gate.shut()

    async def close(self) -> None:
        await self.engine.close()

    # ---------------------------------------------------------------------------------- requests

    async def _ask(self, request: Request) -> Answer | None:
        """The answer to a request, repeated while that may help; None if its turn did not come.

        Where robots.txt does not let us ask, the answer says so.
        """
        last: Answer | None = None
        while True:
            answer: Answer | None
            if self.clock.wall() < request.host.robots.free_until:
                answer = await self._gate.send(request)
            else:
                answer = await self._ask_if_allowed(request)
            if answer is None:
                return last
            if not self._gate.may_help(request, answer):
                return answer
            request.retries -= 1
            last = answer

    async def _ask_if_allowed(self, request: Request) -> Answer | None:
        if not await self._know_robots(request):
            return None
        now = self.clock.wall()
        refusal = request.host.robots.refusal(request.url, now)
        if refusal is None:
            return await self._gate.send(request)
        return Answer(request.url, refusal[0], now, fault=refusal[1])

    async def _follow(self, request: Request, answer: Answer) -> Answer:
        """Follow redirects to the first answer that is none."""
        seen = {str(URL(request.url))}
        while _redirects(answer):
            if len(seen) > self.config.fetch.max_redirects:
                return _lost(answer, f"more than {len(seen) - 1} redirects")
            if not self._move(request, answer):
                return _lost(answer, f"a redirect to nowhere: {answer.location!r:.200}")
            if request.url in seen:
                return _lost(answer, f"the redirects run in a circle through {request.url}")
            seen.add(request.url)
            followed = await self._ask(request)
            if followed is None:
                fault = f"the redirect to {request.url} could not be followed in time"
                return Answer(request.url, Status.BUSY, self.clock.wall(), fault=fault)
            answer = followed
        return answer

    def _move(self, request: Request, answer: Answer) -> bool:
        """Turn a request towards where the answer points; False if that is nowhere we go."""
        found = _location(request.url, answer.location)
        if found is None:
            return False
        request.url, request.headers = found[0], NO_HEADERS
        request.host = self._gate.at(found[1])
        return True

    # ------------------------------------------------------------------------------------ robots

    async def _know_robots(self, request: Request) -> bool:
        """See to it that the host's robots.txt is known; False if that takes beyond `before`.

        One visit asks and the others wait for it; if it gives up or is cancelled, the next asks.
        """
        host, before = request.host, request.before
        while host.robots.due(now := self.clock.wall()):
            if host.earliest(now) >= before:
                return False
            if host.asking is None:
                if not await self._learn_robots(request):
                    return False
            else:
                left = None if before == math.inf else before - now
                await asyncio.wait((host.asking,), timeout=left)
        return True

    async def _learn_robots(self, request: Request) -> bool:
        host = request.host
        host.asking = done = asyncio.get_running_loop().create_future()
        try:
            answer = await self._ask_robots(request)
            if answer is not None:
                host.robots.learn(answer, self.clock.wall())
                host.heed()
                self._gate.note(host)
        finally:
            host.asking = None
            done.set_result(None)
        return answer is not None

    async def _ask_robots(self, request: Request) -> Answer | None:
        """The answer to robots.txt, after up to five redirects, to other hosts as well."""
        scheme, host = request.url.partition("://")[0], request.host
        asked = Request(
            f"{scheme}://{host.name}/robots.txt",
            host,
            before=request.before,
            retries=self.config.fetch.retries,
            headers=NO_HEADERS,
        )
        hops = 0
        answer = await self._gate.send(asked)
        while answer is not None:
            if _redirects(answer) and hops < _ROBOTS_HOPS and self._move(asked, answer):
                hops += 1
            elif self._gate.may_help(asked, answer):
                asked.retries -= 1
            else:
                break
            answer = await self._gate.send(asked)
        return answer

    # ---------------------------------------------------------------------------------- outcomes

    def _fetched(self, request: Request, answer: Answer) -> Fetched:
        at = (self.clock.now() - _EPOCH) // _MICROSECOND
        code, status = answer.code, answer.status
        if status is Status.OK:
            status = _meaning(code, conditional=bool(request.headers))
        fetched = Fetched(answer.url, status, at, code, elapsed_s=request.elapsed_s)
        if status is Status.OK or status is Status.NOT_MODIFIED:
            fetched.body = answer.body
            fetched.content_type, fetched.charset = answer.content_type, answer.charset
            fetched.etag, fetched.last_modified = answer.etag, answer.last_modified
        else:
            fetched.fault = answer.fault or f"the server answered {code}"
        return fetched


def _conditions(target: Target) -> Mapping[str, str]:
    """Headers that let the server say that nothing has changed."""
    if target.etag is None and target.last_modified is None:
        return NO_HEADERS
    named = (("If-None-Match", target.etag), ("If-Modified-Since", target.last_modified))
    return {name: value for name, value in named if value}


def _redirects(answer: Answer) -> bool:
    return answer.code in _REDIRECTS and answer.status is Status.OK


def _location(base: str, location: str | None) -> tuple[str, str] | None:
    """The URL and the host that a redirect leads to; None if it is not a web address.

    >>> _location("http://a.org/x", "//B.org:8080/y#z"), _location("http://a.org/", "mailto:x")
    (('http://b.org:8080/y', 'b.org:8080'), None)
    """
    try:
        url = URL(base).join(URL(location or "")).with_fragment(None)
        host = url.host_port_subcomponent
        if url.scheme not in ("http", "https") or not url.raw_host or not host:
            return None
        return str(url.with_user(None)), host
    except ValueError:
        return None


def _lost(answer: Answer, fault: str) -> Answer:
    return Answer(answer.url, Status.REDIRECTS, answer.answered_at, answer.code, fault=fault)


def _meaning(code: int, *, conditional: bool) -> Status:
    """What a complete answer means."""
    if 200 <= code < 300:
        return Status.OK
    if code == 304 and conditional:
        return Status.NOT_MODIFIED
    if code in (404, 410):
        return Status.GONE
    return Status.BUSY if code in BUSY_CODES else Status.HTTP
