"""Reading a body within its limit, compressed or not, whatever the server sends."""

from __future__ import annotations

from typing import Protocol

from salticus.fetch.codecs import Decoder, TooLarge, decoder

_CHUNKS = 1000  # held apart before they are joined: a byte in each would cost forty times its size


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
