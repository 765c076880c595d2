"""What a page says of itself: its addresses, its titles, its language and its country."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

import can_ada

from salticus.extract.base import Content
from salticus.extract.canonical import canonical
from salticus.extract.charset import declared

T = TypeVar("T")

MAX_HEAD = 256 * 1024
MAX_START = 4096
MAX_TITLE = 500
MAX_LINKS = 200
MAX_LINK_HEAD = 128 * 1024
MAX_TAG = 2048
MAX_TRIES = 8

_ERRANDS = frozenset(
    {"search", "suche", "recherche", "buscar", "busca", "cerca", "ricerca", "zoeken", "szukaj",
     "catalogsearch", "results", "cart", "basket", "bag", "checkout", "warenkorb", "kasse",
     "panier", "carrito", "carrello", "carrinho", "winkelwagen", "koszyk", "kosik", "wishlist",
     "merkzettel", "wunschliste", "favorites", "compare", "vergleich", "comparer", "orders"}
)  # fmt: skip
_ASKING = frozenset({"q", "query", "search", "s", "keyword", "keywords", "search_query", "suche"})
_LANG = re.compile(
    rb"""[\s"'](?:xml:)?lang\s{0,9}=\s{0,9}["']?\s{0,9}
    ([a-z]{2,3}(?:[-_][a-z0-9]{2,8}){0,3})(?=["'\s/]|$)""",
    re.IGNORECASE | re.VERBOSE,
)
_TITLE = re.compile(rb"<title[^<>]{0,300}>([^<]{1,2000})", re.IGNORECASE)
_H1 = re.compile(rb"<h1(?=[\s>])[^>]{0,1000}>(.{1,3000}?)</h1", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(rb"<[^<>]*+>?")
_VALUE = re.compile(
    rb"""\s(content|href)\s{0,9}=\s{0,9}(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^\s"'>]++))""",
    re.IGNORECASE,
)
_HREFLANG = re.compile(rb"""hreflang\s{0,9}=\s{0,9}["']?([A-Za-z_-]{2,20})""", re.IGNORECASE)
_WORD = b"canonical"
_LINK = re.compile(rb"""<link(?=[\s/])(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"""[\s"'/](rel|href)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE
)
_BASE = re.compile(rb"<base\s", re.IGNORECASE)


class lazy(Generic[T]):
    """Like functools.cached_property, which before Python 3.12 takes a lock: a microsecond each."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find = find
        self.name = find.__name__
        self.__doc__ = find.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> T:
        found: T = self.find(owner)
        owner.__dict__[self.name] = found
        return found


class SchemelessUrl(NamedTuple):
    """Where something is, without scheme and fragment."""

    host: str
    path: str
    query: str


def address(raw: object, base: str) -> SchemelessUrl | None:
    """The address that a property names, relative to `base`; None if it names none.

    >>> address("/p/1?b=2#top", "https://www.shop.example/")
    SchemelessUrl(host='shop.example', path='/p/1', query='b=2')
    """
    if not isinstance(raw, str) or not raw or raw.startswith("#") or len(raw) > 4000:
        return None
    try:
        parts = urlsplit(raw if "://" in raw else urljoin(base, raw))
    except ValueError:
        return None
    host = parts.netloc.lower().removeprefix("www.").removeprefix("m.")
    return SchemelessUrl(host, unquote(parts.path).rstrip("/"), parts.query)


def nearness(one: SchemelessUrl | None, own: SchemelessUrl | None) -> int:
    """3 for the same address, 2 if all that its query asks is asked by `own`, 1 if only the paths
    agree, 0 if not even these."""
    if one is None or own is None or one[:2] != own[:2]:
        return 0
    if one.query == own.query:
        return 3
    asked = _pairs(one.query)
    return 2 if asked and asked <= _pairs(own.query) else 1


@lru_cache(1024)
def _pairs(query: str) -> frozenset[tuple[str, str]]:
    return frozenset(parse_qsl(query[:4000]))


class PageMetadata:
    """What a page says of itself. Everything is found when asked for, in the bytes of the page."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.url = content.url

    @lazy
    def own(self) -> SchemelessUrl | None:
        return address(self.url, self.url)

    @lazy
    def addresses(self) -> tuple[SchemelessUrl, ...]:
        """The page's address, and those that it gives as its own."""
        named = (self._link(b"canonical"), self._meta(b"og:url"))
        found = (self.own, *(address(raw, self.url) for raw in named if raw))
        return tuple(dict.fromkeys(one for one in found if one))

    @lazy
    def asked(self) -> frozenset[str]:
        """The words of the page's query that may select a variant."""
        values = (value for _, value in _pairs(self.own.query)) if self.own else ()
        return frozenset(value.casefold() for value in values if value)

    @lazy
    def steps(self) -> frozenset[str]:
        """The words of the page's path that may do so too."""
        return frozenset(self.own.path.casefold().split("/")) - {""} if self.own else frozenset()

    @property
    def errand(self) -> bool:
        """Whether the address is that of a search, a basket or a comparison."""
        if self.own is None:
            return False
        asked = (name.lower() for name, _ in _pairs(self.own.query))
        steps = self.own.path.lower().split("/")
        return not (_ERRANDS.isdisjoint(steps) and _ASKING.isdisjoint(asked))

    @lazy
    def titles(self) -> tuple[str, ...]:
        """The headings, the titles for other sites and for the window; widest last."""
        shared = (self._meta(b"og:title"), self._meta(b"twitter:title"))
        window = _TITLE.search(self.head) or _TITLE.search(self.content.body[:MAX_HEAD])
        named = (*self.headings, *filter(None, shared), self._text(window[1]) if window else "")
        return tuple(dict.fromkeys(filter(None, named)))

    def names(self, product: str) -> bool:
        """Whether the title of the window has a product's name, letter for letter."""
        head = self.head
        start = head.find(b"<title")
        if start < 0:
            return False
        return head.rfind(product.encode("utf-8", "replace"), start, head.find(b"</", start)) >= 0

    @lazy
    def headings(self) -> tuple[str, ...]:
        """The texts of the first h1 elements."""
        body = self.content.body[: 4 * MAX_HEAD]
        places = _places(body, b"<h1") or _places(body.lower(), b"<h1")
        headings = (_H1.match(body, at, at + MAX_START) for at in places)
        return tuple(filter(None, (self._text(_TAGS.sub(b" ", h[1])) for h in headings if h)))

    @lazy
    def tongue(self) -> str:
        """The language that the html element states, in lower case; empty if none."""
        body = self.content.body
        at = body.find(b"<html", 0, MAX_START)
        if at < 0:
            at = body[:MAX_START].lower().find(b"<html")
        end = body.find(b">", at, at + MAX_START) if at >= 0 else -1
        return _root(body[at:end]) if end >= 0 else ""

    @property
    def language(self) -> str:
        """The language of the page: of its root, else as its meta elements tell."""
        return self.tongue or language(self._meta(b"content-language") or self._meta(b"og:locale"))

    @property
    def country(self) -> str:
        """The country the page is for: of its language tag, og:locale, or its own hreflang."""
        region = _region(self.tongue) or _region(language(self._meta(b"og:locale")))
        return region or self._alternate()

    @lazy
    def site(self) -> str:
        return self._meta(b"og:site_name")

    @lazy
    def head(self) -> bytes:
        """The bytes before the body of the page."""
        body = self.content.body
        end = body.find(b"</head", 0, MAX_HEAD)
        return body[: end if end >= 0 else MAX_HEAD // 4]

    def _text(self, raw: bytes) -> str:
        text = raw.decode(declared(self.content) or "utf-8", "replace")
        return canonical(html.unescape(text[: 4 * MAX_TITLE]))[:MAX_TITLE].rstrip()

    def _meta(self, name: bytes) -> str:
        return next((self._attribute(tag, b"content") for tag in self._tags(name)), "")

    def _link(self, relation: bytes) -> str:
        links = (tag for tag in self._tags(relation) if tag[:5].lower() == b"<link")
        return next((self._attribute(tag, b"href") for tag in links), "")

    def _alternate(self) -> str:
        """The region of the hreflang whose address is the page's."""
        for tag in self._tags(b"hreflang", quoted=False):
            tongue = _HREFLANG.search(tag)
            region = _region(language(tongue[1].decode())) if tongue else ""
            where = address(self._attribute(tag, b"href"), self.url) if region else None
            if where is not None and where in self.addresses:
                return region
        return ""

    def _tags(self, name: bytes, quoted: bool = True) -> Iterator[bytes]:
        """The elements of the head that carry a name, as written."""
        head, at = self.head, -1
        if head.rfind(name) < 0:  # two to three times as fast as find
            return
        for _ in range(MAX_LINKS):
            at = head.find(name, at + 1)
            if at < 0:
                return
            start, end = head.rfind(b"<", 0, at), head.find(b">", at)
            whole = head[at + len(name) : at + len(name) + 1] in (b'"', b"'", b" ", b">", b"/")
            if start >= 0 and 0 <= end < start + 8000 and (whole or not quoted):
                yield head[start:end]
                at = end

    def _attribute(self, tag: bytes, name: bytes) -> str:
        for found in _VALUE.finditer(tag):
            if found[1].lower() == name:
                return self._text(found[2] or found[3] or found[4] or b"")
        return ""


def _places(body: bytes, mark: bytes) -> list[int]:
    """Where a mark stands, the first three times."""
    found = [body.find(mark)]
    while found[-1] >= 0 and len(found) <= 3:
        found.append(body.find(mark, found[-1] + 1))
    return found[:-1]


@lru_cache(4096)
def _root(tag: bytes) -> str:
    """The language that an html element states; a site writes it in one way on all its pages."""
    found = _LANG.search(tag)
    return language(found[1].decode()) if found else ""


@lru_cache(4096)
def language(raw: str) -> str:
    """A language tag in its one form; empty if it is none.

    >>> language("pt_BR"), language("{{ lang }}")
    ('pt-br', '')
    """
    tag = raw.strip().replace("_", "-").lower()
    return tag if re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}", tag) else ""


@lru_cache(4096)
def _region(tag: str) -> str:
    """The country in a language tag; empty if there is none.

    >>> _region("de-at"), _region("zh-hant-tw"), _region("de")
    ('AT', 'TW', '')
    """
    parts = tag.split("-")[1:]
    return next((part.upper() for part in parts if len(part) == 2 and part.isalpha()), "")


def canonical_link(content: Content) -> str | None:
    """The address that ``<link rel="canonical">`` names, if it is another than the page's.

    It is absolute and has no fragment. Read straight from the bytes, in the event loop, so every
    step is bounded. None if the head of the page names none, or two that differ, or one that cannot
    be visited; a front page is no canonical address of another page, but a broken template's.

    >>> page = b'<head><link rel="canonical" href="/kettle"></head>'
    >>> canonical_link(Content("https://a.example/kettle?ref=mail", page))
    'https://a.example/kettle'
    """
    end = content.body.find(b"<body", 0, MAX_LINK_HEAD)
    head = content.body[: end if end >= 0 else MAX_LINK_HEAD]
    named = _hrefs(head) - {b""}
    if len(named) != 1:
        return None
    own, found = _parsed(content.url), _resolved(named.pop(), content.url, head)
    if own is None or found is None:
        return None
    where: str = found.href.partition("#")[0]
    front = found.pathname == "/" and not found.search and own.pathname != "/"
    return None if front or where == own.href.partition("#")[0] else where


def _hrefs(head: bytes) -> set[bytes]:
    found: set[bytes] = set()
    at = head.find(_WORD)
    for _ in range(MAX_TRIES):
        if at < 0:
            break
        if tag := _tag(head, at):
            said = {m[1].lower(): m[2] or m[3] or m[4] or b"" for m in _ATTRIBUTE.finditer(tag[0])}
            if _WORD in said.get(b"rel", b"").lower().split():
                found.add(said.get(b"href", b""))
        at = head.find(_WORD, tag.end() if tag else at + 1)
    return found


def _tag(head: bytes, at: int) -> re.Match[bytes] | None:
    """The link element around a place, unless it is commented out."""
    start = head.rfind(b"<", max(0, at - MAX_TAG), at)
    tag = _LINK.match(head, start, start + MAX_TAG) if start >= 0 else None
    if tag is None or tag.end() <= at:
        return None
    opened = head.rfind(b"<!--", 0, start)
    return tag if opened < 0 or head.find(b"-->", opened, start) >= 0 else None


def _resolved(href: bytes, url: str, head: bytes) -> can_ada.URL | None:
    text = html.unescape(href.decode("utf-8", "replace")).strip()
    if "://" in text[:10]:
        return _parsed(text)
    # with a base element it is relative to something else than the page
    return None if _BASE.search(head) else _parsed(text, url)


def _parsed(url: str, base: str = "") -> can_ada.URL | None:
    try:
        parsed = can_ada.parse(urljoin(base, url))
    except (ValueError, TypeError):
        return None
    return parsed if parsed.protocol in ("http:", "https:") and parsed.host else None
