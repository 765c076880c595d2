"""Products in the meta elements of a page, as a node like any other syntax gives."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from salticus.extract.about import PageMetadata
from salticus.extract.jsonld import Node
from salticus.extract.labels import without_site
from salticus.extract.price import Shown, price

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_METAS = 500
MAX_VALUE = 2000

# Pages that say they are something else than a product; "product.group" is a list.
_OTHERS = ("article", "profile", "video", "music", "product.group", "blog")
_PRICES = frozenset(
    {"price", "preis", "prix", "precio", "prezzo", "preço", "prijs", "cena", "pris", "ár", "цена",
     "fiyat", "価格", "价格", "價格", "가격", "harga", "giá", "τιμή", "preț", "hinta"}
)  # fmt: skip
_STOCKS = frozenset(
    {"availability", "verfügbarkeit", "disponibilité", "disponibilidad", "disponibilità",
     "disponibilidade", "beschikbaarheid", "dostępność", "dostupnost", "lagerstatus", "наличие"}
)  # fmt: skip
_AMOUNTS = ("product:price:amount", "og:price:amount", "product:price", "og:price")
_LISTED = (
    "product:original_price:amount", "og:price:standard_amount", "og:original_price:amount",
    "product:regular_price:amount",
)  # fmt: skip
_SALES = ("product:sale_price:amount", "og:sale_price:amount")
_CODES = (
    "product:price:currency", "og:price:currency", "product:sale_price:currency",
    "product:original_price:currency",
)  # fmt: skip
_PLAIN = {
    "brand": ("product:brand", "og:brand"),
    "category": ("product:category",),
    "sku": ("product:retailer_item_id", "product:sku"),
    "gtin": ("product:gtin", "product:ean", "product:upc", "product:isbn"),
    "mpn": ("product:mfr_part_no",),
    "itemCondition": ("product:condition", "og:condition"),
    "availability": ("product:availability", "og:availability"),
    "url": ("og:url",),
}


def node(tree: LexborHTMLParser, about: PageMetadata) -> Node | None:
    """The product that the meta elements describe; None if they name no price and no stock."""
    said = _metas(tree)
    offer = _offer(said)
    known = {key: _first(said, names) for key, names in _PLAIN.items()}
    kind = said.get("og:type", "").lower().removeprefix("og:")
    if kind.startswith(_OTHERS) or not (offer or known["availability"] or kind == "product"):
        return None
    title = said.get("og:title") or said.get("twitter:title") or ""
    product: Node = {"@type": "Product", "name": without_site(title, about), **known}
    product["offers"] = offer | {"availability": known["availability"] or _shown(said, _STOCKS)}
    return {key: part for key, part in product.items() if part}


def _metas(tree: LexborHTMLParser) -> dict[str, str]:
    """The meta elements by name, the first of each."""
    found: dict[str, str] = {}
    for element in tree.css("meta[property],meta[name]")[:MAX_METAS]:
        attributes = element.attributes
        value = (attributes.get("content") or "")[:MAX_VALUE].strip()
        for key in (attributes.get("property"), attributes.get("name")):
            if key and value:
                found.setdefault(key[:MAX_VALUE].strip().lower(), value)
    return found


def _first(said: dict[str, str], names: tuple[str, ...]) -> str:
    return next((said[name] for name in names if name in said), "")


def _offer(said: dict[str, str]) -> Node:
    """The price asked now, with the one before it, if both are stated."""
    full, reduced = _first(said, _AMOUNTS), _first(said, _SALES)
    before = _first(said, _LISTED)
    if reduced and price(reduced) and _below(reduced, full):
        full, before = reduced, before or full
    full = full or Shown(_shown(said, _PRICES))
    if not full:
        return {}
    offer: Node = {"@type": "Offer", "price": full, "priceCurrency": _first(said, _CODES)}
    if before:
        offer["priceSpecification"] = [{"price": before, "priceType": "ListPrice"}]
    return {key: part for key, part in offer.items() if part}


def _below(one: str, other: str) -> bool:
    less, more = price(one), price(other)
    return more is None or (less is not None and Decimal(less.amount) < Decimal(more.amount))


def _shown(said: dict[str, str], labels: frozenset[str]) -> str:
    """What a card for readers shows beside one of the labels."""
    for number in "1234":
        if said.get(f"twitter:label{number}", "").casefold().strip(" :") in labels:
            return said.get(f"twitter:data{number}", "")
    return ""
