"""The offer of a product page: price, currency and availability, and what is kept beside them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from salticus.extract import jsonld
from salticus.extract.about import PageMetadata, address, language, nearness
from salticus.extract.base import Content
from salticus.extract.canonical import canonical
from salticus.extract.choice import ChosenOffer
from salticus.extract.jsonld import Node
from salticus.extract.naming import is_a, of_site, plain
from salticus.extract.price import price
from salticus.extract.stated import Sale, list_price, nodes_of, readiness, stock
from salticus.extract.words import condition, first, several
from salticus.types import Value

MAX_LOOK = 1024 * 1024

_DECIDING = ("price", "currency", "availability")
# How other syntaxes write what JSON-LD may have left out: in attributes, and in meta elements.
_ELSEWHERE = {
    "currency": (b"priceCurrency", (b"price:currency",)),
    "availability": (b"availability", (b":availability",)),
    "brand": (b"brand", (b"product:brand", b"og:brand")),
    "category": (b"category", (b"product:category",)),
}
_REDUCED = b"_price:amount"
_QUOTES = (b'="', b"='", b"=", b'="schema:')
MAX_LABEL = 500
MAX_CRUMBS = 20
_LONG = 2 * MAX_LABEL

_TRAILS = frozenset({"BreadcrumbList"})
_OLD_CRUMBS = frozenset({"Breadcrumb"})
_GTINS = ("gtin13", "gtin", "gtin14", "gtin12", "gtin8", "ean", "isbn")
_STEPS = re.compile(r"\s*(?:>|›|»|→|&gt;)\s*|\s+[/|]\s+")
_HOMES = frozenset(
    {"home", "homepage", "home page", "start", "startseite", "accueil", "inicio", "início", "hem",
     "hjem", "forside", "etusivu", "domů", "úvod", "főoldal", "kezdőlap", "главная", "головна",
     "anasayfa", "ana sayfa", "トップ", "ホーム", "首页", "首頁", "홈", "beranda", "strona główna",
     "pagina iniziale", "página inicial", "trang chủ", "voorpagina", "hlavní stránka"}
)  # fmt: skip
_NO_LABEL = re.compile(r"https?://|\{\{|\$\{|<%|null$|undefined$|none$|n/a$|-$", re.IGNORECASE)


class Offer:
    """Offers from JSON-LD.

    The text is ``price currency availability``, unknown parts left out, the price as the shortest
    plain decimal (19.90 is ``19.9``). None without a price, and where only a look at the rest of
    the page can tell: when the same number may mean two prices, or when JSON-LD leaves out what
    another syntax on the page seems to state. The part ``markup`` then reads it all.

    Which offer, when a page has several: of the products at the top of the page, the one that it
    calls its main entity, or whose address is the page's, or whose name is its title; none if
    nothing tells. Of its offers and variants, the one that the page's address selects, else the
    first in stock, else the first; of an AggregateOffer, lowPrice. Products in lists, such as
    related ones, are other pages' business. The order of keys never matters.

    >>> product = b'{"@type": "Product", "offers": {"price": 19.90, "priceCurrency": "EUR"}}'
    >>> page = b"<script type='application/ld+json'>" + product + b"</script>"
    >>> Offer().extract(Content("http://shop.example/1", page)).text
    '19.9 EUR'
    """

    fast = True

    def extract(self, content: Content) -> Value | None:
        nodes = jsonld.nodes(content)
        if not nodes:
            return None
        about = PageMetadata(content)
        choice = ChosenOffer(nodes, about)
        if (sale := choice.sale) is None or sale.rival:
            return None
        known = known_of(choice, sale)
        if not known.keys() >= _ELSEWHERE.keys() and _completed(known, about):
            return None
        if "list_price" not in known and about.head.rfind(_REDUCED) >= 0:
            return None
        return value(known, about)


def _completed(known: dict[str, str], about: PageMetadata) -> bool:
    """Whether another syntax seems to state what is not known."""
    head, body = about.head, about.content.body[:MAX_LOOK]
    missing = [_ELSEWHERE[field] for field in _ELSEWHERE if field not in known]
    # From the end, because rfind is two to four times as fast as find.
    if any(head.rfind(mark) >= 0 for _, marks in missing for mark in marks):
        return True
    if body.rfind(b"itemscope") < 0 and body.rfind(b"typeof=") < 0:
        return False
    marks = [quote + name for name, _ in missing for quote in _QUOTES]
    marks += [] if "category" in known else [b"Breadcrumb"]
    return any(body.rfind(mark) >= 0 for mark in marks)


def value(known: dict[str, str], about: PageMetadata) -> Value:
    """The value of a page of which so much is known; the fields that decide come first."""
    text = " ".join([known[field] for field in _DECIDING if field in known])
    if language := about.language:
        known["language"] = language
    if country := about.country:
        known["country"] = country
    return Value("offer", text, known)


def known_of(choice: ChosenOffer, sale: Sale) -> dict[str, str]:
    """All that a choice tells of its sale, empty parts left out; what decides a change first."""
    known = {"price": sale.amount, "currency": sale.currency, "availability": _stock(sale)}
    return {field: said for field, said in known.items() if said} | labels(choice, sale)


def labels(choice: ChosenOffer, sale: Sale | None) -> dict[str, str]:
    """What never decides a change; the variant that is sold comes before its product."""
    named: dict[str, str] = {}
    nodes = choice.products or ([choice.product] if choice.product else [])
    if sale and sale.product is not nodes[0]:
        _label_all(named, sale.product, _NUMBERS, choice)
    for node in nodes:
        _label_all(named, node, _NAMES, choice)
        if not _RARE.isdisjoint(node):
            _label_all(named, node, _OTHERS, choice)
            _label_identified(named, [node.get("identifier"), node.get("productID")])
    if sale:
        if not _NUMBERED.isdisjoint(sale.offer):
            _label_all(named, sale.offer, _NUMBERS, choice)
        if not _RANGES.isdisjoint(sale.offer):
            named.update(_range(sale.offer, sale))
    _label_page(named, choice, nodes)
    if state := (_condition([sale.offer]) if sale else "") or _condition(nodes):
        named["condition"] = state
    return named


def _label_page(named: dict[str, str], choice: ChosenOffer, products: list[Node]) -> None:
    """Add what the page tells in its product's stead."""
    if "title" not in named and choice.about.headings:
        named["title"] = choice.about.headings[0]
    if "category" not in named and (path := trail(choice, products)):
        named["category"] = path
    if not choice.about.tongue and (tongue := _tongue(choice.nodes)):
        named["language"] = tongue


