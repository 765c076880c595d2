"""A web server that behaves badly on demand, for the laws of fetching."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

import brotli
import zstandard

from salticus.types import Status, Target

Reply = bytes | Awaitable[bytes]
Route = bytes | Callable[[dict[str, str], asyncio.StreamWriter], Reply]

LIMIT = 100_000  # bytes: the largest body that the laws let through
TIMEOUT_S = 2.0
BODY = b"<html>" + b"page " * 1000


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """An HTTP answer; underscores in header names stand for hyphens.

    >>> reply(b"hi", Retry_After="1").split(b"\\r\\n")
    [b'HTTP/1.1 200 OK', b'Content-Length: 2', b'Retry-After: 1', b'', b'hi']
    """
    named = {"Content_Length": str(len(body)), **headers}
    lines = (f"{name.replace('_', '-')}: {value}" for name, value in named.items())
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode() + body


@dataclass
class Server:
    """A web server on 127.0.0.1 that answers by path and notes what arrives.

    A route is the answer itself or a function of the request's headers and the connection; one
    that returns no bytes has ended the connection. Unknown paths are 404. `arrivals` holds path
    and monotonic time of every request, `most` how many were under way at once.
    """

    routes: dict[str, Route] = field(default_factory=dict)
    arrivals: list[tuple[str, float]] = field(default_factory=list)
    most: int = 0
    port: int = 0
    _active: int = 0

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def target(self, path: str, etag: str | None = None) -> Target:
        return Target(page=1, url=self.url(path), host=self.host, etag=etag)

    def times(self, *paths: str) -> list[float]:
        """When requests arrived; of the given paths only, if any are given."""
        return [at for path, at in self.arrivals if not paths or path in paths]

    async def asked(self, path: str) -> None:
        """Wait until a request for `path` has arrived."""
        while not self.times(path):
            await self._news.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split()[1]
        self.arrivals.append((path, time.monotonic()))
        self._news.set()
        self._news.clear()
        route = self.routes.get(path, reply(status="404 Not Found"))
        self._active += 1
        self.most = max(self.most, self._active)
        try:
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            answer = route if isinstance(route, bytes) else route(headers, writer)
            data = answer if isinstance(answer, bytes) else await answer
        finally:
            self._active -= 1
        writer.write(data)
        await writer.drain()
        return bool(data)


# ---------------------------------------------------------------------------------------- mischief


def reset(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
    """Break the connection without a word."""
    writer.transport.abort()
    return b""


async def hang(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
    """Say nothing for longer than anyone waits."""
    await asyncio.sleep(4 * TIMEOUT_S)
    return b""


def breaking_off(data: bytes) -> Route:
    """Send something that is less than an answer, and close."""
    return then(data, b"")


def dripping(status: str, **headers: str) -> Route:
    """Send the headers, and a body that never ends."""

    async def route(asked: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
        writer.write(reply(BODY, status=status, **headers)[:-9])
        await asyncio.Event().wait()
        return b""

    return route


def pouring(data: bytes) -> Route:
    """Send the same over and over."""

    async def route(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
        for _ in range(1000):
            writer.write(data)
            await writer.drain()
        return b""

    return route


def then(data: bytes, end: Route) -> Route:
    """Send something, and go on as `end` does."""

    async def route(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0)
        answer = end if isinstance(end, bytes) else end(headers, writer)
        return answer if isinstance(answer, bytes) else await answer

    return route


chatter = pouring(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20)  # interim answers, no other
PACKED = gzip.compress(BODY)
_BOMB = bytes(100 * LIMIT)
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

MISCHIEF: dict[str, tuple[Route, set[Status]]] = {
    "/reset": (reset, {Status.NETWORK}),
    "/silent-close": (breaking_off(b""), {Status.NETWORK}),
    "/hang": (hang, {Status.TIMEOUT}),
    "/stall": (then(reply(BODY)[:200], hang), {Status.TIMEOUT}),
    "/truncated": (breaking_off(reply(BODY)[:-9]), {Status.BROKEN}),
    "/cut-headers": (breaking_off(b"HTTP/1.1 200 OK\r\nContent-"), {Status.NETWORK}),
    "/cut-chunk": (breaking_off(_CHUNKED + b"ff\r\nabc"), {Status.BROKEN}),
    "/bad-chunk": (breaking_off(_CHUNKED + b"zz\r\nabc\r\n"), {Status.BROKEN, Status.NETWORK}),
    "/longer": (breaking_off(reply(BODY) + b"more"), {Status.OK, Status.BROKEN, Status.NETWORK}),
    "/bad-length": (breaking_off(reply(BODY, Content_Length="ten")), {Status.NETWORK}),
    "/garbage": (breaking_off(b"\x00\xff nonsense\r\n\r\n"), {Status.NETWORK}),
    "/bad-status": (breaking_off(b"HTTP/1.1 abc OK\r\n\r\n"), {Status.NETWORK}),
    "/bad-header": (breaking_off(b"HTTP/1.1 200 OK\r\n\x00bad\r\n\r\n"), {Status.NETWORK}),
    "/long-header": (breaking_off(reply(BODY, X_Long="x" * 100_000)), {Status.NETWORK}),
    "/stray-bytes": (reply(BODY, ETag="?").replace(b"ETag: ?", b"ETag: \xff\xfe"), {Status.OK}),
    "/huge": (reply(BODY, Content_Length="9999999999"), {Status.TOO_LARGE}),
    "/endless": (then(b"HTTP/1.1 200 OK\r\n\r\n", pouring(b"x" * 10_000)), {Status.TOO_LARGE}),
    "/many-headers": (
        breaking_off(reply(BODY, **{f"X-{i}": "y" for i in range(10_000)})),
        {Status.NETWORK},
    ),
    "/chatter": (chatter, {Status.NETWORK}),
    "/bomb": (reply(gzip.compress(_BOMB), Content_Encoding="gzip"), {Status.TOO_LARGE}),
    "/br-bomb": (
        reply(brotli.compress(_BOMB, quality=5), Content_Encoding="br"),
        {Status.TOO_LARGE},
    ),
    "/zstd-bomb": (reply(zstandard.compress(_BOMB), Content_Encoding="zstd"), {Status.TOO_LARGE}),
    "/bad-br": (reply(BODY, Content_Encoding="br"), {Status.BROKEN}),
    "/bad-zstd": (reply(BODY, Content_Encoding="zstd"), {Status.BROKEN}),
    "/bad-gzip": (reply(BODY, Content_Encoding="gzip"), {Status.BROKEN}),
    "/cut-gzip": (reply(PACKED[:-9], Content_Encoding="gzip"), {Status.BROKEN}),
    "/unasked": (reply(BODY, Content_Encoding="compress"), {Status.BROKEN}),
    "/twice": (reply(PACKED, Content_Encoding="gzip, br"), {Status.BROKEN}),
    "/circle": (reply(status="302 Found", Location="/circle"), {Status.OK}),
    "/nowhere": (reply(status="302 Found", Location="http://["), {Status.OK}),
    "/mail": (reply(status="301 Moved", Location="mailto:a@b"), {Status.OK}),
    "/teapot": (reply(status="418 Teapot"), {Status.OK}),
    "/error": (reply(BODY, status="500 Oops"), {Status.OK}),
}
