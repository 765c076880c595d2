"""One visit, politely: robots.txt, turns, back-off, redirects, retries."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

from yarl import URL

from salticus.clock import Clock
from salticus.config import Config, matches
from salticus.fetch.base import Answer, Engine, Renderer
from salticus.fetch.faults import in_one_line
from salticus.fetch.gate import NO_HEADERS, Dispatcher, PendingRequest
from salticus.fetch.hosts import BUSY_CODES
from salticus.fetch.identity import Identities
from salticus.fetch.robots import ROBOTS_BYTES
from salticus.types import Fetched, Status, Target
from salticus.types.dates import epoch_us

_ROBOTS_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_FOR_GOOD = frozenset({301, 308})
_LONGEST = 8192  # characters of a URL; no server takes longer ones
_BLOCKED = {
    401: "the server answered 401: it wants a user and a password (auth in [[hosts]])",
    403: "the server answered 403: it does not let us in",
    407: "the server answered 407: a proxy wants a user and a password",
    451: "the server answered 451: withheld for legal reasons",
}


class PoliteFetcher(Dispatcher):
    """Makes visits through an engine, each request in its host's turn.

    Failed connections and 5xx answers are tried again `retries` times; a 429, a 503 or any answer
    with Retry-After ends the visit, and so do time-outs and damaged bodies. All requests take
    turns, those for robots.txt and those of redirects too. A redirect whose turn does not come
    before `before` ends the visit as BUSY. Pages whose rule says so are rendered by `renderer`,
    after their turn; what it asks for takes turns as well.
    """

    def __init__(
        self, engine: Engine, config: Config, clock: Clock, renderer: Renderer | None = None
    ) -> None:
        super().__init__(engine, config, clock)
        self.renderer = renderer
        self._identities = Identities(config if renderer else Config())
        self._any_rendered = any(rule.render for rule in config.pages)

    async def fetch(self, target: Target, before: float = math.inf) -> Fetched | None:
        rule = self.config.rule(target.rule) if self._any_rendered else None
        rule = rule if rule is not None and rule.render else None
        request = PendingRequest(
            target.url,
            self.at(target.host),
            before,
            self.config.fetch.retries,
            _conditions(target) if rule is None else NO_HEADERS,
        )
        answer = await self._ask(request)
        if answer is None:
            return None
        if redirects(answer):
            answer = await self._follow(request, answer)
        if rule is not None and is_page(answer):
            answer = await self._render(request, answer, rule.wait)
            if self._shut and answer.status is not Status.OK:
                return None  # what its scripts asked for was refused by us: that tells nothing
        fetched = self._fetched(request, answer)
        if fetched.status is Status.OK and request.moved_for_good and fetched.url != target.url:
            fetched.moved = fetched.url
        return fetched

    async def close(self) -> None:
        if self.renderer is not None:
            await self.renderer.close()
        await self.engine.close()

    # ---------------------------------------------------------------------------------- requests

    async def _ask(self, request: PendingRequest) -> Answer | None:
        """The answer to a request, repeated while that may help; None if its turn did not come.

        Where robots.txt does not let us ask, the answer says so.
        """
        last: Answer | None = None
        while True:
            free = self.clock.wall() < request.host.robots.free_until
            answer = await (self.send(request) if free else self._ask_if_allowed(request))
            if answer is None:
                return last
            if not self.may_help(request, answer):
                return answer
            request.retries -= 1
            last = answer

    async def _ask_if_allowed(self, request: PendingRequest) -> Answer | None:
        if not await self._know_robots(request):
            return None
        now = self.clock.wall()
        refusal = request.host.robots.refusal(request.url, now)
        if refusal is None:
            return await self.send(request)
        return Answer(request.url, refusal[0], now, fault=refusal[1])

    async def _follow(self, request: PendingRequest, answer: Answer) -> Answer:
        seen, hops = {str(URL(request.url))}, 0
        while redirects(answer):
            hops += 1
            if hops > self.config.fetch.max_redirects:
                return lost(answer, f"more than {hops - 1} redirects")
            if not self._move(request, answer):
                return lost(answer, f"a redirect to nowhere: {answer.location or ''!a:.200}")
            if request.url in seen and not self._keeps_cookies(request.host.name):
                fault = f"the redirects run in a circle through {request.url}"
                return lost(answer, f"{fault}; if it wants a cookie, keep_cookies may help")
            seen.add(request.url)
            followed = await self._ask(request)
            if followed is None:
                fault = f"the redirect to {request.url} could not be followed in time"
                return Answer(request.url, Status.BUSY, self.clock.wall(), fault=fault)
            answer = after_redirect(followed)
        return answer

    def _move(self, request: PendingRequest, answer: Answer) -> bool:
        """Turn a request towards where the answer points; False if that is nowhere we go."""
        found = location(request.url, answer.location)
        if found is None:
            return False
        request.url, request.headers = found[0], NO_HEADERS
        request.host = self.at(found[1])
        request.moved_for_good = request.moved_for_good is not False and answer.code in _FOR_GOOD
        return True

    def _keeps_cookies(self, name: str) -> bool:
        """Whether the host may answer differently when it is asked the same again."""
        told = (h.keep_cookies for h in self.config.hosts if matches(name, h.match))
        return next((keep for keep in told if keep is not None), False)

    # --------------------------------------------------------------------------------- rendering

    def _trusted(self, host: str, *, but: str) -> bool:
        """Whether a host lets us in where a page of another must not look: it is given a name and a
        password, or it lies inside. A script could read what it answers and carry it out."""
        if host == but:
            return False
        known = self._identities.at(host) is not None
        return known or any(matches(host, pattern) for pattern in self.config.fetch.allow_private)

    async def _render(self, request: PendingRequest, answer: Answer, wait: str | None) -> Answer:
        """What the page's scripts make of it; what they ask for is asked politely, and once."""

        async def ask(url: str) -> Answer | None:
            found = location(request.url, url)
            if found is None or self._trusted(found[1], but=request.host.name):
                return None
            return await self._ask(PendingRequest(found[0], self.at(found[1])))

        if self.renderer is None:
            fault = "the page is to be rendered, and there is no browser"
            return Answer(answer.url, Status.BROKEN, answer.answered_at, answer.code, fault=fault)
        start = self.clock.wall()
        shown = await self.renderer.render(answer, wait, ask)
        request.elapsed_s += self.clock.wall() - start
        shown.etag = shown.last_modified = None  # of the bare page, which is not what is kept
        return shown

    # ------------------------------------------------------------------------------------ robots

    async def _know_robots(self, request: PendingRequest) -> bool:
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

    async def _learn_robots(self, request: PendingRequest) -> bool:
        host = request.host
        host.asking = done = asyncio.get_running_loop().create_future()
        try:
            answer = await self._ask_robots(request)
            if answer is not None:
                host.robots.learn(answer, self.clock.wall())
                host.heed()
                self.note(host)
        finally:
            host.asking = None
            done.set_result(None)
        return answer is not None

    async def _ask_robots(self, request: PendingRequest) -> Answer | None:
        """The answer to robots.txt, after up to five redirects, to other hosts as well."""
        scheme, host = request.url.partition("://")[0], request.host
        asked = PendingRequest(
            f"{scheme}://{host.name}/robots.txt",
            host,
            request.before,
            self.config.fetch.retries,
            most=ROBOTS_BYTES,
        )
        hops = 0
        while (answer := await self.send(asked)) is not None:
            if redirects(answer) and hops < _ROBOTS_HOPS and self._move(asked, answer):
                hops += 1
            elif self.may_help(asked, answer):
                asked.retries -= 1
            else:
                break
        if hops and answer is not None and answer.status is not Status.OK:
            answer.status = Status.NETWORK  # where it redirects to says nothing of the host
            answer = after_redirect(answer)
        return answer

    # ---------------------------------------------------------------------------------- outcomes

    def _fetched(self, request: PendingRequest, answer: Answer) -> Fetched:
        at = epoch_us(self.clock.now())
        code, status, fault = answer.code, answer.status, answer.fault
        if status is Status.OK:
            status, fault = meaning(code, conditional=bool(request.headers))
        fetched = Fetched(answer.url, status, at, code, elapsed_s=request.elapsed_s)
        if status is Status.OK or status is Status.NOT_MODIFIED:
            fetched.body = answer.body
            fetched.content_type, fetched.charset = answer.content_type, answer.charset
            fetched.etag, fetched.last_modified = answer.etag, answer.last_modified
        else:
            fetched.fault = fault or f"the server answered {code}"
        return fetched


