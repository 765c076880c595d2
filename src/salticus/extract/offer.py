"""The offer of a product page: price, currency and availability."""

from __future__ import annotations

import html
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from salticus.extract import jsonld
from salticus.extract.base import Content
from salticus.extract.canonical import canonical
from salticus.extract.jsonld import Node
from salticus.extract.price import availability, condition, currency, price, term
from salticus.types import Value

_PRODUCTS = frozenset({"Product", "ProductGroup", "ProductModel", "IndividualProduct"})
_OFFERS = frozenset({"Offer", "AggregateOffer"})
_NOT_ASKED = frozenset({"ListPrice", "StrikethroughPrice", "SRP", "MSRP", "RegularPrice"})
_ADDRESSES = ("url", "@id")
_SAME = ("@id", "sku", "name")
_LABELS = (("title", "name"), ("brand", "brand"), ("category", "category"))

MAX_OFFERS = 200
MAX_DEPTH = 6
MAX_TITLE = 500


class Offer:
    """Offers from JSON-LD.

    The text is ``price currency availability``, unknown parts left out, the price as the shortest
    plain decimal (19.90 is ``19.9``). None without a price.

    Which offer, when a page has several: of the products at the top of the page, the one whose
    address is the page's, else the first; other nodes count only if they describe the same
    product (same @id, sku or name). Of its offers, the one whose address is the page's, else the
    first with a price, in their order; of an AggregateOffer, lowPrice. Products in lists, such as
    related ones, are other pages' business. The order of keys never matters.

    >>> product = b'{"@type": "Product", "offers": {"price": 19.90, "priceCurrency": "EUR"}}'
    >>> page = b"<script type='application/ld+json'>" + product + b"</script>"
    >>> Offer().extract(Content("http://shop.example/1", page)).text
    '19.9 EUR'
    """

    fast = True

    def extract(self, content: Content) -> Value | None:
        nodes = jsonld.nodes(content)
        return _Page(nodes, content.url).value() if nodes else None


class _Sale(NamedTuple):
    """A price with the offer that states it."""

    amount: str
    currency: str
    offer: Node


class _Page:
    """The nodes of one page. `left` bounds the offers looked at: references may run in rings."""

    def __init__(self, nodes: list[Node], url: str) -> None:
        self.nodes = nodes
        self.url = url
        self.left = MAX_OFFERS

    def value(self) -> Value | None:
        typed = [node for node in self.nodes if _is(node, _PRODUCTS)]
        products = self._main(typed or [node for node in self.nodes if _sells(node)])
        for product in products:
            if sale := self._within(product, 0):
                return _value(sale, product)
        return self._loose(products)

    def _main(self, products: list[Node]) -> list[Node]:
        """The product of this page, as often as it is described."""
        if len(products) <= 1:
            return products
        near = self._nearness(products)
        best = max(near)
        lead = products[near.index(best)]
        return [
            product
            for product, rank in zip(products, near, strict=True)
            if (best and rank == best) or _same(product, lead)
        ]

    def _loose(self, products: list[Node]) -> Value | None:
        """An offer that stands beside its product, or alone."""
        for offer in self._nearest([node for node in self.nodes if _is(node, _OFFERS)]):
            item = self._resolved(offer.get("itemOffered")) or offer
            if products and not any(_same(item, product) for product in products):
                continue
            if sale := self._sale(offer, 0):
                return _value(sale, item)
        return None

    def _within(self, node: Node, depth: int) -> _Sale | None:
        """The first sale among a node's offers, else among its variants' offers."""
        if depth > MAX_DEPTH:
            return None
        for offer in self._listed(node.get("offers")):
            if sale := self._sale(offer, depth):
                return sale
        for variant in self._listed(node.get("hasVariant")):
            if sale := self._within(variant, depth + 1):
                return sale
        return None

    def _sale(self, offer: Node, depth: int) -> _Sale | None:
        code = currency(offer.get("priceCurrency"))
        for stated, other in _stated(offer):
            if stated is not None and (found := price(stated)):
                return _Sale(found.amount, currency(other) or code or found.currency, offer)
        inner = self._within(offer, depth + 1)
        return inner and inner._replace(currency=inner.currency or code)

    def _listed(self, raw: Any) -> list[Node]:
        """The nodes that a property holds, this page's first."""
        if isinstance(raw, dict) and "@id" not in raw:
            return [raw] if self._spend(1) else []
        items = raw if isinstance(raw, list) else [raw]
        found = filter(None, map(self._resolved, items[: self.left]))
        return self._nearest(list(found)) if self._spend(len(items)) else []

    def _spend(self, offers: int) -> bool:
        had = self.left
        self.left = max(0, had - offers)
        return had > 0

    def _resolved(self, raw: Any) -> Node | None:
        """The node itself, or the one at the top of the page that it refers to."""
        if isinstance(raw, dict) and _full(raw):
            return raw
        name = raw.get("@id") if isinstance(raw, dict) else raw
        return self._named.get(name) if isinstance(name, str) else None

    @cached_property
    def _named(self) -> dict[str, Node]:
        ids = ((node.get("@id"), node) for node in reversed(self.nodes) if _full(node))
        return {name: node for name, node in ids if isinstance(name, str)}

    def _nearest(self, nodes: list[Node]) -> list[Node]:
        if len(nodes) <= 1:
            return nodes
        near = self._nearness(nodes)
        return [nodes[i] for i in sorted(range(len(nodes)), key=near.__getitem__, reverse=True)]

    def _nearness(self, nodes: list[Node]) -> list[int]:
        """2 where a node's address is the page's, 1 but for the query, 0 if another or unknown."""
        own = _address(self.url, self.url)
        return [max(_rank(_address(n.get(k), self.url), own) for k in _ADDRESSES) for n in nodes]


