"""The zoo: pages and answers as bad as the web's worst, each by its name.

A beast spoils the right answer of a page (`SPOILT`), answers with something else altogether
(`INSTEAD`), or breaks the protocol (`RAW`). They are shown to a client on demand, see `faults`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import shake_256

from aiohttp import web

from salticus.lab.worlds.mall.faults import HTML, hang

_JSON_LD = re.compile(rb'(<script type="application/ld\+json">)(.*?)(</script>)', re.DOTALL)
_STRAY = b"\xff\xfe\xc3(\xa0\x80"
_TWIN = b'<div id="main" itemscope itemref="main main"><span id="main"></span></div>'


# ---------------------------------------------------------------- the right answer, spoilt


def _latin(body: bytes) -> bytes:
    text = body.decode("utf-8", "replace").replace("</h1>", " – Größe für Çağlar</h1>")
    return text.encode("cp1252", "replace")


def _invalid(body: bytes) -> bytes:
    spoilt = body.replace(b"<p", _STRAY + b"<p").replace(b'"name": "', b'"name": "' + _STRAY)
    return spoilt.replace(b"</title>", _STRAY + b"</title>")


def _more_json(body: bytes, data: bytes) -> bytes:
    block = b'<script type="application/ld+json">' + data + b"</script>"
    return body.replace(b"<link", block + b"<link", 1)


def _enormous_json(body: bytes) -> bytes:
    junk = [{"@type": "Thing", "name": f"filling {n}"} for n in range(100_000)]
    return _more_json(body, json.dumps(junk).encode())


def _sessions(body: bytes) -> bytes:
    session = shake_256(body).hexdigest(16)
    links = "".join(
        f'<a href="/o/{n};jsessionid={session}?PHPSESSID={session}">{n}</a>' for n in range(300)
    )
    return body.replace(b"</main>", links.encode() + b"</main>")


SPOILT: Mapping[str, Callable[[bytes], bytes]] = {
    "half": lambda body: body[: len(body) // 4],
    "latin": _latin,
    "utf-16": lambda body: body.decode("utf-8", "replace").encode("utf-16-le"),
    "invalid": _invalid,
    "twins": lambda body: body.replace(b"<body>", b"<body>" + _TWIN * 5000),
    "broken-json": lambda body: _JSON_LD.sub(
        lambda found: found[1] + found[2][: len(found[2]) // 2] + found[3], body
    ),
    "enormous-json": _enormous_json,
    "deep-json": lambda body: _more_json(body, b'{"@graph":[' * 50_000),
    "deep": lambda body: body.replace(b"<main>", b"<div><b>" * 50_000 + b"<main>"),
    "skewed": lambda body: body,
    "sessions": _sessions,
}


# ------------------------------------------------------------------- something else altogether


def _page(title: str, text: str) -> bytes:
    return (
        f"<!DOCTYPE html><html lang=en><head><title>{title}</title></head>"
        f"<body><h1>{title}</h1>{text}</body></html>"
    ).encode()


def _calendar(path: str) -> bytes:
    """Months without end, each linked to the next ones: ``/calendar/N``."""
    number = int(re.sub(r"\D", "", path)[-6:] or 0)
    links = (f'<a href="/calendar/{number + n}">{number + n}</a>' for n in range(1, 400))
    return _page("Calendar", "".join(links))


@cache
def _huge_robots(path: str) -> bytes:
    rules = [f"Disallow: /private/{n}*a*b*c*d$\n" for n in range(300_000)]
    return ("User-agent: *\nDisallow: /private/\n" + "".join(rules)).encode()


def _sitemap(items: Iterable[str], root: str = "urlset", head: str = "") -> bytes:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    text = f'<?xml version="1.0"?>{head}<{root} xmlns="{space}">{"".join(items)}</{root}>'
    return text.encode()


def _huge_sitemap(path: str) -> bytes:
    return _sitemap(f"<url><loc>/o/{n % 50}?</loc></url><!-- {n} -->\n" for n in range(250_000))


def _sitemap_cycle(path: str) -> bytes:
    names = ("/sitemap.xml", "/sitemap-1.xml", "/sitemap-2.xml")
    return _sitemap((f"<sitemap><loc>{n}</loc></sitemap>" for n in names), "sitemapindex")


def _xml_bomb(path: str) -> bytes:
    steps = (f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    entities = f'<!DOCTYPE urlset [<!ENTITY a0 "ha">{"".join(steps)}]>'
    return _sitemap(["<url><loc>/&a11;</loc></url>"], head=entities)


INSTEAD: Mapping[str, Callable[[str], bytes]] = {
    "wall": lambda path: _page(
        "Before you continue",
        "<div class='consent'><p>We and our 843 partners value your privacy. To read on, accept "
        "cookies or subscribe.</p><button>Accept all</button><button>Manage options</button></div>",
    ),
    "captcha": lambda path: _page(
        "Just a moment...",
        "<p>Checking if the site connection is secure. Please verify that you are a human.</p>"
        "<div class='g-recaptcha' data-sitekey='x'></div>",
    ),
    "soft-404": lambda path: _page(
        "Page not found",
        "<p>Sorry, the page you are looking for does not exist or has been removed.</p>",
    ),
    "binary": lambda path: b"\x7fELF\x02\x01\x01\0" + shake_256(path.encode()).digest(200_000),
    "calendar": _calendar,
    "huge-robots": _huge_robots,
    "huge-sitemap": _huge_sitemap,
    "sitemap-cycle": _sitemap_cycle,
    "xml-bomb": _xml_bomb,
}

HEADERS = {
    "skewed": {
        **HTML,
        "Date": "Thu, 01 Jan 1970 00:00:00 GMT",
        "Last-Modified": "Fri, 31 Dec 2199 23:59:59 GMT",
        "Expires": "yesterday",
        "Age": "-9",
    },
    "wall": {**HTML, "Set-Cookie": "wall=1; Path=/"},
    "huge-robots": {"Content-Type": "text/plain"},
    **dict.fromkeys(
        ("huge-sitemap", "sitemap-cycle", "xml-bomb"), {"Content-Type": "application/xml"}
    ),
}
"""The headers of a beast, if they are not those of an HTML page."""


# ------------------------------------------------------------------------- against the protocol


def _drip() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n"
    while True:
        yield b"."


def _flood() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in range(20_000):
        yield b"X-%d: %d\r\n" % (number, number)


RAW: Mapping[str, bytes | Callable[[], Iterator[bytes]]] = {
    "drip": _drip,
    "flood": _flood,
    "hang-status": b"HTTP/1.1 200 ",
    "hang-headers": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n",
    "hang-body": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n<p>",
    "injection": b"HTTP/1.1 302 Found\r\nLocation: /o/1\r\n Set-Cookie: a=\0\r\nX\xff\n: y\r\n\r\n",
    "garbage": b"\x16\x03\x01\x00\xa5 this is not the protocol you are looking for\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF1\r\nabc\r\n",
}


async def raw(request: web.BaseRequest, kind: str) -> web.StreamResponse:
    """Write what is no proper answer, single bytes slowly, and wait for the client to leave."""
    what = RAW[kind]
    for piece in [what] if isinstance(what, bytes) else what():
        if request.transport is None or request.transport.is_closing():
            break
        request.transport.write(piece)
        await asyncio.sleep(0.05 if len(piece) == 1 else 0)
    await hang()
