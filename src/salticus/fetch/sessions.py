"""The connections of the HTTP engine: direct ones, and those that go through proxies."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from ssl import SSLContext
from typing import Any

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientHandlerType,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from salticus.config import Fetch
from salticus.fetch import AGENT
from salticus.fetch.address import Limits, Refused, SafeResolver, is_literal
from salticus.fetch.codecs import ACCEPTED
from salticus.fetch.faults import Chatter
from salticus.fetch.identity import Identity
from salticus.version import VERSION

Lookup = Callable[..., list[Any]]
_Task = tuple["asyncio.Future[list[Any]]", str, int, int]

_DNS_TTL_S, _DNS_NAMES = 300, 65_536
_LOOKUPS = 256  # at once; a thread each
_LINE = 16_384  # bytes of a header; policies of content grow long, and there may be 128 headers
_INTERIM = 20  # answers before the answer


class _Lost(ClientError):
    """The connection broke before an answer came; see `_once`."""


class _Response(ClientResponse):
    """An answer that is not waited for through any number of interim ones (1xx)."""

    _interim = 0

    @property
    def _continue(self) -> None:  # type: ignore[override]
        """Looked at once for every interim answer: the one place to count them."""
        self._interim += 1
        if self._interim > _INTERIM:
            text = f"the server sent more than {_INTERIM} interim answers (1xx) and no answer"
            raise Chatter(self.request_info, (), message=text)


class Sessions:
    """Opens what the engine sends through, when it is first needed.

    Direct connections are made to judged addresses only. Those to a proxy are made wherever the
    user said that it is; there the target is judged by `judge`, because the proxy resolves it.
    """

    def __init__(
        self, settings: Fetch, resolver: AbstractResolver | None, ssl: SSLContext | None
    ) -> None:
        self.settings = settings
        self.limits = Limits(settings.allow_private)
        self.direct: ClientSession | None = None
        self._ssl: SSLContext | bool = ssl or True
        self._resolver = resolver
        self._own: AbstractResolver | None = None
        self._proxied: ClientSession | None = None
        self._judged: dict[tuple[str, int], float] = {}

    def open(self) -> ClientSession:
        """The session of direct connections."""
        self.direct = self.direct or self._session(SafeResolver(self._names(), self.limits))
        return self.direct

    async def send_as(
        self, identity: Identity, url: URL, headers: Mapping[str, str]
    ) -> ClientResponse:
        """Send a request with what its host was given."""
        if url.user is not None and identity.signs_in:
            url = url.with_user(None)
        sent = identity.headers_for(url, headers)
        if identity.proxy is None:
            return await self.open().get(url, headers=sent, allow_redirects=False)
        await self.judge(url)
        if self._proxied is None:
            self._proxied = self._session(self._names())
        auth = identity.proxy_auth
        return await self._proxied.get(
            url,
            headers=sent,
            allow_redirects=False,
            proxy=identity.proxy,
            proxy_headers={"Proxy-Authorization": auth} if auth and url.scheme == "https" else None,
        )

    async def judge(self, url: URL) -> None:
        """Raise Refused if the host's name leads to any address off limits, as far as we can see:
        which of them the proxy takes is not ours to choose.

        A name that is not known here may be known to the proxy.
        """
        host, port = url.raw_host or "", url.port or 0
        now = time.monotonic()
        if is_literal(host) or self._judged.get((host, port), 0.0) > now:
            return
        try:
            async with asyncio.timeout(self.settings.timeout.total_seconds()):
                for entry in await self._names().resolve(host, port):
                    self.limits.judge(host, port, [entry])
        except Refused:
            raise
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
        if len(self._judged) >= _DNS_NAMES:
            self._judged.clear()
        self._judged[host, port] = now + _DNS_TTL_S

    async def close(self) -> None:
        """End all connections; the next request opens new ones."""
        for session in (self.direct, self._proxied):
            if session is not None:
                await session.close()
        if self._own is not None:
            await self._own.close()
        self.direct = self._proxied = self._own = None

    def _names(self) -> AbstractResolver:
        if self._resolver is not None:
            return self._resolver
        self._own = self._own or ThreadsResolver(min(self.settings.concurrency, _LOOKUPS))
        return self._own

    def _session(self, resolver: AbstractResolver) -> ClientSession:
        return ClientSession(
            connector=TCPConnector(
                resolver=resolver,
                limit=self.settings.concurrency,
                ttl_dns_cache=_DNS_TTL_S,
                dns_cache_max_size=_DNS_NAMES,
                ssl=self._ssl,
            ),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=self.settings.timeout.total_seconds()),
            headers={
                "User-Agent": user_agent(self.settings.contact),
                "Accept-Encoding": ACCEPTED,
            },
            auto_decompress=False,
            max_line_size=_LINE,
            max_field_size=_LINE,
            response_class=_Response,
            middlewares=(_once,),
        )


async def _once(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Send a request once: aiohttp would repeat it at once when the connection breaks, and the
    repeat would reach the host before its next turn."""
    try:
        return await send(request)
    except ServerDisconnectedError as error:
        raise _Lost("the server closed the connection without an answer") from error
    except ClientOSError as error:
        if isinstance(error, ClientConnectorError):
            raise  # it never got as far as sending
        raise _Lost(f"the connection broke: {error.strerror or error}") from error


