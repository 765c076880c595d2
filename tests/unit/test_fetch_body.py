"""Bodies within their limit."""

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from salticus.fetch.body import Inflater, TooLarge, Undecodable, read

TEXT = b"all the news that fits " * 500


class Chunks:
    """A stream of given chunks."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = [chunk for chunk in chunks if chunk]

    async def readany(self) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""

    def at_eof(self) -> bool:
        return not self.chunks


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def body(*chunks: bytes, encoding: str | None = None, limit: int = 10**6) -> bytes:
    return asyncio.run(read(Chunks(*chunks), encoding, limit))


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        (None, TEXT),
        ("identity", TEXT),
        ("", TEXT),
        ("gzip", gzip.compress(TEXT)),
        (" X-GZIP ", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("gzip", gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:])),
        ("gzip", gzip.compress(TEXT) + b"\0\0 rubbish"),
    ],
)
def test_round_trip(encoding: str | None, packed: bytes) -> None:
    assert body(packed, encoding=encoding) == TEXT
    assert body(*(packed[i : i + 7] for i in range(0, len(packed), 7)), encoding=encoding) == TEXT


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate"])
def test_an_empty_body_is_empty(encoding: str | None) -> None:
    assert body(encoding=encoding) == b""


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", TEXT),
        ("deflate", b"\x78\x9cnonsense"),
        ("gzip", gzip.compress(TEXT)[:-8]),
        ("gzip", gzip.compress(TEXT)[:-4] + b"\0\0\0\0"),
        ("deflate", zlib.compress(TEXT)[:-1]),
        ("br", TEXT),
        ("gzip, gzip", gzip.compress(gzip.compress(TEXT))),
    ],
)
def test_what_cannot_be_decoded(encoding: str, packed: bytes) -> None:
    with pytest.raises(Undecodable):
        body(packed, encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [(None, TEXT), ("gzip", gzip.compress(TEXT)), ("deflate", zlib.compress(TEXT))],
)
def test_the_limit_is_exact(encoding: str | None, packed: bytes) -> None:
    halves = packed[: len(packed) // 2], packed[len(packed) // 2 :]
    assert body(packed, encoding=encoding, limit=len(TEXT)) == TEXT
    assert body(*halves, encoding=encoding, limit=len(TEXT)) == TEXT
    with pytest.raises(TooLarge, match="larger than"):
        body(packed, encoding=encoding, limit=len(TEXT) - 1)
    with pytest.raises(TooLarge):
        body(*halves, encoding=encoding, limit=len(TEXT) - 1)


def test_the_limit_holds_on_the_wire() -> None:
    padding = gzip.compress(b"") * 50
    with pytest.raises(TooLarge):
        body(padding, encoding="gzip", limit=len(padding) - 1)


def test_a_bomb_is_stopped_early() -> None:
    bomb = gzip.compress(bytes(50_000_000), 1)
    stream = Chunks(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            asyncio.run(read(stream, "gzip", 1_000_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000, f"{peak:,} bytes were held for a limit of a million"


def test_a_stream_of_empty_members_is_refused() -> None:
    with pytest.raises(Undecodable, match="members"):
        body(gzip.compress(b"") * 10_000, encoding="gzip")


@pytest.mark.parametrize("size", range((1 << 18) - 2, (1 << 18) + 300, 19))
def test_output_that_zlib_holds_back_is_fetched(size: int) -> None:
    inflater = Inflater(zlib.MAX_WBITS, limit=1 << 20)
    inflater.feed(raw_deflate(bytes(size)))
    assert inflater.finish() == bytes(size)
