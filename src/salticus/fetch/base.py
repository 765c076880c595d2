"""The contracts of fetching: an engine makes one exchange, a fetcher makes one polite visit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from salticus.types import Fetched, HostState, Status, Target


class Answer(msgspec.Struct):
    """One HTTP exchange, redirects not followed.

    `status` is OK when the exchange completed, whatever its `code`; otherwise it names the failure
    and `fault` says it in words. `answered_at` is the wall time at which the headers (or the
    failure) arrived. `body` is decompressed.
    """

    url: str
    status: Status
    answered_at: float
    code: int = 0
    body: bytes = b""
    content_type: str = ""
    charset: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    location: str | None = None
    retry_after: str | None = None
    fault: str | None = None


class Engine(Protocol):
    """Makes one exchange: HTTP by default, a browser as an extra.

    Laws: never raises for anything a server does; never reads more than its limits; never connects
    to an address that is off limits; does not follow redirects; with `most`, of a longer body that
    many bytes are the answer; an answer that may pause its host is returned when its headers are
    there, because that is when a Retry-After begins.
    """

    async def get(
        self, url: str, headers: Mapping[str, str], *, most: int | None = None
    ) -> Answer: ...

    async def close(self) -> None: ...


Ask = Callable[[str], Awaitable[Answer | None]]


class Renderer(Protocol):
    """Runs a page's scripts: the answer to a plain exchange becomes what a reader would see.

    Laws: everything that the page asks for goes through `ask`, which is polite, safe and bounded;
    the browser itself has no network. Never raises for anything a page does: a page that cannot be
    rendered is an Answer whose status and fault say why. Bounded in time, size and memory.
    """

    async def render(self, page: Answer, wait: str | None, ask: Ask) -> Answer: ...

    async def close(self) -> None: ...


class Fetcher(Protocol):
    """Makes one visit politely: robots.txt, turns, back-off, redirects, retries.

    Laws: requests to one host do not overlap beyond its concurrency; they start at least its
    delay after the previous one was answered; a disallowed path is never requested; a host that
    said Retry-After is left alone until then, and one that has hours outside of them; never raises
    for anything a server does.
    """

    async def fetch(self, target: Target, before: float = ...) -> Fetched | None:
        """Visit `target`; None if its turn did not come before wall time `before`."""

    def news(self) -> list[HostState]:
        """Hosts of which there is more to remember than when this was last asked: a pause that
        they asked for, its end, a new robots.txt."""

    def restore(self, states: list[HostState]) -> None:
        """Take up what was remembered. Every host then waits its delay once more, because an
        earlier process may have made a request that it could not store."""

    def capacity(self, name: str, start: float, seconds: float) -> float:
        """Visits that the host can take in the `seconds` that follow wall time `start`; inf
        without a delay. Never 0 merely because `seconds` is shorter than the delay: a fraction."""

    def concurrency(self, name: str) -> int:
        """How many requests to the host may be under way at once."""

    def stop(self) -> None:
        """Begin no more visits: `fetch` returns None for those still waiting for their turn."""

    async def close(self) -> None: ...