def _tongue(nodes: list[Node]) -> str:
    stated = (label(node["inLanguage"]) for node in nodes if "inLanguage" in node)
    return next(filter(None, (language(tag) for tag in stated)), "")


def _label_all(named: dict[str, str], node: Node, keys: _Keys, choice: ChosenOffer) -> None:
    """Add what a node tells and is not known yet."""
    for key, field, read in keys:
        if key in node and field not in named:
            raw = node[key]
            if type(raw) is str:
                text = _clean(raw[:_LONG])
            elif key in _NUMBERED:
                text = _number(raw)
            else:
                text = label(choice.resolved(raw))
            if text and (text := read(text) if read else text):
                named[field] = text


def _range(offer: Node, sale: Sale) -> dict[str, str]:
    """The list price, and the ends of the range that an offer states."""
    count = _amount(offer.get("offerCount"))
    found = {
        "list_price": list_price(offer, sale.amount),
        "low_price": _amount(offer.get("lowPrice"), sale.currency),
        "high_price": _amount(offer.get("highPrice"), sale.currency),
        "offer_count": count if count.isdigit() else "",
    }
    return {field: stated for field, stated in found.items() if stated}


def _amount(raw: Any, currency: str = "") -> str:
    stated = price(raw, currency)
    return stated.amount if stated else ""


def _condition(nodes: Iterable[Node]) -> str:
    for node in nodes:
        if "itemCondition" in node and (state := condition(node["itemCondition"])):
            return state
    return ""


def _stock(sale: Sale) -> str:
    """The availability of a sale; of an aggregate that states none, that of its offers."""
    own = stock(sale.offer, sale.product)
    inner = sale.offer.get("offers")
    if own or inner is None:
        return own
    told = [(node, word) for node in nodes_of(inner, MAX_CRUMBS) if (word := stock(node, {}))]
    cheapest = (word for node, word in told if _amount(node.get("price")) == sale.amount)
    return next(cheapest, "") or max((w for _, w in told), key=readiness, default="")


def label(raw: Any) -> str:
    """A name for people: of a string, of a named node, or of the first in a list.

    >>> label({"@type": "Brand", "name": "Salt &amp; Pepper"}), label("{{ brand }}")
    ('Salt & Pepper', '')
    """
    if type(raw) is str:
        return _clean(raw[:_LONG])
    raw = first(first(raw, "name", "@value"))
    return _clean(str(raw)[:_LONG]) if isinstance(raw, str) else ""


def _label_identified(named: dict[str, str], stated: list[Any]) -> None:
    """Add the first number for all the world among those that say of which kind they are."""
    for part in (part for raw in stated for part in several(raw, MAX_CRUMBS)):
        found = _IDENTIFIED.fullmatch(_identifier(part))
        if found and (digits := _digits(found[1])):
            named.setdefault("gtin", digits)


def _identifier(raw: Any) -> str:
    """A number behind the name of its kind: "ean:40123455"."""
    if isinstance(raw, dict):
        return f"{label(raw.get('propertyID') or raw.get('name'))}:{_number(raw)}"
    return raw[:_LONG] if isinstance(raw, str) else ""


def _number(raw: Any) -> str:
    """A number by which a thing is known: of a string, an integer, or the first in a list."""
    raw = raw[0] if isinstance(raw, list) and raw else raw
    raw = raw.get("@value", raw.get("value")) if isinstance(raw, dict) else raw
    return str(raw) if type(raw) is int else label(raw)


