"""Reading bodies, decompressed piece by piece: gzip, deflate, brotli and zstd.

Each decoder takes what comes from the wire and tells when the result is too large or cannot be.
Law: neither on the wire nor decompressed is more held than the limit and one piece, however small
the bytes on the wire were.
"""

from __future__ import annotations

import zlib
from typing import Any, Protocol

ACCEPTED = "gzip, deflate, br, zstd"

_CHUNKS = 1000  # held apart before they are joined: a byte in each would cost forty times its size
_PIECE = 1 << 18  # bytes decompressed at a time: what a bomb can cost beyond the limit
_MEMBERS = 100  # of one stream: a thousand empty ones in a packet would cost a second
_BITE = 64  # bytes of zstd at a time, whose blocks of 4 bytes become 128 KiB: 2 MiB at most
_WINDOW = 1 << 23  # bytes that zstd may look back; RFC 9659 grants no more


class TooLarge(Exception):
    """The body exceeds its limit, on the wire or decompressed; `parts` begin it."""

    def __init__(self, limit: int, *parts: bytes | bytearray) -> None:
        super().__init__(f"the body is larger than {limit:,} bytes")
        self.limit = limit
        self.parts = parts

    @property
    def start(self) -> bytes:
        """As much of the body as fits."""
        return b"".join(self.parts)[: self.limit]


class Undecodable(Exception):
    """The body is not in the encoding that the server named, or in one we did not ask for."""


def decoder(encoding: str | None, limit: int) -> Decoder | None:
    """What undoes a Content-Encoding; None if the body is not compressed.

    >>> decoder("identity", 100) is None
    True
    """
    name = (encoding or "").strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return Inflater(16 + zlib.MAX_WBITS, limit)
    if name == "deflate":
        return Inflater(zlib.MAX_WBITS, limit)
    if name == "br":
        return Unbrotli(limit)
    if name == "zstd":
        return Unzstd(limit)
    raise Undecodable(f"the body is encoded as {name[:40]!r}, which was not asked for")


class Decoder:
    """Takes compressed bytes; TooLarge and Undecodable are raised as soon as they are certain.

    `body` is what was decompressed so far.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.body = bytearray()
        self._members = 1
        self._fed = False

    def feed(self, data: bytes) -> None:
        self._take(data)
        self._fed = self._fed or bool(data)

    def finish(self) -> bytes:
        """The body; Undecodable if the stream was cut short."""
        if self._fed and not self._ended():
            raise Undecodable("the compressed body ends too early")
        return bytes(self.body)

    def _take(self, data: bytes) -> None:
        raise NotImplementedError

    def _ended(self) -> bool:
        raise NotImplementedError

    def _add(self, piece: bytes) -> None:
        self.body += piece
        if len(self.body) > self.limit:
            raise TooLarge(self.limit, self.body)

    def _count_member(self, name: str) -> None:
        self._members += 1
        if self._members > _MEMBERS:
            raise Undecodable(f"the body has more than {_MEMBERS} {name}")


class Inflater(Decoder):
    """Decompresses gzip, of several members too, and deflate with or without its header.

    >>> inflater = Inflater(zlib.MAX_WBITS, limit=100)
    >>> inflater.feed(zlib.compress(b"abc"))
    >>> inflater.finish()
    b'abc'
    """

    def __init__(self, wbits: int, limit: int) -> None:
        super().__init__(limit)
        self.wbits = wbits
        self._zlib = zlib.decompressobj(wbits)

    def _take(self, data: bytes) -> None:
        if not self._fed and data and self.wbits == zlib.MAX_WBITS and data[0] & 0x0F != 8:
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # many servers mean raw deflate
        full = False
        while data or full:
            piece = self._piece(data)
            full = len(piece) == _PIECE  # zlib may hold back output even when all input is taken
            data = self._zlib.unconsumed_tail or self._next_member()

    def _ended(self) -> bool:
        return self._zlib.eof

    def _piece(self, data: bytes) -> bytes:
        try:
            piece = self._zlib.decompress(data, _PIECE)
        except zlib.error as error:
            raise Undecodable(f"the body cannot be decompressed: {error}") from None
        self._add(piece)
        return piece

    def _next_member(self) -> bytes:
        """What follows the end of a member, if it is another one; rubbish at the end is ignored."""
        rest = self._zlib.unused_data
        if rest[:2] not in (b"\x1f", b"\x1f\x8b") or self.wbits <= zlib.MAX_WBITS:
            return b""
        self._count_member("gzip members")
        self._zlib = zlib.decompressobj(self.wbits)
        return rest


class Unbrotli(Decoder):
    """Decompresses brotli, its output a piece at a time."""

    def __init__(self, limit: int) -> None:
        import brotli  # only where a server uses it

        super().__init__(limit)
        self._error: type[Exception] = brotli.error
        self._brotli: Any = brotli.Decompressor()

    def _take(self, data: bytes) -> None:
        piece = self._piece(data) if data else b""
        while piece or not self._brotli.can_accept_more_data():
            piece = self._piece(b"")  # it holds back output even when it could take more input

    def _ended(self) -> bool:
        return bool(self._brotli.is_finished())

    def _piece(self, data: bytes) -> bytes:
        try:
            piece: bytes = self._brotli.process(data, output_buffer_limit=_PIECE)
        except self._error:
            raise Undecodable("the body cannot be decompressed: it is not brotli") from None
        self._add(piece)
        return piece


class Unzstd(Decoder):
    """Decompresses zstd, whose library bounds no output, in bites whose output is bounded."""

    def __init__(self, limit: int) -> None:
        import zstandard  # only where a server uses it

        super().__init__(limit)
        self._error: type[Exception] = zstandard.ZstdError
        self._zstd = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        self._frame = self._zstd.decompressobj(write_size=1 << 14)

    def _take(self, data: bytes) -> None:
        for start in range(0, len(data), _BITE):
            bite = data[start : start + _BITE]
            while bite:
                bite = self._rest(bite)

    def _ended(self) -> bool:
        return self._frame.eof

    def _rest(self, bite: bytes) -> bytes:
        """Decompress a bite; what of it belongs to another frame."""
        if self._frame.eof:
            self._count_member("zstd frames")
            self._frame = self._zstd.decompressobj(write_size=1 << 14)
        try:
            piece = self._frame.decompress(bite)
        except self._error as error:
            raise Undecodable(f"the body cannot be decompressed: {error}") from None
        self._add(piece)
        return self._frame.unused_data if self._frame.eof else b""


class Stream(Protocol):
    """What a body is read from (aiohttp's StreamReader is one)."""

    async def readany(self) -> bytes: ...

    def at_eof(self) -> bool: ...


async def read(stream: Stream, encoding: str | None, limit: int) -> bytes:
    """The whole body, decompressed; TooLarge or Undecodable as soon as that is certain."""
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
