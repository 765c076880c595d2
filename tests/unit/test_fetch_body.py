"""Bodies within their limit."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache, partial

import brotli
import pytest
import zstandard
from effort import within

from salticus.fetch.codecs import Inflater, TooLarge, Undecodable, read, start_of

gzipped = partial(gzip.compress, mtime=0)  # the names of tests hold these bytes
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
        ("gzip", gzipped(TEXT)),
        (" X-GZIP ", gzipped(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("gzip", gzipped(TEXT[:99]) + gzipped(TEXT[99:])),
        ("gzip", gzipped(TEXT) + b"\0\0 rubbish"),
        ("br", brotli.compress(TEXT)),
        (" BR", brotli.compress(TEXT, quality=1)),
        ("zstd", zstandard.compress(TEXT)),
        ("zstd", zstandard.compress(TEXT[:99]) + zstandard.compress(TEXT[99:])),
        ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)),
    ],
)
def test_round_trip(encoding: str | None, packed: bytes) -> None:
    assert body(packed, encoding=encoding) == TEXT
    assert body(*(packed[i : i + 7] for i in range(0, len(packed), 7)), encoding=encoding) == TEXT


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate", "br", "zstd"])
def test_an_empty_body_is_empty(encoding: str | None) -> None:
    assert body(encoding=encoding) == b""


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", TEXT),
        ("deflate", b"\x78\x9cnonsense"),
        ("gzip", gzipped(TEXT)[:-8]),
        ("gzip", gzipped(TEXT)[:-4] + b"\0\0\0\0"),
        ("deflate", zlib.compress(TEXT)[:-1]),
        ("br", TEXT),
        ("br", brotli.compress(TEXT)[:-1]),
        ("br", brotli.compress(TEXT) + b"rubbish"),
        ("zstd", TEXT),
        ("zstd", zstandard.compress(TEXT)[:-1]),
        ("zstd", zstandard.compress(TEXT)[:5]),
        ("zstd", zstandard.compress(TEXT) + b"rubbish"),
    ],
)
def test_what_cannot_be_decoded(encoding: str, packed: bytes) -> None:
    with pytest.raises(Undecodable):
        body(packed, encoding=encoding)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br, gzip", "compress", "lzma", "\udcff"])
def test_encodings_that_were_not_asked_for_are_named(encoding: str) -> None:
    with pytest.raises(Undecodable, match="which was not asked for") as caught:
        body(gzipped(TEXT), encoding=encoding)
    assert repr(encoding) in str(caught.value)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        (None, TEXT),
        ("gzip", gzipped(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("br", brotli.compress(TEXT)),
        ("zstd", zstandard.compress(TEXT)),
    ],
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
    padding = gzipped(b"") * 50
    with pytest.raises(TooLarge):
        body(padding, encoding="gzip", limit=len(padding) - 1)


def zstd_of_many_blocks() -> bytes:
    """Each block is four bytes on the wire, and 128 KiB when it is read."""
    block = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd" + b"\x00\x58" + block * 100_000


def peak_of_refusal(stream: Chunks, encoding: str) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            asyncio.run(read(stream, encoding, 1_000_000))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda text: gzipped(text, 1),
    "deflate": lambda text: zlib.compress(text, 1),
    "br": lambda text: brotli.compress(text, quality=5),
    "zstd": zstandard.compress,
}


@cache
def bomb(encoding: str) -> bytes:
    return BOMBS[encoding](bytes(50_000_000))


@pytest.mark.parametrize("encoding", [*BOMBS, "zstd of many blocks"])
def test_a_bomb_is_stopped_early(encoding: str) -> None:
    stream = Chunks(bomb(encoding) if encoding in BOMBS else zstd_of_many_blocks())
    with within(25):
        peak = peak_of_refusal(stream, encoding.split()[0])
    assert peak < 6_000_000, f"{peak:,} bytes were held for a limit of a million"


def test_a_window_that_takes_too_much_memory_is_refused() -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    with pytest.raises(Undecodable, match="memory"):
        body(packer.compress(TEXT) + packer.flush(), encoding="zstd")


@pytest.mark.parametrize("encoding", [None, *BOMBS])
def test_the_start_of_a_body_that_is_too_large(encoding: str | None) -> None:
    packed = bytes(50_000_000) if encoding is None else bomb(encoding)
    found = asyncio.run(start_of(Chunks(packed), encoding, 100_000))
    assert found == b"" or found == bytes(100_000), "what was read so far, never more"
    assert asyncio.run(start_of(Chunks(TEXT[:9], TEXT[9:]), None, 100)) == TEXT[:100]
    assert asyncio.run(start_of(Chunks(TEXT), None, 10**6)) == TEXT


def test_a_stream_of_empty_members_is_refused() -> None:
    with pytest.raises(Undecodable, match="members"):
        body(gzipped(b"") * 10_000, encoding="gzip")
    with pytest.raises(Undecodable, match="frames"):
        body(zstandard.compress(b"") * 10_000, encoding="zstd")


@pytest.mark.parametrize("size", range((1 << 18) - 2, (1 << 18) + 300, 19))
def test_output_that_zlib_holds_back_is_fetched(size: int) -> None:
    inflater = Inflater(zlib.MAX_WBITS, limit=1 << 20)
    inflater.feed(raw_deflate(bytes(size)))
    assert inflater.finish() == bytes(size)
