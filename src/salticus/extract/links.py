"""The links of a page, and lists of pages: each once, in order, in one spelling, not too many."""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

import can_ada
from msgspec.structs import replace

from salticus.extract.base import Content
from salticus.extract.canonical import canonical
from salticus.extract.charset import declared
from salticus.extract.document import document_of
from salticus.types import Entry
from salticus.types.dates import DAY_US

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser
    from tldextract import TLDExtract

MAX_URL = 2_048
MAX_TITLE = 500
WEB = ("http://", "https://")
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
_NOTHING = Entry("")


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
        other = not url.startswith(start)  # most links, and cheaper than their shape
        return other or _shape(url) != like or _near(_NUMBER.findall(url), numbers)

    return _links(content, wanted)


def _links(content: Content, wanted: Callable[[str], bool]) -> tuple[Entry, ...]:
    """The links whose URLs are `wanted`."""
    if not _HREF.search(content.body) and not (declared(content) or "").startswith("utf-16"):
        return ()
    if len(content.body) > MAX_HTML:
        content = replace(content, body=content.body[:MAX_HTML])
    tree = document_of(content).nodes
    if _closed(tree):
        return ()
    listing, base = Listing(content.url, most=MOST), _base(tree, content.url)
    written: dict[str, str | None] = {}
    for node in tree.css(_WANTED)[:MAX_SEEN]:
        attributes = node.attributes
        written.setdefault(attributes.get("href") or "", attributes.get("rel"))
    alike: Counter[str] = Counter()
    for raw, rel in written.items():
        shape = _shape(raw)
        if alike[shape] < MOST_ALIKE:
            found = _led(raw, rel, base)
            alike[shape] += found is not None and wanted(found.url) and listing.keep(found)
    return listing.entries


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


def _led(raw: str, rel: str | None, base: str) -> ListedUrl | None:
    """Where a link leads; None if it is not to be followed."""
    raw = raw.strip()
    if raw.startswith("#") or (rel and not _SHUNNED.isdisjoint(rel.lower().split())):
        return None
    if "." in raw and raw.partition("?")[0].lower().endswith(_FILES):
        return None
    found = address(raw, base)
    if found is not None and _SUSPECT.search(found.url):
        return address(without_session(found.url), base) or found
    return found


def without_session(url: str) -> str:
    """The URL without the names that servers give to visitors.

    >>> without_session("http://a.example/x;jsessionid=1F?a=1&PHPSESSID=abc&sid=7")
    'http://a.example/x?a=1&sid=7'
    """
    path, mark, query = url.partition("?")
    kept = [part for part in query.split("&") if not _SESSION.fullmatch(part)]
    path = _IN_PATH.sub("", path)
    return path + mark + "&".join(kept) if any(kept) else path


class ListedUrl(NamedTuple):
    """A URL as it is stored, without fragment, and its host, with the port if it is unusual."""

    url: str
    host: str


def address(raw: str, base: str) -> ListedUrl | None:
    """Where a link leads; None if that is nowhere that can be visited.

    >>> address("../b?q=1#top", "http://shop.example/a/")
    ListedUrl(url='http://shop.example/b?q=1', host='shop.example')
    >>> address("mailto:me@shop.example", "http://shop.example/a/")
    """
    raw = raw.strip()
    if not raw or len(raw) > MAX_URL:
        return None
    try:
        parsed = can_ada.parse(raw if raw.startswith(WEB) else _joined(raw, base))
    except (ValueError, TypeError):  # TypeError: a string that is not valid Unicode
        return None
    if parsed.protocol not in ("http:", "https:") or len(parsed.href) > MAX_URL:
        return None
    return ListedUrl(parsed.href.partition("#")[0], parsed.host)


def _joined(raw: str, base: str) -> str:
    if raw[0] == "/" and raw[1:2] not in ("/", "\\"):  # most links; joining takes 10 µs
        return _origin(base) + raw
    return urljoin(base, raw)


@functools.lru_cache(maxsize=100)
def _origin(base: str) -> str:
    return str(can_ada.parse(base).origin)


