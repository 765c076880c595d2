"""What is no new page: visitors' names and trackers in URLs, parts of lists, boxes on hub pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from salticus.urls import TRACKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

LINKS = "a[href], area[href]"
FEWEST_IN_BOX = 3  # different links; with fewer, an element is an item of a list
MOST_BOXES = 200  # that are looked at

_SESSION_NAMES = (
    r"(?:(?:php|j|asp)?sess(?:ion)?_?id\w*|cfid|cftoken|zenid|oscsid|xtcsid)=[^&]*"
    r"|(?:sid|session|sess)=(?=[^&]*\d)[0-9a-z_-]{16,}"
)
_SESSION = re.compile(_SESSION_NAMES, re.I)
_EITHER = re.compile(f"{_SESSION_NAMES}|{TRACKING}", re.I)
_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^?#;/]*|/\([sS]\([^/()]*\)\)", re.I)

_BY_QUERY = re.compile(
    r"&(?:page|paged|page_?(?:no|num|number)|pg|start|offset|seite|pagina"
    r"|calendar|date|day|month|tribe-bar-date|year)=\d[\d-]*(?=&|$)",
    re.I,
)
_BY_PATH = re.compile(r"/(?:page|seite|pagina)[/-]?\d+$|/(?:19|20)\d\d/\d{1,2}(?:/\d{1,2})?$", re.I)
_YEAR = re.compile(
    r"https?://[^/]+/(?:(?:archives?|archiv|blog|calendar|date|kalender|news)/)?(?:19|20)\d\d", re.I
)
_TAIL = 24  # characters of a path that tell
_STARTS = frozenset("0123456789pPsS")  # of its last segment: digits, page, pagina or seite

_WORDS = r"related|recommend(?:ed|ations?)|popular|trending|most[-_]?(?:read|popular|viewed|shared)"
_NAMED = re.compile(rf"(?:^|[\s_-])(?:{_WORDS})(?:$|[\s_-])", re.I)
_NAMES = "related", "recommend", "popular", "trending", "most"


def _with(name: str, *tests: str) -> str:
    """Elements with an attribute that passes a test; most others are told by having none."""
    return f"[{name}]:is({', '.join(f'[{name}{test}]' for test in tests)})"


_BOXES = ", ".join(
    (
        "nav, aside, footer",
        _with("role", "=navigation", "=complementary", "=contentinfo"),
        *(_with(name, *(f"*={word} i" for word in _NAMES)) for name in ("class", "id")),
    )
)
_FRAMES = frozenset({"nav", "aside", "footer", "navigation", "complementary", "contentinfo"})
_GROUP_TAGS = frozenset({"div", "section", "ul", "ol"})


def without_session(url: str) -> str:
    """The URL without the names that servers give to visitors.

    >>> without_session("http://a.example/x;jsessionid=1F?a=1&PHPSESSID=abc&sid=7")
    'http://a.example/x?a=1&sid=7'
    """
    return _thinned(url, _SESSION)


def bare(url: str) -> str:
    """The URL without the names of visitors, and without tracking parameters.

    >>> bare("http://a.example/x?sessionid=1&utm_medium=mail")
    'http://a.example/x'
    """
    return _thinned(url, _EITHER)


def _thinned(url: str, names: re.Pattern[str]) -> str:
    path, _, query = url.partition("?")
    kept = [part for part in query.split("&") if not names.fullmatch(part)]
    if ";" in path or "(" in path:
        path = _IN_PATH.sub("", path)
    return f"{path}?{'&'.join(kept)}" if any(kept) else path


def is_list_part(url: str) -> bool:
    """Whether a URL is that of a later part of a list, or of a year, month or day of a calendar.

    >>> part = "http://a.example/news/page/2", "http://a.example/?start=20", "http://a.example/2026/11/"
    >>> [is_list_part(url) for url in (*part, "http://a.example/2026/11/18/a-storm")]
    [True, True, True, False]
    """
    path, _, query = url.partition("?")
    path = path.rstrip("/")
    # The first test tells most pages, and is cheaper than the search.
    if path[-1:].isdigit() and path[path.rfind("/") + 1] in _STARTS and _is_part(path):
        return True
    return query != "" and _BY_QUERY.search("&" + query) is not None


def _is_part(path: str) -> bool:
    return (_BY_PATH.search(path[-_TAIL:]) or _YEAR.fullmatch(path)) is not None


def boxed(tree: LexborHTMLParser) -> frozenset[int]:
    """The links (`mem_id`) of a hub page that stand in boxes: in every list of its site, or chosen
    by what people read.

    Boxes are `nav`, `aside` and `footer` and what has their role; and `div`, `section`, `ul` and
    `ol` with three links at least, of which a class or the id has one of the words related,
    recommended, recommendations, popular, trending, most-read, most-popular, most-viewed and
    most-shared.
    """
    links: set[int] = set()
    for box in tree.css(_BOXES)[:MOST_BOXES]:
        about = box.attributes
        frame = box.tag in _FRAMES or about.get("role") in _FRAMES
        if frame or (box.tag in _GROUP_TAGS and _is_named(about)):
            inside = box.css(LINKS)
            few = not frame and len({node.attributes["href"] for node in inside}) < FEWEST_IN_BOX
            links.update(() if few else (node.mem_id for node in inside))
    return frozenset(links)


def _is_named(about: Mapping[str, str | None]) -> bool:
    return any(_NAMED.search(about.get(name) or "") for name in ("class", "id"))