def _full(node: Node) -> bool:
    """Whether a node says anything, rather than refer to one that does."""
    return not node.keys() <= {"@id", "@type"}


def _rank(address: tuple[str, str, str] | None, own: tuple[str, str, str] | None) -> int:
    if address is None or own is None or address[:2] != own[:2]:
        return 0
    return 2 if address == own else 1


def _address(raw: Any, base: str) -> tuple[str, str, str] | None:
    if not isinstance(raw, str) or not raw or raw.startswith("#"):
        return None
    try:
        parts = urlsplit(raw if "://" in raw else urljoin(base, raw))
    except ValueError:
        return None
    return parts.netloc.lower().removeprefix("www."), parts.path.rstrip("/"), parts.query


def _is(node: Node, kinds: frozenset[str]) -> bool:
    named = node.get("@type") or node.get("type")
    if type(named) is str and named in kinds:
        return True
    names = named if isinstance(named, list) else [named]
    return any(isinstance(name, str) and term(name) in kinds for name in names)


def _sells(node: Node) -> bool:
    """Whether a node that is no Product has offers all the same, as events and apps do."""
    return "offers" in node and not _is(node, _OFFERS)


def _same(one: Node, other: Node) -> bool:
    """Whether two nodes describe one product."""
    if one is other:
        return True
    pairs = ((one.get(key), other.get(key)) for key in _SAME)
    return any(isinstance(a, str | int) and a != "" and a == b for a, b in pairs)


def _stated(offer: Node) -> Iterable[tuple[Any, Any]]:
    """The prices that an offer states, best first, with the currency beside each, if any."""
    yield offer.get("lowPrice"), None
    yield offer.get("price"), None
    raw = offer.get("priceSpecification")
    for part in raw[:MAX_OFFERS] if isinstance(raw, list) else [raw]:
        if isinstance(part, dict) and _asked(part):
            yield part.get("price"), part.get("priceCurrency")


def _asked(specification: Node) -> bool:
    """Whether it is what the buyer pays: not a crossed-out price, nor one per kilogram."""
    kind = specification.get("priceType")
    crossed = isinstance(kind, str) and term(kind) in _NOT_ASKED
    return not crossed and "referenceQuantity" not in specification


def _value(sale: _Sale, product: Node) -> Value:
    offer = sale.offer
    known = {"price": sale.amount}
    if sale.currency:
        known["currency"] = sale.currency
    if stock := availability(offer.get("availability")) or _stock(offer.get("offers")):
        known["availability"] = stock
    text = " ".join(known.values())
    for field, key in _LABELS:
        if (raw := product.get(key)) and (label := _label(raw)):
            known[field] = label
    if state := condition(offer.get("itemCondition") or product.get("itemCondition")):
        known["condition"] = state
    return Value("offer", text, known)


def _stock(offers: Any) -> str:
    """The first availability among the offers of an AggregateOffer that states none itself."""
    if not isinstance(offers, list):
        return ""
    listed = (item for item in offers[:MAX_OFFERS] if isinstance(item, dict))
    return next(filter(None, (availability(item.get("availability")) for item in listed)), "")


def _label(raw: Any) -> str:
    """A name for people: of a string, of a named node, or of the first in a list."""
    if isinstance(raw, list) and raw:
        raw = raw[0]
    if isinstance(raw, dict):
        raw = raw.get("name")
    if not isinstance(raw, str):
        return ""
    text = raw[: 2 * MAX_TITLE]
    return canonical(html.unescape(text) if "&" in text else text)[:MAX_TITLE].rstrip()