@functools.lru_cache(maxsize=10_000)
def site(host: str) -> str:
    """What one owner has: the registrable domain, by the public suffix list that is built in.

    Hosts without a domain, such as numeric addresses, stand for themselves, each port of them.

    >>> site("www.shop.co.uk:8080"), site("a.github.io"), site("www.shop.example")
    ('shop.co.uk', 'a.github.io', 'shop.example')
    >>> site("127.0.0.1:8001"), site("[::1]"), site("localhost:80")
    ('127.0.0.1:8001', '[::1]', 'localhost:80')
    """
    name = host.partition(":")[0]
    labels = name.split(".")
    if host.startswith("[") or labels[-1].isdigit() or len(labels) == 1:
        return host
    found = _suffixes().extract_str(name)
    if found.suffix:
        return f"{found.domain}.{found.suffix}" if found.domain else name
    return ".".join(labels[-2:])


@functools.cache
def _suffixes() -> TLDExtract:
    # a tenth of a second to import
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


class Listing:
    """Entries as they are found on a source at `url`.

    With `own_site`, pages of other sites are not kept: the owner of one site must not decide what
    is visited on another. Those are counted as `strangers`; what is no web address as `useless`.
    """

    def __init__(self, url: str, *, most: int, own_site: bool = True) -> None:
        self.url = url
        self.most = most
        self.strangers = 0
        self.useless = 0
        self._asked = 0
        self._entries: dict[str, Entry] = {}
        own = address(url, url)
        self._own = own and own.url
        self._site = site(own.host) if own and own_site else None

    @property
    def full(self) -> bool:
        """Whether there is no room for more, or twice as many were looked at."""
        return len(self._entries) >= self.most or self._asked >= 2 * self.most

    @property
    def cut(self) -> str:
        """What to say of a source that was not read on because this is full."""
        if len(self._entries) < self.most:
            return "most of its entries name no page that is new, and it was cut"
        return f"it names more than {self.most:,} pages, and was cut"

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries.values())

    def add(self, raw: str, base: str = "", *, about: Entry | None = None) -> bool:
        """Note a link, relative to `base`, with what is known `about` it; whether it is new."""
        self._asked += 1
        found = address(raw, base or self.url)
        if found is None:
            self.useless += 1
            return False
        return self.keep(found, about)

    def keep(self, found: ListedUrl, about: Entry | None = None) -> bool:
        """Note a page; whether it is new."""
        if self._site is not None and site(found.host) != self._site:
            self.strangers += 1
        elif found.url not in self._entries and found.url != self._own and not self.full:
            self._entries[found.url] = replace(about or _NOTHING, url=found.url)
            return True
        return False

    def remarks(self, fault: str | None) -> str | None:
        """What is wrong with the source and what was left out, in words; None if nothing is."""
        other = f"{self.strangers} links to other sites were left out" * bool(self.strangers)
        bad = f"{self.useless} entries have no web address" * bool(self.useless)
        return "; ".join(filter(None, (fault, other, bad))) or None


def label(raw: str | None) -> str | None:
    """A title for people; None if there is none."""
    return canonical((raw or "")[: 4 * MAX_TITLE])[:MAX_TITLE].rstrip() or None


def digest(entries: Iterable[Entry]) -> str:
    """A name for what entries say of pages, whatever their order."""
    lines = sorted(f"{entry.url} {entry.at or ''}" for entry in entries)
    return hashlib.blake2b("\n".join(lines).encode("utf-8", "replace"), digest_size=16).hexdigest()


def not_after(entries: Iterable[Entry], now: int) -> tuple[Entry, ...]:
    """The entries as told at `now` (µs): a time more than a day ahead is no time.

    Clocks are set wrong, and time zones mistaken; but who dates a page next year knows nothing.

    >>> day = 86_400_000_000
    >>> [e.at for e in not_after([Entry("http://a.example/", at=n * day) for n in (1, 2, 3)], day)]
    [86400000000, 172800000000, None]
    """
    latest = now + DAY_US
    return tuple(
        entry if entry.at is None or entry.at <= latest else replace(entry, at=None)
        for entry in entries
    )
