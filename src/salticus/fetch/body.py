"""Reading a body within its limit, compressed or not, whatever the server sends."""

from __future__ import annotations

import zlib
from typing import Protocol

_PIECE = 1 << 18  # bytes decompressed at a time: what a bomb can cost beyond the limit
_CHUNKS = 1000  # held apart before they are joined: a byte in each would cost forty times its size
_MEMBERS = 100  # of one gzip stream: a thousand empty ones in a packet would cost a second


class TooLarge(Exception):
    """The body exceeds its limit, on the wire or decompressed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than {limit:,} bytes")


class Undecodable(Exception):
    """The body is not in the encoding that the server named, or in one we did not ask for."""


class Stream(Protocol):
    """What a body is read from (aiohttp's StreamReader is one)."""

    async def readany(self) -> bytes: ...

    def at_eof(self) -> bool: ...


async def read(stream: Stream, encoding: str | None, limit: int) -> bytes:
    """The whole body, decompressed; TooLarge or Undecodable as soon as that is certain.

    Law: never holds more than `limit` bytes and one piece, neither on the wire nor decompressed.
    """
    if encoding is not None and (wbits := _wbits(encoding)) is not None:
        return await _inflate(stream, Inflater(wbits, limit), limit)
    chunks: list[bytes] = []
    size = 0
    while size <= limit:
        chunks.append(await stream.readany())
        size += len(chunks[-1])
        if stream.at_eof() and size <= limit:
            return b"".join(chunks)
        if len(chunks) == _CHUNKS:
            chunks = [b"".join(chunks)]
    raise TooLarge(limit)


async def _inflate(stream: Stream, inflater: Inflater, limit: int) -> bytes:
    taken = 0
    while chunk := await stream.readany():
        taken += len(chunk)
        if taken > limit:
            raise TooLarge(limit)
        inflater.feed(chunk)
    return inflater.finish()


def _wbits(encoding: str) -> int | None:
    """zlib's parameter for a Content-Encoding; None if the body is not compressed."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return 16 + zlib.MAX_WBITS
    if name == "deflate":
        return zlib.MAX_WBITS
    raise Undecodable(f"the body is encoded as {name[:40]!r}, which was not asked for")


class Inflater:
    """Decompresses piece by piece; gzip of several members, deflate with or without its header.

    >>> inflater = Inflater(zlib.MAX_WBITS, limit=100)
    >>> inflater.feed(zlib.compress(b"abc"))
    >>> inflater.finish()
    b'abc'
    """

    def __init__(self, wbits: int, limit: int) -> None:
        self.wbits = wbits
        self.limit = limit
        self._zlib = zlib.decompressobj(wbits)
        self._body = bytearray()
        self._members = 1
        self._fed = False

    def feed(self, data: bytes) -> None:
        """Take more of the wire; TooLarge when the result is, Undecodable when it cannot be."""
        if not self._fed and data and self.wbits == zlib.MAX_WBITS and data[0] & 0x0F != 8:
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # many servers mean raw deflate
        self._fed = self._fed or bool(data)
        full = False
        while data or full:
            piece = self._piece(data)
            full = len(piece) == _PIECE  # zlib may hold back output even when all input is taken
            data = self._zlib.unconsumed_tail or self._next_member()

    def _piece(self, data: bytes) -> bytes:
        try:
            piece = self._zlib.decompress(data, _PIECE)
        except zlib.error as error:
            raise Undecodable(f"the body cannot be decompressed: {error}") from None
        self._body += piece
        if len(self._body) > self.limit:
            raise TooLarge(self.limit)
        return piece

    def finish(self) -> bytes:
        """The body; Undecodable if the stream was cut short."""
        if self._fed and not self._zlib.eof:
            raise Undecodable("the compressed body ends too early")
        return bytes(self._body)

    def _next_member(self) -> bytes:
        """What follows the end of a member, if it is another one; rubbish at the end is ignored."""
        rest = self._zlib.unused_data
        if rest[:2] not in (b"\x1f", b"\x1f\x8b") or self.wbits <= zlib.MAX_WBITS:
            return b""
        self._members += 1
        if self._members > _MEMBERS:
            raise Undecodable(f"the body has more than {_MEMBERS} gzip members")
        self._zlib = zlib.decompressobj(self.wbits)
        return rest
