"""The zoo: pages and answers as bad as the web's worst, each by its name.

A beast spoils the right answer of a page (`SPOILT`), answers with something else altogether
(`INSTEAD`), or breaks the protocol (`RAW`). They are shown to a client on demand, see `faults`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cache
from hashlib import shake_256

import brotli
from aiohttp import web

HTML = {"Content-Type": "text/html; charset=utf-8"}
_XML = {"Content-Type": "application/xml"}
_JSON_LD = re.compile(rb'(<script type="application/ld\+json">)(.*?)(</script>)', re.DOTALL)
_STRAY = b"\xff\xfe\xc3(\xa0\x80"
_FAR = "Fri, 31 Dec 2199 23:59:59 GMT"
_LONG_AGO = "Thu, 01 Jan 1970 00:00:00 GMT"

Body = tuple[bytes, Mapping[str, str]]
Spoiler = Callable[[bytes], Body]


# ---------------------------------------------------------------- the right answer, spoilt


def _half(body: bytes) -> Body:
    return body[: len(body) // 4], HTML


def _latin(body: bytes) -> Body:
    text = body.decode("utf-8", "replace").replace("</h1>", " – Größe für Çağlar</h1>")
    return text.encode("cp1252", "replace"), HTML


def _utf16(body: bytes) -> Body:
    return body.decode("utf-8", "replace").encode("utf-16-le"), HTML


def _invalid(body: bytes) -> Body:
    spoilt = body.replace(b"<p", _STRAY + b"<p").replace(b'"name": "', b'"name": "' + _STRAY)
    return spoilt.replace(b"</title>", _STRAY + b"</title>"), HTML


def _twins(body: bytes) -> Body:
    twin = b'<div id="main" itemscope itemref="main main"><span id="main"></span></div>'
    return body.replace(b"<body>", b"<body>" + twin * 5000), HTML


def _broken_json(body: bytes) -> Body:
    return _JSON_LD.sub(lambda m: m[1] + m[2][: len(m[2]) // 2] + m[3], body), HTML


def _enormous_json(body: bytes) -> Body:
    junk = json.dumps([{"@type": "Thing", "name": f"filling {n}"} for n in range(100_000)])
    block = b'<script type="application/ld+json">' + junk.encode() + b"</script>"
    return body.replace(b"<link", block + b"<link", 1), HTML


def _deep_json(body: bytes) -> Body:
    deep = b'{"@graph":[' * 50_000
    block = b'<script type="application/ld+json">' + deep + b"</script>"
    return body.replace(b"<link", block + b"<link", 1), HTML


def _deep(body: bytes) -> Body:
    return body.replace(b"<main>", b"<div><b>" * 50_000 + b"<main>"), HTML


def _skewed(body: bytes) -> Body:
    dates = {"Date": _LONG_AGO, "Last-Modified": _FAR, "Expires": "yesterday", "Age": "-9"}
    return body, {**HTML, **dates}


def _sessions(body: bytes) -> Body:
    session = shake_256(body).hexdigest(16)
    links = "".join(
        f'<a href="/o/{n};jsessionid={session}?PHPSESSID={session}">{n}</a>' for n in range(300)
    )
    return body.replace(b"</main>", links.encode() + b"</main>"), HTML


SPOILT: Mapping[str, Spoiler] = {
    "half": _half,
    "latin": _latin,
    "utf-16": _utf16,
    "invalid": _invalid,
    "twins": _twins,
    "broken-json": _broken_json,
    "enormous-json": _enormous_json,
    "deep-json": _deep_json,
    "deep": _deep,
    "skewed": _skewed,
    "sessions": _sessions,
}


# ------------------------------------------------------------------- something else altogether


def _page(title: str, text: str) -> bytes:
    return (
        f"<!DOCTYPE html><html lang=en><head><title>{title}</title></head>"
        f"<body><h1>{title}</h1>{text}</body></html>"
    ).encode()


def _wall(path: str) -> Body:
    text = (
        "<div class='consent'><p>We and our 843 partners value your privacy. To read on, accept "
        "cookies or subscribe.</p><button>Accept all</button><button>Manage options</button></div>"
    )
    return _page("Before you continue", text), {**HTML, "Set-Cookie": "wall=1; Path=/"}


def _captcha(path: str) -> Body:
    text = (
        "<p>Checking if the site connection is secure. Please verify that you are a human.</p>"
        "<div class='g-recaptcha' data-sitekey='x'></div>"
    )
    return _page("Just a moment...", text), HTML


def _soft_404(path: str) -> Body:
    text = "<p>Sorry, the page you are looking for does not exist or has been removed.</p>"
    return _page("Page not found", text), HTML


def _binary(path: str) -> Body:
    return b"\x7fELF\x02\x01\x01\0" + shake_256(path.encode()).digest(200_000), HTML


def _calendar(path: str) -> Body:
    """Months without end, each linked to the next ones: ``/calendar/N``."""
    number = int(re.sub(r"\D", "", path)[-6:] or 0)
    links = (f'<a href="/calendar/{number + n}">{number + n}</a>' for n in range(1, 400))
    return _page("Calendar", "".join(links)), HTML


@cache
def _robots() -> bytes:
    rules = [f"Disallow: /private/{n}*a*b*c*d$\n" for n in range(300_000)]
    return ("User-agent: *\nDisallow: /private/\n" + "".join(rules)).encode()


def _huge_robots(path: str) -> Body:
    return _robots(), {"Content-Type": "text/plain"}


def _sitemap(items: Iterator[str], root: str = "urlset", head: str = "") -> Body:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    text = f'<?xml version="1.0"?>{head}<{root} xmlns="{space}">{"".join(items)}</{root}>'
    return text.encode(), _XML


def _huge_sitemap(path: str) -> Body:
    return _sitemap(f"<url><loc>/o/{n % 50}?</loc></url><!-- {n} -->\n" for n in range(250_000))


def _sitemap_cycle(path: str) -> Body:
    names = ("/sitemap.xml", "/sitemap-1.xml", "/sitemap-2.xml")
    return _sitemap((f"<sitemap><loc>{n}</loc></sitemap>" for n in names), "sitemapindex")


def _xml_bomb(path: str) -> Body:
    steps = (f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    entities = f'<!DOCTYPE urlset [<!ENTITY a0 "ha">{"".join(steps)}]>'
    return _sitemap(iter(("<url><loc>/&a11;</loc></url>",)), head=entities)


INSTEAD: Mapping[str, Callable[[str], Body]] = {
    "wall": _wall,
    "captcha": _captcha,
    "soft-404": _soft_404,
    "binary": _binary,
    "calendar": _calendar,
    "huge-robots": _huge_robots,
    "huge-sitemap": _huge_sitemap,
    "sitemap-cycle": _sitemap_cycle,
    "xml-bomb": _xml_bomb,
}

# where a beast lives if nothing else is said
PATHS = {
    "calendar": "/calendar/*",
    "huge-robots": "/robots.txt",
    "huge-sitemap": "/sitemap*.xml",
    "sitemap-cycle": "/sitemap*.xml",
    "xml-bomb": "/sitemap*.xml",
}


# ------------------------------------------------------------------------- against the protocol


def _drip() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n"
    while True:
        yield b"."


def _flood() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in range(20_000):
        yield b"X-%d: %d\r\n" % (number, number)


_RAW: Mapping[str, bytes | Callable[[], Iterator[bytes]]] = {
    "drip": _drip,
    "flood": _flood,
    "hang-status": b"HTTP/1.1 200 ",
    "hang-headers": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n",
    "hang-body": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n<p>",
    "injection": b"HTTP/1.1 302 Found\r\nLocation: /o/1\r\n Set-Cookie: a=\0\r\nX\xff\n: y\r\n\r\n",
    "garbage": b"\x16\x03\x01\x00\xa5 this is not the protocol you are looking for\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF1\r\nabc\r\n",
}
RAW = frozenset(_RAW)


async def raw(request: web.BaseRequest, kind: str) -> web.StreamResponse:
    """Write what is no proper answer, and wait for the client to leave."""
    what = _RAW[kind]
    async for piece in _paced(iter((what,)) if isinstance(what, bytes) else what()):
        if request.transport is None or request.transport.is_closing():
            break
        request.transport.write(piece)
    await asyncio.Event().wait()  # the client's leaving cancels it
    raise AssertionError("nobody sets the event")


async def _paced(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """One byte at a time slowly, anything longer at once."""
    for piece in pieces:
        yield piece
        await asyncio.sleep(0.05 if len(piece) == 1 else 0)


def brotli_bomb(size: int) -> Iterator[bytes]:
    """A valid brotli stream, a hundred-thousandth of the `size` bytes that it inflates to.

    >>> len(brotli.decompress(b"".join(brotli_bomb(10_000_000))))
    10000000
    """
    packer = brotli.Compressor(quality=1)
    block = bytes(1 << 20)
    for start in range(0, size, len(block)):
        yield packer.process(block[: size - start])
    yield packer.finish()
