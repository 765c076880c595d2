"""The pages that a source names: each once, in order, in one spelling, and not too many."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

import can_ada
import msgspec

from salticus.extract.canonical import canonical
from salticus.types import Entry
from salticus.types.dates import DAY_US

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_URL = 2_048
MAX_TITLE = 500

_WEB = ("http://", "https://")


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
        parsed = can_ada.parse(raw if raw.startswith(_WEB) else _joined(raw, base))
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
        """What was kept, in order."""
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
            known = about or _NOTHING
            self._entries[found.url] = msgspec.structs.replace(known, url=found.url)
            return True
        return False

    def remarks(self) -> list[str]:
        """What was left out, in words."""
        other = f"{self.strangers} links to other sites were left out"
        bad = f"{self.useless} entries have no web address"
        return [other] * bool(self.strangers) + [bad] * bool(self.useless)


_NOTHING = Entry("")


def label(raw: str | None) -> str | None:
    """A title for people; None if there is none."""
    if not raw:
        return None
    text = canonical(raw[: 4 * MAX_TITLE])[:MAX_TITLE].rstrip()
    return text or None


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
        entry if entry.at is None or entry.at <= latest else msgspec.structs.replace(entry, at=None)
        for entry in entries
    )
