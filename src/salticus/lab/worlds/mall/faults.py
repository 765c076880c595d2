"""What goes wrong in a mall, on demand and repeatably."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from hashlib import blake2b
from typing import Literal, NoReturn

import brotli
import msgspec
from aiohttp import web

from salticus.errors import ConfigError

Kind = Literal[
    "slow", "hang", "reset", "truncated", "huge", "bomb", "brotli-bomb", "redirect", "moved",
    "401", "403", "404", "410", "429", "500", "503",
    # the zoo's
    "half", "latin", "utf-16", "invalid", "twins", "broken-json", "enormous-json", "deep-json",
    "deep", "skewed", "sessions", "wall", "captcha", "soft-404", "binary", "calendar",
    "huge-robots", "huge-sitemap", "sitemap-cycle", "xml-bomb", "drip", "flood", "hang-status",
    "hang-headers", "hang-body", "injection", "garbage", "chunks",
]  # fmt: skip
Aim = Literal["offer", "shop", "loop", "private", "inside", "metadata", "home"]
ADDRESSES = {
    "loop": "/loop/a",
    "home": "/",
    "inside": "http://10.0.0.1/admin",
    "metadata": "http://169.254.169.254/latest/meta-data/",
}
"""Where redirects lead, if not to an offer."""

HTML = {"Content-Type": "text/html; charset=utf-8"}

# where a fault befalls requests if nothing else is said; all others befall offers
PATHS = {
    "calendar": "/calendar/*",
    "huge-robots": "/robots.txt",
    "huge-sitemap": "/sitemap*.xml",
    "sitemap-cycle": "/sitemap*.xml",
    "xml-bomb": "/sitemap*.xml",
}

_PIECES = 20  # in which a slow body arrives
_CHUNK = 1 << 16
_ZEROS = bytes(1 << 20)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way of going wrong for a `share` of the requests that match `hosts` and `paths`.

    `hosts` fits ``127.0.0.1:port`` or the shop's number. Kinds: `slow` (the body takes `seconds`),
    `hang` (no answer until the client leaves), `reset` (cut by a reset in mid-body), `truncated`
    (closed in mid-body), `huge`, `bomb` and `brotli-bomb` (`size` bytes, the bombs only when
    inflated), `redirect` and `moved` (for now and for good; `to` another offer, another shop's, a
    loop, a path that robots.txt forbids, the home page, or an address off limits), a beast of the
    `zoo`, or a status. A 429, and a 503 if `retry` is given, sends Retry-After and the shop is then
    closed so long.
    """

    kind: Kind
    share: float = 0.01
    hosts: str = "*"
    paths: str = ""  # where the beast lives; offers if it may live anywhere
    retry: int | None = None
    seconds: float = 2.0
    size: int | None = None
    to: Aim = "offer"


def parse_fault(text: str) -> Fault:
    """A fault written as ``kind[:share][:name=value]…``.

    >>> parse_fault("429:0.02:retry=2") == Fault("429", share=0.02, retry=2)
    True
    """
    kind, *rest = text.split(":")
    named = dict(part.partition("=")[::2] for part in rest if "=" in part)
    bare = [part for part in rest if "=" not in part]
    raw = {"kind": kind, **({"share": bare[0]} if bare else {}), **named}
    try:
        if len(bare) > 1:
            raise ValueError(f"{bare[1]!r} has no name")
        fault = msgspec.convert(raw, Fault, strict=False)
    except ValueError as error:  # msgspec's own error is one
        raise ConfigError(f"fault {text!r}: {error}; write kind:share:name=value") from error
    if not 0 <= fault.share <= 1:
        raise ConfigError(f"fault {text!r}: a share lies between 0 and 1")
    return fault


