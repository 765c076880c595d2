"""The default engine: one GET over HTTP/1.1 by aiohttp, bounded in size, time and address."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import lru_cache
from ssl import SSLContext
from typing import Protocol
from urllib.parse import quote

from aiohttp import ClientHttpProxyError, ClientResponse
from aiohttp.abc import AbstractResolver
from aiohttp.hdrs import (
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    ETAG,
    LAST_MODIFIED,
    LOCATION,
    RETRY_AFTER,
    SET_COOKIE,
)
from yarl import URL

from salticus.clock import Clock
from salticus.config import Fetch
from salticus.fetch.base import Answer
from salticus.fetch.codecs import Decoder, TooLarge, decoder
from salticus.fetch.faults import status_of, words_for
from salticus.fetch.hosts import may_pause
from salticus.fetch.identity import Identities, Identity
from salticus.fetch.sessions import Sessions
from salticus.types import Status

_CHUNKS = 1000  # held apart before they are joined: a byte in each would cost forty times its size

_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_DRAINED = 65_536  # bytes of an error page that are read so that its connection can serve again


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
        """One GET; redirects are not followed. With `most`, a longer body is cut there."""
        identity: Identity | None = None
        try:
            parsed = URL(url, encoded=_is_encoded(url))
            if (fault := self._fault(parsed)) is not None:
                return Answer(url, Status.UNSAFE, self.clock.wall(), fault=fault)
            if self.identities is not None:
                identity = self.identities.at(parsed.host_port_subcomponent or "")
            response = await self._send(parsed, headers, identity)
        except Exception as error:
            return self._failed(url, error)
        answer = _answer(url, response, self.clock.wall())
        try:
            if identity is not None and identity.cookies is not None:
                identity.cookies.learn(response.headers.getall(SET_COOKIE, ()), parsed)
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

    def _failed(self, url: str, error: Exception) -> Answer:
        code = error.status if isinstance(error, ClientHttpProxyError) else 0
        fault = words_for(error)
        return Answer(url, status_of(error), self.clock.wall(), code=code, fault=fault)

    async def _fill(self, answer: Answer, response: ClientResponse, most: int | None) -> None:
        """Read the body of a 2xx answer; of the others only what frees the connection."""
        length = response.headers.get(CONTENT_LENGTH)
        size = int(length) if length is not None and length.isdecimal() else 0
        if 200 <= answer.code < 300:
            limit = self.settings.max_size
            encoding = response.headers.get(CONTENT_ENCODING)
            if most is not None:
                answer.body = await start_of(response.content, encoding, most)
                return
            if size > limit:
                raise TooLarge(limit)
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
        location=_place(headers),
        retry_after=_header(headers, RETRY_AFTER),
    )


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value; None if absent or not text (aiohttp lets stray bytes through)."""
    value = headers.get(name)
    if value is None or value.isascii():
        return value
    return None if any("\ud800" <= c <= "\udfff" for c in value) else value


def _place(headers: Mapping[str, str]) -> str | None:
    """Where a redirect leads; bytes that are no text are escaped, as browsers do."""
    value = headers.get(LOCATION)
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


class Stream(Protocol):
    """What a body is read from (aiohttp's StreamReader is one)."""

    async def readany(self) -> bytes: ...

    def at_eof(self) -> bool: ...


async def read(stream: Stream, encoding: str | None, limit: int) -> bytes:
    """The whole body, decompressed; TooLarge or Undecodable as soon as that is certain.

    Law: never holds more than `limit` bytes and one piece, neither on the wire nor decompressed.
    """
    if encoding is not None and (unpack := decoder(encoding, limit)) is not None:
        return await _unpacked(stream, unpack, limit)
    chunks: list[bytes] = []
    size = 0
    while size <= limit:
        chunks.append(await stream.readany())
        size += len(chunks[-1])
        if stream.at_eof() and size <= limit:
            return b"".join(chunks)
        if len(chunks) == _CHUNKS:
            chunks = [b"".join(chunks)]
    raise TooLarge(limit, *chunks)


async def start_of(stream: Stream, encoding: str | None, limit: int) -> bytes:
    """The body, or as much of it as fits."""
    try:
        return await read(stream, encoding, limit)
    except TooLarge as error:
        return error.start


async def _unpacked(stream: Stream, unpack: Decoder, limit: int) -> bytes:
    taken = 0
    while chunk := await stream.readany():
        taken += len(chunk)
        if taken > limit:
            raise TooLarge(limit, unpack.body)
        unpack.feed(chunk)
    return unpack.finish()