def user_agent(contact: str) -> str:
    """The honest name under which we knock.

    >>> user_agent("ops@example.org").split()[1]
    '(+ops@example.org)'
    """
    shown = " ".join(contact.split())
    return f"{AGENT}/{VERSION} (+{shown})" if shown else f"{AGENT}/{VERSION}"


class ThreadsResolver(AbstractResolver):
    """Asks the system in up to `threads` threads, which are made when they are needed.

    A name whose server is silent keeps the system's resolver busy for ten seconds and more. The
    event loop's own threads are few (four on uvloop), and a handful of such names would stop every
    other host from being found. The threads are daemons: a lookup that hangs does not keep the
    process from ending.
    """

    def __init__(self, threads: int, lookup: Lookup = socket.getaddrinfo) -> None:
        self.threads = threads
        self.lookup = lookup
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._started = 0
        self._waiting = 0  # lookups asked for and not done

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a host; OSError if it has none."""
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting += 1
        self._tasks.put((future, host, port, family))
        if self._started < min(self._waiting, self.threads):
            self._started += 1
            threading.Thread(target=self._work, name="salticus-dns", daemon=True).start()
        found = await future
        return [entry for info in found if (entry := _entry(host, port, info)) is not None]

    async def close(self) -> None:
        """Let the threads end, each when its lookup does."""
        for _ in range(self._started):
            self._tasks.put(None)
        self._started = 0

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, host, port, family = task
            result: list[Any] | Exception
            try:
                flags = socket.AI_ADDRCONFIG
                result = self.lookup(
                    host, port, type=socket.SOCK_STREAM, family=family, flags=flags
                )
            except Exception as error:  # UnicodeError for names that are none
                result = error if isinstance(error, OSError) else OSError(f"no such name: {error}")
            try:
                future.get_loop().call_soon_threadsafe(self._settle, future, result)
            except RuntimeError:
                return  # the loop has ended, and with it all who waited

    def _settle(self, future: asyncio.Future[list[Any]], result: list[Any] | Exception) -> None:
        self._waiting -= 1
        if future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


def _entry(host: str, port: int, info: Any) -> ResolveResult | None:
    """One answer of the system's resolver; None if it cannot be connected to.

    A zone is kept with its address, which is then off limits.
    """
    family, _, proto, _, address = info
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    zone = f"%{address[3]}" if family == socket.AF_INET6 and address[3:] and address[3] else ""
    return ResolveResult(
        hostname=host,
        host=f"{address[0]}{zone}",
        port=port,
        family=family,
        proto=proto,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
