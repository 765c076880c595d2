"""The default engine: one GET over HTTP/1.1 by aiohttp, bounded in size, time and address."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from ssl import SSLContext
from urllib.parse import quote

import aiohttp
from aiohttp import ClientResponse, ClientSession, hdrs
from aiohttp.abc import AbstractResolver
from yarl import URL

from salticus.clock import Clock
from salticus.config import Fetch
from salticus.fetch import AGENT
from salticus.fetch.address import Limits, Refused, SafeResolver, ThreadsResolver, is_literal
from salticus.fetch.base import Answer
from salticus.fetch.codecs import ACCEPTED, TooLarge, read, start_of
from salticus.fetch.faults import Chatter, status_of, words_for
from salticus.fetch.hosts import may_pause
from salticus.fetch.identity import Identities, Identity
from salticus.types import Status
from salticus.version import VERSION

_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_DRAINED = 65_536  # bytes of an error page that are read so that its connection can serve again
_DNS_TTL_S, _DNS_NAMES = 300, 65_536
_LOOKUPS = 256  # at once; a thread each
_LINE = 16_384  # bytes of a header; policies of content grow long, and there may be 128 headers
_INTERIM = 20  # answers before the answer


class HttpEngine:
    """Makes one exchange over HTTP, and turns whatever goes wrong into an Answer.

    Bodies are kept of 2xx answers only. Proxies, cookies and passwords are those of `identities`,
    each for its own host; none are taken from the environment. The time limit covers the whole
    exchange, name resolution and body included. `ssl` replaces the machine's trusted authorities.
    """

    def __init__(
        self,
        settings: Fetch,
        clock: Clock,
        *,
        identities: Identities | None = None,
        resolver: AbstractResolver | None = None,
        ssl: SSLContext | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.identities = identities or None  # without any, exchanges need not look
        self._sessions = Sessions(settings, resolver, ssl)
        self._refusal = lru_cache(maxsize=65_536)(self._sessions.limits.refusal)

    async def get(self, url: str, headers: Mapping[str, str], *, most: int | None = None) -> Answer:
        identity: Identity | None = None
        try:
            parsed = URL(url, encoded=_is_encoded(url))
            if (fault := self._fault(parsed)) is not None:
                return Answer(url, Status.UNSAFE, self.clock.wall(), fault=fault)
            if self.identities is not None:
                identity = self.identities.at(parsed.host_port_subcomponent or "")
            response = await self._send(parsed, headers, identity)
        except Exception as error:
            code = error.status if isinstance(error, aiohttp.ClientHttpProxyError) else 0
            status, fault = status_of(error), words_for(error)
            return Answer(url, status, self.clock.wall(), code=code, fault=fault)
        answer = _answer(url, response, self.clock.wall())
        try:
            if identity is not None and identity.cookies is not None:
                identity.cookies.learn(response.headers.getall(hdrs.SET_COOKIE, ()), parsed)
            await self._fill(answer, response, most)
        except Exception as error:
            answer.status = status_of(error, Status.BROKEN)
            answer.fault = words_for(error, begun=True)
        finally:
            if not response.closed:
                response.close()
        return answer

    async def close(self) -> None:
        await self._sessions.close()

    def _send(
        self, url: URL, headers: Mapping[str, str], identity: Identity | None
    ) -> Awaitable[ClientResponse]:
        if identity is not None:
            return self._sessions.send_as(identity, url, headers)
        session = self._sessions.direct or self._sessions.open()
        return session.get(url, headers=headers, allow_redirects=False)

    def _fault(self, url: URL) -> str | None:
        """Why this URL may not be asked at all."""
        if url.scheme not in ("http", "https"):
            return f"only http and https are fetched, not {url.scheme or 'a relative URL'}"
        refused = self._refusal(url.raw_host or "", url.port or 0)
        return None if refused is None else str(refused)

    async def _fill(self, answer: Answer, response: ClientResponse, most: int | None) -> None:
        """Read the body of a 2xx answer; of the others only what frees the connection."""
        length = response.headers.get(hdrs.CONTENT_LENGTH)
        size = int(length) if length is not None and length.isdecimal() else 0
        if 200 <= answer.code < 300:
            limit = self.settings.max_size
            encoding = response.headers.get(hdrs.CONTENT_ENCODING)
            if most is not None:
                answer.body = await start_of(response.content, encoding, most)
            elif size > limit:
                raise TooLarge(limit)
            else:
                answer.body = await read(response.content, encoding, limit)
        elif may_pause(answer):
            response.release()  # its connection serves again if the body has come as well
        elif answer.code >= 300 and size <= _DRAINED:
            await _drain(response)


def _is_encoded(url: str) -> bool:
    """Whether a URL can be sent as it is. Stored ones can: they are then neither changed on the
    way, nor looked at letter by letter.

    >>> _is_encoded("http://a.example/caf%C3%A9?q=1"), _is_encoded("http://a.example/a b")
    (True, False)
    """
    return url.isascii() and url.isprintable() and " " not in url and "#" not in url


async def _drain(response: ClientResponse) -> None:
    """Read the rest of a small error page; what is wrong with it does not matter."""
    try:
        await read(response.content, None, _DRAINED)
    except Exception:
        response.close()


def _answer(url: str, response: ClientResponse, answered_at: float) -> Answer:
    headers = response.headers
    content_type = _header(headers, hdrs.CONTENT_TYPE) or ""
    return Answer(
        url,
        Status.OK,
        answered_at,
        code=response.status,
        content_type=content_type,
        charset=charset(content_type),
        etag=_header(headers, hdrs.ETAG),
        last_modified=_header(headers, hdrs.LAST_MODIFIED),
        location=_place(headers),
        retry_after=_header(headers, hdrs.RETRY_AFTER),
    )


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value; None if absent or not text (aiohttp lets stray bytes through)."""
    value = headers.get(name)
    if value is None or value.isascii():
        return value
    return None if any("\ud800" <= c <= "\udfff" for c in value) else value