@lru_cache(1 << 14)  # names of brands and categories return on many pages, titles on every visit
def _clean(text: str) -> str:
    if _NO_LABEL.match(text):
        return ""
    return canonical(html.unescape(text) if "&" in text else text)[:MAX_LABEL].rstrip()


@lru_cache(1 << 12)
def _path(stated: str) -> str:
    """A category as a path; numbers are codes that say nothing to people."""
    return "" if stated.isdigit() else " > ".join(filter(None, _STEPS.split(stated)))


def _digits(text: str) -> str:
    digits = re.sub(r"[\s-]|\.0$", "", text)
    return digits if digits.isascii() and digits.isdigit() and 8 <= len(digits) <= 14 else ""


_Keys = tuple[tuple[str, str, Callable[[str], str] | None], ...]
_NUMBERS: _Keys = (("sku", "sku", None), *((key, "gtin", _digits) for key in _GTINS))
_NAMES: _Keys = (
    ("name", "title", None),
    ("brand", "brand", None),
    ("category", "category", _path),
    ("sku", "sku", None),
)
_OTHERS: _Keys = (("manufacturer", "brand", None), *_NUMBERS)
_RARE = frozenset(("manufacturer", "identifier", "productID", *_GTINS))
_NUMBERED = frozenset(("sku", *_GTINS))
_IDENTIFIED = re.compile(r"\s*(?:gtin-?\d{0,2}|ean-?\d{0,2}|upc|isbn-?(?:13)?):(.*)", re.IGNORECASE)
_RANGES = frozenset({"priceSpecification", "lowPrice", "highPrice"})


def trail(choice: ChosenOffer, products: list[Node]) -> str:
    """The first breadcrumb of the page as the path of a category."""
    name = plain(products[0].get("name")) if products else ""
    trails = (_trail(node, name, choice.about) for node in _breadcrumbs(choice.nodes))
    return next((" > ".join(trail) for trail in trails if trail), "")[:MAX_LABEL].rstrip(" >")


def _breadcrumbs(nodes: list[Node]) -> Iterator[Node]:
    old = [node for node in nodes if is_a(node, _OLD_CRUMBS)]
    if old:
        yield {"itemListElement": [{"name": n.get("title"), "item": n.get("url")} for n in old]}
    for node in nodes:
        every = (node, *several(node.get("breadcrumb"), MAX_CRUMBS))
        yield from (part for part in every if is_a(part, _TRAILS))


def _trail(node: Node, product: str, about: PageMetadata) -> list[str]:
    """The names between the home page and the product."""
    items = sorted(nodes_of(node.get("itemListElement"), MAX_CRUMBS), key=_position)
    named = ((label(item.get("name")) or label(item.get("item")), item) for item in items)
    crumbs = [(name, _crumb_place(item)) for name, item in named if name]
    if crumbs and _is_home(*crumbs[0], about):
        crumbs = crumbs[1:]
    if crumbs and _is_self(*crumbs[-1], crumbs, product, about):
        crumbs = crumbs[:-1]
    return [name for name, _ in crumbs]


def _position(item: Node) -> int:
    stated = _amount(item.get("position"))
    return int(stated) if stated.isdigit() else 0


def _crumb_place(item: Node) -> str:
    place = item.get("item") or item.get("url")
    place = first(place, "@id", "url") if isinstance(place, dict) else place
    return place if isinstance(place, str) else ""


def _is_home(name: str, place: str, about: PageMetadata) -> bool:
    if name.casefold() in _HOMES:
        return True
    where = address(place, about.url)
    if where is None or about.own is None or where.host != about.own.host or where.query:
        return False
    # "/" and the root of a language, such as "/de" or "/en-gb"
    return re.fullmatch(r"(?:/[a-z]{2}(?:[-_][a-z]{2})?)?", where.path, re.IGNORECASE) is not None


def _is_self(
    name: str, place: str, crumbs: list[tuple[str, str]], product: str, about: PageMetadata
) -> bool:
    if product and plain(name) == product:
        return True
    if not place:
        return len(crumbs) > 1 and all(where for _, where in crumbs[:-1])
    where = address(place, about.url)
    return any(nearness(where, own) for own in about.addresses)


def without_site(title: str, about: PageMetadata) -> str:
    """A title without the name of the site that many add to it.

    >>> from salticus.extract.base import Content
    >>> page = b'<meta property="og:site_name" content="Joinery"></head>'
    >>> without_site("Oak shelf | Joinery", PageMetadata(Content("https://joinery.example/", page)))
    'Oak shelf'
    """
    for heading in about.headings:
        if plain(heading) and plain(heading) in plain(title):
            return heading
    for sign in "|-–—·:•":
        start, mark, last = title.rpartition(f" {sign} ")
        if mark and of_site(last, about):
            return start.strip()
    return title
