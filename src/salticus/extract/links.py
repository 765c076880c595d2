"""The links of a page, and lists of pages: each once, in order, in one spelling, not too many."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from salticus.extract.address import ListedUrl, address, addresses, site
from salticus.extract.base import Content
from salticus.extract.canonical import canonical
from salticus.extract.charset import declared
from salticus.extract.clutter import bare, boxed, is_list_part
from salticus.extract.document import MAX_DEPTH, depth, document_of
from salticus.types import Entry
from salticus.types.dates import DAY_US
from salticus.urls import without_tracking

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_TITLE = 500
MOST = 500
MOST_ALIKE = 100
FARTHEST = 100
FEWEST = 5  # links outside of boxes that a hub has
MAX_SEEN = 5_000  # links that are looked at
MAX_HTML = 4_000_000  # bytes that are

_WANTED = "a[href], area[href], link[rel~=next][href]"
_SHUNNED = frozenset({"nofollow", "ugc", "sponsored"})
_TURNING = _SHUNNED | {"next", "prev"}
_NUMBER = re.compile(r"\d+")
_DIGITS = b"0123456789"
_ZEROS = bytes.maketrans(_DIGITS, b"0" * len(_DIGITS))
_FILES = (
    ".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg", ".ico", ".bmp", ".css", ".js",
    ".mp3", ".mp4", ".webm", ".ogg", ".wav", ".avi", ".mov", ".woff", ".woff2", ".ttf", ".zip",
    ".gz", ".rar", ".7z", ".exe", ".dmg", ".iso", ".apk", ".doc", ".docx", ".xls", ".xlsx", ".ppt",
    ".pptx",
)  # fmt: skip
_LONGEST = max(map(len, _FILES))
_HREF = re.compile(rb"href", re.I)
_said = attrgetter("kind", "at", "title", "word")


def read_links(content: Content) -> tuple[Entry, ...]:
    """The pages of its own site that a hub page shows, in order.

    `a` and `area`; not those marked nofollow, ugc or sponsored, nor images, archives and the like.
    Sessions that the server wrote into links are taken out, and tracking parameters. At most 500,
    and at most 100 that differ in numbers alone: a page that names more makes them up.

    Not shown are later parts of the same list and days of a calendar (`is_list_part`), unless there
    is nothing else; and what stands in boxes alone (`boxed`), unless fewer than five links do not.

    >>> page = b"<a href='/1'>1</a> <a href='/2;jsessionid=9'>2</a> <a rel=nofollow href=/3>3</a>"
    >>> [entry.url for entry in read_links(Content("http://shop.example/", page))]
    ['http://shop.example/1', 'http://shop.example/2']
    """
    tree = _opened(content)
    if tree is None:
        return ()
    nodes, boxes = tree.css(_WANTED)[:MAX_SEEN], boxed(tree)
    base = _base(tree, content.url)
    outside = [node for node in nodes if node.mem_id not in boxes] if boxes else nodes
    found = _followed(_written(outside, _TURNING), content.url, base, is_list_part)
    if boxes and len(found) < FEWEST:
        found = _followed(_written(nodes, _TURNING), content.url, base, is_list_part)
    return found or _followed(_written(nodes, _SHUNNED), content.url, base, _never)


def links_of(content: Content) -> tuple[Entry, ...]:
    """The links of an ordinary page, which may lead to pages that link to others, and so on.

    Boxes, and later parts of a list, are links like others, and so is the page that comes next;
    all else is as for `read_links`. But of the pages whose URL differs from this one's in numbers
    alone, only those count whose other numbers are 100 at most. So page 2 leads to page 3, but
    calendars end with the year, and no counter is followed for ever.
    """
    own, tree = address(content.url, content.url), _opened(content)
    if own is None or tree is None:
        return ()
    written = _written(tree.css(_WANTED)[:MAX_SEEN], _SHUNNED)
    return _followed(written, content.url, _base(tree, content.url), _leads_nowhere(own.url))


def _leads_nowhere(own: str) -> Callable[[str], bool]:
    """Whether a URL differs from a page's own in numbers alone, and in large ones."""
    like, numbers = _shape(own), _NUMBER.findall(own)
    if not numbers:
        return _never
    first = _NUMBER.search(own, own.index("/", len("https://")))
    start = own[: first.start()] if first else own

    def unwanted(url: str) -> bool:
        if not url.startswith(start):  # most links, and cheaper than their shape
            return False
        return _shape(url) == like and not _near(_NUMBER.findall(url), numbers)

    return unwanted


def _opened(content: Content) -> LexborHTMLParser | None:
    """The tree of a page with links that may be followed."""
    if not _HREF.search(content.body) and not (declared(content) or "").startswith("utf-16"):
        return None
    if len(content.body) > MAX_HTML:
        content = replace(content, body=content.body[:MAX_HTML])
    document = document_of(content)
    if depth(document.text) > MAX_DEPTH:  # it would take minutes to parse
        return None
    return None if _closed(document.nodes) else document.nodes


