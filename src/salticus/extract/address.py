"""Where a link leads, in one spelling, and whose site that is."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
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
_SIMPLE = rf"(?:({_ORIGIN})(?=/)|(?!//))((?:/{_PATH}|\w[-\w/.~%]*){_REST})(?:#[-\w]*)?"
_LINK = re.compile(_SIMPLE, re.ASCII)
_LINKS = re.compile(rf"^(?:{_SIMPLE}|.*)$", re.ASCII | re.MULTILINE)
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
    raw = raw.strip()
    found = _LINK.fullmatch(raw)
    return (_placed(found[1], found[2], raw, base) if found else None) or parsed(raw, base)


def addresses(links: Sequence[str], base: str) -> list[ListedUrl | None]:
    """The same for many links at once, which takes half the time."""
    links = [raw.strip() for raw in links]
    parts = _LINKS.findall("\n".join(links))
    if len(parts) != len(links):  # a link has more than one line
        return [parsed(raw, base) for raw in links]
    return [
        (_placed(origin, rest, raw, base) if rest else None) or parsed(raw, base)
        for raw, (origin, rest) in zip(links, parts, strict=True)
    ]


def _placed(origin: str | None, rest: str, raw: str, base: str) -> ListedUrl | None:
    """The place of a plain link by its parts; None if it has to be parsed all the same."""
    if "/." in raw or "%2" in raw:  # dots may climb, also if they are escaped
        return None
    home = _home(origin) if origin else _around(base, rest[0] != "/")
    if home is None or len(home.url) + len(raw) > MAX_URL or (not origin and "//" in rest):
        return None
    return ListedUrl(home.url + rest, home.host)


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


@functools.lru_cache(maxsize=1000)
def _around(base: str, folder: bool) -> ListedUrl | None:
    """What stands before a link without origin: that of the base, or the base's whole folder."""
    if folder:
        found = _FOLDER.fullmatch(base)
        home = _home(found[1]) if found and "/." not in base else None
        return ListedUrl(home.url + found[2], home.host) if found and home else None
    try:
        return _home(_origin(base))
    except (ValueError, TypeError):
        return None


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
