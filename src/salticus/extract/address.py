"""Where a link leads, in one spelling, and whose site that is."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from string import ascii_letters, digits
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

import can_ada

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_URL = 2_048
WEB = ("http://", "https://")

# Characters that no parser touches where they stand; all else takes the long way.
_ORIGIN = r"https?://[a-z0-9.-]+(?::\d+)?"
_PATH = r"[-\w/.~!$%&()*+,=:@]*"
_REST = r"(?:\?[-\w/.~!$%&()*+,;=:@?]+)?"
_SIMPLE = rf"(?:({_ORIGIN}/|/(?!/))({_PATH}{_REST})|(\w[-\w/.~%]*{_REST}))(?:#[-\w]*)?"
_LINK = re.compile(_SIMPLE, re.ASCII)
_HEAD = re.compile(rf"{_ORIGIN}/", re.ASCII)
_PLAIN = f"{ascii_letters}{digits}-_/.~!$%&()*+,=:@".encode()
_FOLDER = re.compile(rf"({_ORIGIN})(/(?:[-\w.~]+/)*)[-\w.~]*{_REST}", re.ASCII)


class ListedUrl(NamedTuple):
    """A URL as it is stored, without fragment, and its host, with the port if it is unusual."""

    url: str
    host: str


def address(raw: str, base: str) -> ListedUrl | None:
    """Where a link leads; None if that is nowhere that can be visited.

    Law: it is what `parsed` says; but a link that no parser would touch is only taken apart.

    >>> address("../b?q=1#top", "http://shop.example/a/")
    ListedUrl(url='http://shop.example/b?q=1', host='shop.example')
    >>> address("mailto:me@shop.example", "http://shop.example/a/")
    """
    return _placed(raw.strip(), base)


def addresses(links: Sequence[str], base: str) -> list[tuple[str, str] | None]:
    """The same for many links at once, as plain pairs, which takes a third of the time."""
    links = list(map(str.strip, links))
    text = "\n".join(links)
    odd = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN).split(b"\n")
    if len(odd) != len(links):  # a link has more than one line
        return [_placed(raw, base) for raw in links]
    room, may_climb = MAX_URL - max(map(len, links), default=0), _may_climb(text)
    starts: dict[str, ListedUrl | None] = {}
    found: list[tuple[str, str] | None] = []
    for raw, marks in zip(links, odd, strict=True):
        head = raw[: raw.find("/", 8) + 1] if raw[:1] != "/" else "/"
        if head not in starts:
            start = _start(head, base) if head == "/" or _HEAD.fullmatch(head) else None
            starts[head] = start if start and len(start.url) <= room else None
        start = starts[head]
        unsafe = marks and (marks != b"?" or raw[-1] == "?")
        if unsafe or start is None or raw[1:2] == "/" or (may_climb and _may_climb(raw)):
            found.append(_placed(raw, base))
        else:
            found.append((start[0] + raw[len(head) :], start[1]))
    return found


def _placed(raw: str, base: str) -> ListedUrl | None:
    """Where one link without white space around it leads."""
    found = _LINK.fullmatch(raw)
    if found is None or _may_climb(raw) or (found[3] and "//" in raw):
        return parsed(raw, base)
    start = _start(found[1] or "", base)
    if start is None or len(start.url) + len(raw) > MAX_URL:
        return parsed(raw, base)
    return ListedUrl(start.url + (found[3] or found[2]), start.host)


def _may_climb(text: str) -> bool:
    return "/." in text or "%2" in text  # dots, also if they are escaped


@functools.lru_cache(maxsize=1000)
def _start(head: str, base: str) -> ListedUrl | None:
    """What stands before the rest of a link, of which the `head` is an origin, a slash, or nothing.

    None if the link has to be parsed all the same.
    """
    if not head:
        return _folder(base)
    try:
        home = _home(head[:-1] or _origin(base))
    except (ValueError, TypeError):
        return None
    return ListedUrl(home.url + "/", home.host) if home else None


def parsed(raw: str, base: str) -> ListedUrl | None:
    """Where a link without white space around it leads, by the rules of browsers."""
    if not raw or len(raw) > MAX_URL:
        return None
    try:
        found = can_ada.parse(raw if raw.startswith(WEB) else _joined(raw, base))
    except (ValueError, TypeError):  # TypeError: a string that is not valid Unicode
        return None
    if found.protocol not in ("http:", "https:") or len(found.href) > MAX_URL:
        return None
    return ListedUrl(found.href.partition("#")[0], found.host)


def _joined(raw: str, base: str) -> str:
    if raw[0] == "/" and raw[1:2] not in ("/", "\\"):  # joining takes 10 µs
        return _origin(base) + raw
    return urljoin(base, raw)


@functools.lru_cache(maxsize=1000)
def _origin(base: str) -> str:
    return str(can_ada.parse(base).origin)


@functools.lru_cache(maxsize=10_000)
def _home(origin: str) -> ListedUrl | None:
    """An origin in one spelling, without a slash at its end."""
    found = parsed(origin + "/", "")
    return found and ListedUrl(found.url[:-1], found.host)


def _folder(base: str) -> ListedUrl | None:
    found = _FOLDER.fullmatch(base)
    home = _home(found[1]) if found and "/." not in base else None
    return ListedUrl(home.url + found[2], home.host) if found and home else None


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