def _written(nodes: Sequence[LexborNode], shunned: frozenset[str]) -> list[str]:
    """The links as they are written, each once, without those of which the first is shunned."""
    written: dict[str, str | None] = {}
    for node in nodes:
        about = node.attributes
        written.setdefault(about.get("href") or "", about.get("rel"))
    return [
        raw for raw, rel in written.items() if not rel or shunned.isdisjoint(rel.lower().split())
    ]


def _followed(
    written: list[str], url: str, base: str, unwanted: Callable[[str], bool]
) -> tuple[Entry, ...]:
    """The links of the page at `url` to other pages of its site that are not `unwanted`."""
    own = address(url, url)
    kept, alike = {own.url if own else "": None}, Counter[str]()
    home = own and site(own.host)
    written = [raw for raw in map(str.strip, written) if not _is_other(raw)]
    for place, shape in zip(addresses(written, base), _crowded(written), strict=True):
        if place is None or (shape and alike[shape] >= MOST_ALIKE):
            continue
        found, host = place
        if "=" in found or ";" in found or "(" in found:
            found, host = _tidied(found, host, base)
        if found in kept or unwanted(found) or (home is not None and site(host) != home):
            continue
        if len(kept) > MOST:
            break
        kept[found] = None
        if shape:
            alike[shape] += 1
    return tuple(map(Entry, list(kept)[1:]))


def _crowded(written: list[str]) -> list[str]:
    """The shape of each link that may be one of too many of its shape; empty for all others."""
    if len(written) <= MOST_ALIKE:
        return [""] * len(written)
    text = "\0".join(written)  # parsers leave none in a link
    short = text.encode().translate(None, _DIGITS).split(b"\0") if text.isascii() else []
    if len(short) == len(written) and max(Counter(short).values()) <= MOST_ALIKE:
        return [""] * len(written)
    shapes = _shape(text).split("\0")
    return shapes if len(shapes) == len(written) else [_shape(raw) for raw in written]


def _never(url: str) -> bool:
    return False


def _near(numbers: list[str], own: list[str]) -> bool:
    """Whether all numbers that are not the same are small."""
    pairs = zip(numbers, own, strict=True)
    return all(one == other or (len(one) < 4 and int(one) <= FARTHEST) for one, other in pairs)


def _shape(text: str) -> str:
    if not text.isascii():
        return _NUMBER.sub("0", text)
    short = text.encode().translate(_ZEROS)
    while b"00" in short:  # a fifth of the time
        short = short.replace(b"00", b"0")
    return short.decode()


def _closed(tree: LexborHTMLParser) -> bool:
    """Whether the page asks that none of its links be followed."""
    found = tree.css_first('meta[name="robots" i]')
    return found is not None and "nofollow" in (found.attributes.get("content") or "").lower()


def _base(tree: LexborHTMLParser, url: str) -> str:
    node = tree.css_first("base[href]")
    found = address(node.attributes.get("href") or "", url) if node else None
    return found.url if found else url


def _is_other(raw: str) -> bool:
    """Whether a link leads to a place on the same page, or to a file that is no page."""
    if "." not in raw:
        return raw[:1] == "#"
    end = raw.partition("?")[0][-_LONGEST:]
    return raw[:1] == "#" or ("." in end and end.lower().endswith(_FILES))


def _tidied(url: str, host: str, base: str) -> tuple[str, str]:
    """The place without names of visitors and trackers."""
    clean = bare(url)
    if ";" not in url and "(" not in url:  # no path has changed
        return clean, host
    return address(clean, base) or (url, host)


class Listing:
    """Entries as they are found on a source at `url`.

    With `own_site`, pages of other sites are not kept: the owner of one site must not decide what
    is visited on another. Those are counted as `strangers`; what is no web address as `useless`.
    With `untracked`, tracking parameters are taken out of what is added.
    """

    def __init__(
        self, url: str, *, most: int, own_site: bool = True, untracked: bool = False
    ) -> None:
        self.url = url
        self.most = most
        self.untracked = untracked
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
        if self.untracked and "=" in found.url:
            found = ListedUrl(without_tracking(found.url), found.host)
        return self.keep(found, about)

    def keep(self, found: ListedUrl, about: Entry | None = None) -> bool:
        """Note a page; whether it is new."""
        url = found.url
        if self._site is not None and site(found.host) != self._site:
            self.strangers += 1
        elif url not in self._entries and url != self._own and not self.full:
            self._entries[url] = Entry(url, *_said(about)) if about else Entry(url)
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


def joined(some: tuple[Entry, ...], others: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries of both, each URL once.

    >>> [e.url for e in joined((Entry("http://a/"),), (Entry("http://b/"), Entry("http://a/")))]
    ['http://a/', 'http://b/']
    """
    known = {entry.url for entry in some}
    return (*some, *(entry for entry in others if entry.url not in known))


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
