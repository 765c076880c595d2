"""Documents spoilt on purpose: edits of good seeds that keep most of their structure.

An edit is three numbers, so that a failing document is a short list that Hypothesis can shorten.
"""

from __future__ import annotations

import gc
import gzip
import re
import resource
from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import strategies as st

from salticus.extract.base import Content
from salticus.types import Value

Edit = tuple[int, int, int]

DATA = Path(__file__).parents[1] / "data"
MOST = 40_000  # bytes of a document: what grows without end is for the tests with a deadline
_MANY = 60

# Where documents come apart: tags, attributes, strings, numbers, lines.
_SEAMS = re.compile(rb"(?=[<&{\[\"'])|(?<=[>;:,=}\]\"'\s/])")

HOSTILE = (
    b"\0", b"\x01\x0b\x1b[31m", b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xcc\x81" * 50, b"\r", b"\n\n", b"\t", b" ", b"\x85",
    b"\xe2\x80\xa8", b"&#0;", b"&#xD800;", b"&#x110000;", b"&#99999999999;", b"&", b"&amp;amp;",
    b"&nbsp;", b"&lt;/script&gt;", b"&bomb;", b"<!DOCTYPE a [<!ENTITY bomb 'ha'>]>", b"<![CDATA[",
    b"]]>", b"<!--", b"-->", b"<?xml", b"?>", b"9" * 400, b"1e999", b"-1e-999", b"NaN",
    b"Infinity", b"-0", b"0x10", b"1.2.3,4", b"1" * 5000, b"18446744073709551616", b"\xd9\xa3",
    b"null", b"true", b"[]", b"{}", b'""', b"\\ud800", b"\\u0000", b"\\", b'"', b"'", b"<", b">",
    b"/", b"=", b"{", b"}", b"[", b"]", b":", b",", b"@", b"#", b"$", b"%", b"%ff", b"*",
    b"[" * 300, b'{"a":' * 300, b"<div>" * 300, b"<b><p>" * 100, b"<table>" * 60, b"</div>" * 300,
    b"(" * 300, b"<svg><math><template>", b"<script>", b"</script>", b"<style>", b"<textarea>",
    b"<plaintext>", b"<base href=//x>", b"<base href='http://['>", b"<meta charset=utf-16>",
    b"<meta charset=utf-7>", b"<meta charset=shift_jis>", b'<script type="application/ld+json">',
    b'{"@id":"#a","offers":{"@id":"#a"},"isVariantOf":{"@id":"#a"}}',
    b" itemscope itemref='a a b' id=a ", b" itemprop=offers ", b" typeof=Product ",
    b" property=offers ", b"http://[::1", b"//", b"javascript:1", b"http://a@b:99999/",
    b"http://xn--a/", b"data:,x", b"ftp://a/", b"?", b"http://" + b"a" * 3000, b"/../" * 50,
    b"2026-02-30T25:61:61+99:99", b"99999-01-01", b"0000-00-00",
    b"Thu, 32 Foo 99999 99:99:99 +9999", b"Thu, 01 Jan 2026 00:00:00 -99999999999999", b"gzip",
    b"\x1f\x8b\x08", b"Disallow: /*a*a*a*a$", b"User-agent: *", b"Crawl-delay: nan",
    b"Crawl-delay: 1e999", b"Allow:", b"obj", b"endobj", b"stream", b"endstream", b"/Kids [1 0 R]",
    b"/Filter /FlateDecode", b"/Length 99999999",
)  # fmt: skip

EDITS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 2**24), st.integers(0, 2**24)), max_size=8
)