def _conditions(target: Target) -> Mapping[str, str]:
    """Headers that let the server say that nothing has changed."""
    named = (("If-None-Match", target.etag), ("If-Modified-Since", target.last_modified))
    return {name: value for name, value in named if value}


def redirects(answer: Answer) -> bool:
    """Whether the answer sends us elsewhere."""
    return answer.code in _REDIRECTS and answer.status is Status.OK


def is_page(answer: Answer) -> bool:
    """Whether the answer is complete and HTML, as far as it says."""
    html = not answer.content_type or "html" in answer.content_type.lower()
    return 200 <= answer.code < 300 and answer.status is Status.OK and html


def location(base: str, told: str | None) -> tuple[str, str] | None:
    """The URL and the host that a redirect leads to; None if it is not a web address.

    >>> location("http://a.org/x", "//B.org:8080/y#z"), location("http://a.org/", "mailto:x")
    (('http://b.org:8080/y', 'b.org:8080'), None)
    """
    if not told or len(told) > _LONGEST or not told.isprintable():
        return None
    try:
        url = URL(base).join(URL(told)).with_fragment(None)
        host = url.host_port_subcomponent
        if url.scheme not in ("http", "https") or not url.raw_host or not host or " " in host:
            return None
        return str(url.with_user(None)), host
    except (ValueError, IndexError):  # IndexError: of x://user:password@, which has no host
        return None


def lost(answer: Answer, fault: str) -> Answer:
    """The end of a chain of redirects that leads to no page."""
    return Answer(answer.url, Status.REDIRECTS, answer.answered_at, answer.code, fault=fault)


def after_redirect(answer: Answer) -> Answer:
    """An answer whose fault, if it has one, says that a redirect led there."""
    if answer.status is not Status.OK:
        answer.fault = in_one_line(f"{answer.fault} (after a redirect to {answer.url})")
    return answer


def meaning(code: int, *, conditional: bool) -> tuple[Status, str | None]:
    """What a complete answer means, and in words what is wrong with it.

    >>> meaning(404, conditional=False)
    (<Status.GONE: 2>, 'the server answered 404')
    """
    if 200 <= code < 300:
        return Status.OK, None
    if code == 304 and conditional:
        return Status.NOT_MODIFIED, None
    fault = f"the server answered {code}"
    if code in (404, 410):
        return Status.GONE, fault
    if code in _BLOCKED:
        return Status.BLOCKED, _BLOCKED[code]
    return Status.BUSY if code in BUSY_CODES else Status.HTTP, fault