class Dice:
    """Decides which fault befalls which request to one shop.

    A coin is a hash of (seed, fault, shop, path, how many times the path was asked for), so that
    neither the order of other requests nor their number changes it.
    """

    def __init__(self, faults: Sequence[Fault], *, seed: int, host: str, shop: int) -> None:
        self._faults = [
            (fault, re.compile(translate(fault.paths or PATHS.get(fault.kind, "/o/*"))))
            for fault in faults
            if fnmatchcase(host, fault.hosts) or fnmatchcase(str(shop), fault.hosts)
        ]
        self._salt = f"{seed}:{shop}"
        self._asked: dict[str, int] = {}

    def cast(self, path: str) -> Fault | None:
        """The fault of the next request to `path`; the first that hits."""
        if not self._faults:
            return None
        self._asked[path] = asked = self._asked.get(path, 0) + 1
        for order, (fault, pattern) in enumerate(self._faults):
            key = f"{self._salt}:{order}:{path}:{asked}"
            if pattern.match(path) and coin(key) < fault.share:
                return fault
        return None


def coin(key: str) -> float:
    """A number in [0, 1) that depends on the key alone."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) / 2**64


async def hang() -> NoReturn:
    """Never return; the client's leaving cancels it."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def trickle(
    request: web.BaseRequest, stream: web.StreamResponse, body: bytes, seconds: float
) -> None:
    """Send the body in pieces over `seconds`."""
    await stream.prepare(request)
    size = max(1, -(-len(body) // _PIECES))
    for start in range(0, len(body), size):
        await stream.write(body[start : start + size])
        await asyncio.sleep(seconds / _PIECES)


async def cut(
    request: web.BaseRequest, stream: web.StreamResponse, body: bytes, *, reset: bool
) -> None:
    """Promise the whole body, send half of it, and end the connection."""
    stream.content_length = len(body)
    await stream.prepare(request)
    await stream.write(body[: len(body) // 2])
    transport = request.transport
    if transport is not None and reset:
        linger = struct.pack("ii", 1, 0)  # closing without lingering sends a reset
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
    elif transport is not None:
        transport.close()


async def pour(request: web.BaseRequest, fault: Fault) -> web.StreamResponse:
    """Send more than anybody wants, as fast as the client takes it."""
    make, size, headers = FLOODS[fault.kind]
    stream = web.StreamResponse(headers={**HTML, **headers})
    await stream.prepare(request)
    for chunk in make(fault.size or size):
        await stream.write(chunk)
        await asyncio.sleep(0)  # a fast client must not starve the other shops
    return stream


def junk(size: int) -> Iterator[bytes]:
    """A page of `size` bytes that says nothing."""
    line = b"<p>There is always more of this page to come.</p>\n"
    chunk = line * (_CHUNK // len(line))
    for start in range(0, size, len(chunk)):
        yield chunk[: size - start]


def bomb(size: int) -> Iterator[bytes]:
    """A valid gzip stream, a thousandth of the `size` bytes that it inflates to.

    >>> import gzip
    >>> packed = b"".join(bomb(3_000_000))
    >>> len(packed) < 10_000, gzip.decompress(packed) == bytes(3_000_000)
    (True, True)
    """
    yield b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    check = 0
    block = _deflated(_ZEROS)  # packed once: deflating each megabyte anew would take 10 ms
    for start in range(0, size, len(_ZEROS)):
        part = _ZEROS[: size - start]
        check = zlib.crc32(part, check)
        yield block if len(part) == len(_ZEROS) else _deflated(part)
    yield b"\x03\x00" + struct.pack("<II", check, size % 2**32)


def _deflated(part: bytes) -> bytes:
    """A piece of a deflate stream that stands for itself wherever it is put."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)


def brotli_bomb(size: int) -> Iterator[bytes]:
    """A valid brotli stream, a hundred-thousandth of the `size` bytes that it inflates to.

    >>> len(brotli.decompress(b"".join(brotli_bomb(10_000_000))))
    10000000
    """
    packer = brotli.Compressor(quality=1)
    for start in range(0, size, len(_ZEROS)):
        yield packer.process(_ZEROS[: size - start])
    yield packer.finish()


FLOODS: Mapping[str, tuple[Callable[[int], Iterator[bytes]], int, Mapping[str, str]]] = {
    "huge": (junk, 100_000_000, {}),
    "bomb": (bomb, 1_000_000_000, {"Content-Encoding": "gzip"}),
    "brotli-bomb": (brotli_bomb, 1_000_000_000, {"Content-Encoding": "br"}),
}
"""What pours without end: its chunks for a size in bytes, the usual size, further headers."""
