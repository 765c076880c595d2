"""The default engine: one GET over HTTP/1.1 by aiohttp, bounded in size, time and address."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

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
    ThreadedResolver,
)
from aiohttp.abc import AbstractResolver
from aiohttp.hdrs import (
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    ETAG,
    LAST_MODIFIED,
    LOCATION,
    RETRY_AFTER,
)
from yarl import URL

from salticus.clock import Clock
from salticus.config import Fetch
from salticus.fetch import AGENT
from salticus.fetch.address import Limits, SafeResolver
from salticus.fetch.base import Answer
from salticus.fetch.body import TooLarge, read
from salticus.fetch.faults import status_of, words_for
from salticus.types import Status
from salticus.version import VERSION

_DNS_TTL_S, _DNS_NAMES = 300, 65_536
_DRAINED = 65_536  # bytes of an error page that are read so that its connection can serve again


class _Lost(ClientError):
    """The connection broke before an answer came; see `_once`."""


class HttpEngine:
    """Makes one exchange over HTTP, and turns whatever goes wrong into an Answer.

    Bodies are kept of 2xx answers only. Neither cookies nor proxies from the environment are used.
    The time limit covers the whole exchange, name resolution and body included.
    """

    def __init__(
        self, settings: Fetch, clock: Clock, *, resolver: AbstractResolver | None = None
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.resolver = resolver
        self._limits = Limits(settings.allow_private)
        self._refusal = lru_cache(maxsize=65_536)(self._limits.refusal)
        self._session: ClientSession | None = None

    async def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """One GET; redirects are not followed."""
        session = self._session or self._open()
        try:
            parsed = URL(url, encoded=_is_encoded(url))
            if (fault := self._fault(parsed)) is not None:
                return Answer(url, Status.UNSAFE, self.clock.wall(), fault=fault)
            response = await session.get(parsed, headers=headers, allow_redirects=False)
        except Exception as error:
            return Answer(url, status_of(error), self.clock.wall(), fault=words_for(error))
        answer = _answer(url, response, self.clock.wall())
        try:
            await self._fill(answer, response)
        except Exception as error:
            answer.status, answer.fault = status_of(error, Status.BROKEN), words_for(error)
        finally:
            if not response.closed:
                response.close()
        return answer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> ClientSession:
        limit = self.settings.concurrency
        resolver = SafeResolver(self.resolver or ThreadedResolver(), self._limits)
        self._session = ClientSession(
            connector=TCPConnector(
                resolver=resolver,
                limit=limit,
                ttl_dns_cache=_DNS_TTL_S,
                dns_cache_max_size=_DNS_NAMES,
            ),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=self.settings.timeout.total_seconds()),
            headers={
                "User-Agent": user_agent(self.settings.contact),
                "Accept-Encoding": "gzip, deflate",
            },
            auto_decompress=False,
            middlewares=(_once,),
        )
        return self._session

    def _fault(self, url: URL) -> str | None:
        """Why this URL may not be asked at all."""
        if url.scheme not in ("http", "https"):
            return f"only http and https are fetched, not {url.scheme or 'a relative URL'}"
        refused = self._refusal(url.raw_host or "", url.port or 0)
        return None if refused is None else str(refused)

    async def _fill(self, answer: Answer, response: ClientResponse) -> None:
        """Read the body of a 2xx answer; of the others only what frees the connection."""
        length = response.headers.get(CONTENT_LENGTH)
        size = int(length) if length is not None and length.isdecimal() else 0
        if 200 <= answer.code < 300:
            limit = self.settings.max_size
            if size > limit:
                raise TooLarge(limit)
            encoding = response.headers.get(CONTENT_ENCODING)
            answer.body = await read(response.content, encoding, limit)
        elif answer.code >= 300 and size <= _DRAINED:
            await _drain(response)


def _is_encoded(url: str) -> bool:
    """Whether a URL can be sent as it is. Stored ones can: they are then neither changed on the
    way, nor looked at letter by letter.

    >>> _is_encoded("http://a.example/caf%C3%A9?q=1"), _is_encoded("http://a.example/a b")
    (True, False)
    """
    return url.isascii() and url.isprintable() and " " not in url and "#" not in url


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


async def _drain(response: ClientResponse) -> None:
    """Read the rest of a small error page; what is wrong with it does not matter."""
    try:
        await read(response.content, None, _DRAINED)
    except Exception:
        response.close()


def _answer(url: str, response: ClientResponse, answered_at: float) -> Answer:
    headers = response.headers
    content_type = _header(headers, CONTENT_TYPE) or ""
    return Answer(
        url,
        Status.OK,
        answered_at,
        code=response.status,
        content_type=content_type,
        charset=charset(content_type),
        etag=_header(headers, ETAG),
        last_modified=_header(headers, LAST_MODIFIED),
        location=_header(headers, LOCATION),
        retry_after=_header(headers, RETRY_AFTER),
    )


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value; None if absent or not text (aiohttp lets stray bytes through)."""
    value = headers.get(name)
    if value is None or value.isascii():
        return value
    return None if any("\ud800" <= c <= "\udfff" for c in value) else value


@lru_cache(maxsize=1024)
def charset(content_type: str) -> str | None:
    """The charset named by a Content-Type, in lower case.

    >>> charset('text/html; Charset="ISO-8859-1"'), charset("text/html")
    ('iso-8859-1', None)
    """
    _, found, rest = content_type.lower().partition("charset=")
    return rest.partition(";")[0].strip(" \t\"'") or None if found else None


def user_agent(contact: str) -> str:
    """The honest name under which we knock.

    >>> user_agent("ops@example.org").split()[1]
    '(+ops@example.org)'
    """
    shown = " ".join(contact.split())
    return f"{AGENT}/{VERSION} (+{shown})" if shown else f"{AGENT}/{VERSION}"
