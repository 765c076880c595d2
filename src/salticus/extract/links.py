"""The links of an HTML page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from salticus.extract.base import Content
from salticus.extract.charset import declared
from salticus.extract.document import document_of
from salticus.extract.listing import ListedUrl, Listing, address
from salticus.types import Entry

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MOST = 500
MOST_ALIKE = 100
FARTHEST = 100
MAX_SEEN = 5_000  # links that are looked at
MAX_HTML = 4_000_000  # bytes that are

_WANTED = "a[href], area[href], link[rel~=next][href]"
_SHUNNED = frozenset({"nofollow", "ugc", "sponsored"})
_NUMBER = re.compile(r"\d+")
_FILES = (
    ".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg", ".ico", ".bmp", ".css", ".js",
    ".mp3", ".mp4", ".webm", ".ogg", ".wav", ".avi", ".mov", ".woff", ".woff2", ".ttf", ".zip",
    ".gz", ".rar", ".7z", ".exe", ".dmg", ".iso", ".apk", ".doc", ".docx", ".xls", ".xlsx", ".ppt",
    ".pptx",
)  # fmt: skip
_SUSPECT = re.compile(r"[;=(]")  # no session can be in a URL without these
_HREF = re.compile(rb"href", re.I)
_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^?#;/]*|/\([sS]\([^/()]*\)\)", re.I)
_SESSION = re.compile(
    r"(?:(?:php|j|asp)?sess(?:ion)?_?id\w*|cfid|cftoken|zenid|oscsid|xtcsid)=[^&]*"
    r"|(?:sid|session|sess)=(?=[^&]*\d)[0-9a-z_-]{16,}",
    re.I,
)


def read_links(content: Content) -> tuple[Entry, ...]:
    """The pages of its own site that a page links to, in order.

    `a`, `area` and the page that comes next; not those marked nofollow, ugc or sponsored, nor
    images, archives and the like. Sessions that the server wrote into links are taken out. At most
    500, and at most 100 that differ in numbers alone: a page that names more makes them up.

    >>> page = b"<a href='/1'>1</a> <a href='/2;jsessionid=9'>2</a> <a rel=nofollow href=/3>3</a>"
    >>> [entry.url for entry in read_links(Content("http://shop.example/", page))]
    ['http://shop.example/1', 'http://shop.example/2']
    """
    return _links(content, lambda url: True)


def links_of(content: Content) -> tuple[Entry, ...]:
    """The links of an ordinary page, which may lead to pages that link to others, and so on.

    As `read_links`, but of the pages whose URL differs from this one's in numbers alone, only those
    whose other numbers are 100 at most. So page 2 leads to page 3, but calendars end with the year,
    and no counter is followed for ever.
    """
    own = address(content.url, content.url)
    if own is None:
        return ()
    like, numbers = _shape(own.url), _NUMBER.findall(own.url)
    first = _NUMBER.search(own.url, own.url.index("/", len("https://")))
    start = own.url[: first.start()] if first else own.url

    def wanted(url: str) -> bool:
        if not url.startswith(start):  # most links, and cheaper than their shape
            return True
        return _shape(url) != like or _near(_NUMBER.findall(url), numbers)

    return _links(content, wanted)


def _links(content: Content, wanted: Callable[[str], bool]) -> tuple[Entry, ...]:
    """The links whose URLs are `wanted`."""
    if len(content.body) > MAX_HTML or not _HREF.search(content.body):
        content = replace(content, body=_start(content))
    if not content.body:
        return ()
    tree = document_of(content).nodes
    if _closed(tree):
        return ()
    listing, base = Listing(content.url, most=MOST), _base(tree, content.url)
    alike: Counter[str] = Counter()
    for raw, attributes in _written(tree):
        shape = _shape(raw)
        if alike[shape] < MOST_ALIKE:
            found = _led(raw, attributes.get("rel"), base)
            alike[shape] += found is not None and wanted(found.url) and listing.keep(found)
    return listing.entries


def _written(tree: LexborHTMLParser) -> Iterator[tuple[str, Mapping[str, str | None]]]:
    """The links of a page as they are written there, each once."""
    met = {""}
    for node in tree.css(_WANTED)[:MAX_SEEN]:
        attributes = node.attributes
        raw = attributes.get("href") or ""
        if raw not in met:
            met.add(raw)
            yield raw, attributes


def _near(numbers: list[str], own: list[str]) -> bool:
    """Whether all numbers that are not the same are small."""
    pairs = zip(numbers, own, strict=True)
    return all(one == other or (len(one) < 4 and int(one) <= FARTHEST) for one, other in pairs)


def _shape(url: str) -> str:
    return _NUMBER.sub("0", url)


def _closed(tree: LexborHTMLParser) -> bool:
    """Whether the page asks that none of its links be followed."""
    found = tree.css_first('meta[name="robots" i]')
    return found is not None and "nofollow" in (found.attributes.get("content") or "").lower()


def _base(tree: LexborHTMLParser, url: str) -> str:
    node = tree.css_first("base[href]")
    found = address(node.attributes.get("href") or "", url) if node else None
    return found.url if found else url


def _start(content: Content) -> bytes:
    """The part of a body that is read; nothing if there can be no link in it."""
    wide = (declared(content) or "").startswith("utf-16")
    return content.body[:MAX_HTML] if wide or _HREF.search(content.body) else b""


def _led(raw: str, rel: str | None, base: str) -> ListedUrl | None:
    """Where a link leads; None if it is not to be followed."""
    raw = raw.strip()
    if raw.startswith("#") or (rel and not _SHUNNED.isdisjoint(rel.lower().split())):
        return None
    found = None if _is_file(raw) else address(raw, base)
    if found is not None and _SUSPECT.search(found.url):
        return address(without_session(found.url), base) or found
    return found


def _is_file(raw: str) -> bool:
    return "." in raw and raw.partition("?")[0].lower().endswith(_FILES)


def without_session(url: str) -> str:
    """The URL without the names that servers give to visitors.

    >>> without_session("http://a.example/x;jsessionid=1F?a=1&PHPSESSID=abc&sid=7")
    'http://a.example/x?a=1&sid=7'
    """
    path, mark, query = url.partition("?")
    kept = [part for part in query.split("&") if not _SESSION.fullmatch(part)]
    path = _IN_PATH.sub("", path)
    return path + mark + "&".join(kept) if any(kept) else path