def spoilt(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Documents that are nearly one of the seeds."""
    return st.builds(lambda at, edits: spoil(seeds, at, edits), st.integers(0, 10**6), EDITS)


def spoil(seeds: Sequence[bytes], at: int, edits: Sequence[Edit]) -> bytes:
    """The seed with all edits made, one after another."""
    body = seeds[at % len(seeds)]
    for how, where, what in edits:
        body = _HOW[how % len(_HOW)](body, where, what, seeds)[:MOST]
    return body


def _apart(body: bytes) -> list[bytes]:
    return [piece for piece in _SEAMS.split(body) if piece] or [b""]


def _inserted(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    pieces = _apart(body)
    pieces.insert(where % (len(pieces) + 1), HOSTILE[what % len(HOSTILE)])
    return b"".join(pieces)


def _replaced(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    pieces = _apart(body)
    pieces[where % len(pieces)] = HOSTILE[what % len(HOSTILE)]
    return b"".join(pieces)


def _removed(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    pieces = _apart(body)
    start = where % len(pieces)
    del pieces[start : start + 1 + what % 8]
    return b"".join(pieces)


def _repeated(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    pieces = _apart(body)
    start = where % len(pieces)
    some = pieces[start : start + 1 + what % 30]
    return b"".join((*pieces[:start], *(some * (1 + what % _MANY)), *pieces[start:]))


def _swapped(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    pieces = _apart(body)
    one, two = where % len(pieces), what % len(pieces)
    pieces[one], pieces[two] = pieces[two], pieces[one]
    return b"".join(pieces)


def _spliced(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    """The start of one document and the end of another."""
    mine, theirs = _apart(body), _apart(seeds[what % len(seeds)])
    return b"".join(mine[: where % len(mine)] + theirs[what % len(theirs) :])


def _flipped(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    if not body:
        return body
    at = where % len(body)
    return body[:at] + bytes([body[at] ^ (1 + what % 255)]) + body[at + 1 :]


def _cut(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    return body[: where % (len(body) + 1)]


def _headless(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    return body[where % min(len(body) + 1, 2000) :]


def _recoded(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    charset = ("utf-16", "utf-16-le", "utf-16-be", "cp1252", "shift_jis", "utf-8-sig")[what % 6]
    return body.decode("utf-8", "replace").encode(charset, "replace")


def _shouted(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    at = where % (len(body) + 1)
    return body[:at] + body[at : at + what % 500].swapcase() + body[at + what % 500 :]


def _packed(body: bytes, where: int, what: int, seeds: Sequence[bytes]) -> bytes:
    return gzip.compress(body, mtime=0) if what % 4 == 0 else body + body[: where % 100]


_HOW: tuple[Callable[[bytes, int, int, Sequence[bytes]], bytes], ...] = (
    _inserted, _replaced, _removed, _repeated, _swapped, _spliced, _flipped, _cut, _headless,
    _recoded, _shouted, _packed,
)  # fmt: skip


def seeds(*patterns: str, folder: str = "fuzz") -> list[bytes]:
    """The documents of the test data with such names, the short ones."""
    paths = sorted({path for pattern in patterns for path in (DATA / folder).glob(pattern)})
    return [path.read_bytes() for path in paths if path.stat().st_size <= MOST // 4]


def named(error: Exception, what: str) -> None:
    """The law of all errors: they say which page or file is meant."""
    assert what in str(error), "law: an error names the page or file"


def many(what: bytes, size: int = 2_000_000) -> bytes:
    """The same again and again, up to a size."""
    return what * (size // len(what))


SCRIPT = b'<script type="application/ld+json">'

# For what runs in the event loop.
ODD = {
    "marks": many(b"application/ld+json"),
    "open scripts": (SCRIPT + b"{") * 60 + many(b"</scrip"),
    "comments": b"<!--" + many(b"application/ld+json <!-- "),
    "quotes": SCRIPT + many(b'"', 65_000),
    "nesting": (SCRIPT + many(b"[", 60_000) + b"</script>") * 8,
    "digits": SCRIPT + b'{"offers":{"price":%b}}</script>' % many(b"9", 400_000),
    "links": many(b"<link rel=canonical href='"),
}

# For workers: a kind, and a body that takes them long or makes them large.
BOMB = (
    b"<!DOCTYPE a [<!ENTITY a0 'ha'>"
    + b"".join(b"<!ENTITY a%d '%b'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    + b"]><urlset><url><loc>/&a11;</loc></url></urlset>"
)
HUGE = {
    "nested": (None, many(b"<div><b>")),
    "foreign": ("page", many(b"<svg><g>")),
    "self-closed": ("page", many(b"<div/>")),
    "attributes": ("page", b"<p " + b" ".join(b"a%d=1" % n for n in range(200_000)) + b">x"),
    "references": ("offer", b"".join(
        b"<i id=r%d itemprop=offers itemscope itemref='r%d r%d'>x</i>" % (n, n + 1, n + 2)
        for n in range(20_000))),
    "lines": ("page", many(b"page not found<br>")),
    "entities": ("page", many(b"&CounterClockwiseContourIntegral;")),
    "definitions": ("source", BOMB),
    "gzip": ("source", gzip.compress(b"<urlset>" + many(b"<url><loc>/a</loc></url>", 20_000_000))),
    "elements": ("source", b"<urlset>" + many(b"<url>")),
    "prologue": ("source", many(b"<?x?>")),
    "digits": ("page", many(b"1.1")),
}  # fmt: skip

# Expressions that go back and forth for ever, and what they do it on.
LONG = b"a" * 5000 + b"!"
HANGING = {
    "re:(a+)+$": b"<main><p>" + LONG,
    "xpath://p[re:test(., '^(a+)+$')]": b"<main><p>" + LONG,
    "json:$[?match(@.a, '(a+)+')]": b'[{"a": "' + LONG + b'"}]',
}


class Swell:
    """A part that takes memory until there is none; of address space, so the machine does not."""

    fast = False

    def extract(self, content: Content) -> Value | None:
        held = [bytes(10**8)]
        while True:
            held.append(bytes(10**8))


class Told:
    """A part that tells how much memory its worker may take, and how much it has taken."""

    fast = False

    def extract(self, content: Content) -> Value | None:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return Value("page", f"{limit} {taken()}")


def taken() -> int:
    """Bytes of memory that this process alone takes.

    Pages of files (libraries, say) are left out: the system takes them back and brings them again
    as it likes, by many megabytes, and the process has no part in it.
    """
    gc.collect()
    told = Path("/proc/self/status").read_text("ascii")
    return sum(1024 * int(n) for n in re.findall(r"^(?:RssAnon|VmSwap):\s+(\d+) kB$", told, re.M))