def _place(headers: Mapping[str, str]) -> str | None:
    """Where a redirect leads; bytes that are no text are escaped, as browsers do."""
    value = headers.get(hdrs.LOCATION)
    if value is None or value.isascii():
        return value
    return quote(value.encode("utf-8", "surrogateescape"), safe=_ASCII)


@lru_cache(maxsize=1024)
def charset(content_type: str) -> str | None:
    """The charset named by a Content-Type, in lower case.

    >>> charset('text/html; Charset="ISO-8859-1"'), charset("text/html")
    ('iso-8859-1', None)
    """
    _, found, rest = content_type.lower().partition("charset=")
    return rest.partition(";")[0].strip(" \t\"'") or None if found else None


class _Lost(aiohttp.ClientError):
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
        except OSError as error:
            if isinstance(error, TimeoutError | Refused):
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
            connector=aiohttp.TCPConnector(
                resolver=resolver,
                limit=self.settings.concurrency,
                ttl_dns_cache=_DNS_TTL_S,
                dns_cache_max_size=_DNS_NAMES,
                ssl=self._ssl,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self.settings.timeout.total_seconds()),
            headers={"User-Agent": user_agent(self.settings.contact), "Accept-Encoding": ACCEPTED},
            auto_decompress=False,
            max_line_size=_LINE,
            max_field_size=_LINE,
            response_class=_Response,
            middlewares=(_once,),
        )


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> ClientResponse:
    """Send a request once: aiohttp would repeat it at once when the connection breaks, and the
    repeat would reach the host before its next turn."""
    try:
        return await send(request)
    except aiohttp.ServerDisconnectedError as error:
        raise _Lost("the server closed the connection without an answer") from error
    except aiohttp.ClientOSError as error:
        if isinstance(error, aiohttp.ClientConnectorError):
            raise  # it never got as far as sending
        raise _Lost(f"the connection broke: {error.strerror or error}") from error


def user_agent(contact: str) -> str:
    """The honest name under which we knock.

    >>> user_agent("ops@example.org").split()[1]
    '(+ops@example.org)'
    """
    shown = " ".join(contact.split())
    return f"{AGENT}/{VERSION} (+{shown})" if shown else f"{AGENT}/{VERSION}"
