"""Offers from every syntax in which shops state them, read from the whole document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from selectolax.lexbor import LexborHTMLParser

from salticus.errors import ExtractError
from salticus.extract import jsonld
from salticus.extract.about import PageMetadata
from salticus.extract.base import Content
from salticus.extract.choice import ChosenOffer
from salticus.extract.document import document_of
from salticus.extract.jsonld import Node
from salticus.extract.microdata import MICRODATA, RDFA, Walker
from salticus.extract.naming import different
from salticus.extract.offer import known_of, labels, value, without_site
from salticus.extract.price import Shown, dotted, price
from salticus.extract.stated import Sale
from salticus.types import Value

MARKS = (b"itemprop", b"typeof", b"price:", b"twitter:label", b"ld+json", b"ld&#")
MAX_BODY = 32 * 1024 * 1024
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

_UNSEEN = "script,style,noscript,template"
MAX_TEXT = 2_000_000
MAX_DEEP = 8000

# Elements before which a browser looks for an open paragraph to close.
_BLOCKS = re.compile(
    r"<(/?)(?:address|article|aside|blockquote|center|details|dialog|dir|div|dl|dd|dt|fieldset"
    r"|figcaption|figure|footer|form|h[1-6]|header|hgroup|main|menu|nav|ol|pre|search|section"
    r"|summary|table|ul|li)(?=[\s/>])",
    re.IGNORECASE,
)


def applies(content: Content) -> bool:
    """Whether a page has any mark of a syntax that states offers; costs microseconds.

    >>> applies(Content("http://shop.example/1", b"<p>19.90"))
    False
    """
    body = content.body
    if b"\0" in body[:200]:  # UTF-16 has to be decoded first
        return True
    # From the end, because rfind is two to four times as fast as find.
    if any(body.rfind(mark) >= 0 for mark in MARKS):
        return True
    folded = body.lower()
    return any(folded.rfind(mark) >= 0 for mark in MARKS)


class Markup:
    """Offers from JSON-LD, microdata, RDFa-lite and the meta elements of OpenGraph.

    The text is that of the part ``offer``, and so is the choice among products and offers. Where
    syntaxes disagree, JSON-LD counts before microdata, RDFa and meta elements; what one leaves
    out, the next completes, if they are about the same product. A page that states no offer in
    any of them has none: no price is ever guessed from its text.

    >>> page = b'<p itemscope itemtype="//schema.org/Product"><b itemprop="price">19,90 EUR'
    >>> Markup().extract(Content("http://shop.example/1", page)).text
    '19.9 EUR'
    """

    fast = False

    def extract(self, content: Content) -> Value | None:
        if len(content.body) > MAX_BODY or not applies(content):
            return None
        document = document_of(content)
        text = document.text
        if text.count("<") > MAX_DEEP and _deep(text):
            raise ExtractError(f"{content.url}: elements are nested more than {MAX_DEEP} deep")
        body = text.replace("\0", "\ufffd").encode("utf-8", "replace")
        about = PageMetadata(Content(content.url, body, "text/html", "utf-8"))
        choices = _agreeing(list(_choices(document.nodes, about)))
        found, sale = next(((c, c.sale) for c in choices if c.sale), (None, None))
        if sale and sale.rival:
            sale = _settled(sale, choices, text, about)
        return value(_known(found, sale, choices), about) if found and sale else None


def _deep(text: str) -> bool:
    """Whether elements are nested so deep that parsing takes minutes: it asks each for all above.

    Tags are only counted, so an element that closes others by itself counts as open: many
    thousands of these in one page are as odd.
    """
    depth = 0
    for tag in _BLOCKS.finditer(text):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > MAX_DEEP:
            return True
    return False


def _choices(tree: LexborHTMLParser, about: PageMetadata) -> Iterator[ChosenOffer]:
    """What each syntax says, the most trusted first."""
    folded = about.content.body.lower()
    above: list[Node] = jsonld.nodes(about.content, jsonld.WIDE)
    if above:
        yield ChosenOffer(above, about)
    for syntax, mark in ((MICRODATA, b"itemscope"), (RDFA, b"typeof")):
        nodes = jsonld.unfolded(Walker(tree, syntax).nodes()) if mark in folded else []
        if nodes:
            yield ChosenOffer(nodes, about, above)
            above = [*above, *nodes]
    if said := _meta_node(tree, about):
        yield ChosenOffer([said], about, above)


def _agreeing(choices: list[ChosenOffer]) -> list[ChosenOffer]:
    """Those that speak of the same product as the first that names one."""
    lead = next((choice.product for choice in choices if choice.product.get("name")), None)
    if lead is None:
        return choices
    return [choice for choice in choices if not different(choice.product, lead)]


def _known(found: ChosenOffer, sale: Sale, choices: list[ChosenOffer]) -> dict[str, str]:
    """What the choice tells, completed by the others."""
    known = known_of(found, sale)
    for choice in (choice for choice in choices if choice is not found):
        other = choice.sale
        more = known_of(choice, other) if other else labels(choice, None)
        if "availability" not in known and (word := more.get("availability") or choice.stock):
            known["availability"] = word
        if other is None or other.amount != sale.amount:
            more.pop("currency", None)
            more.pop("list_price", None)
        known = more | known
    return known


def _settled(sale: Sale, choices: list[ChosenOffer], text: str, about: PageMetadata) -> Sale | None:
    """The sale with the one of its two amounts that another syntax or the text shows."""
    readings = (sale.amount, sale.rival)
    told = {c.sale.amount for c in choices if c.sale and not c.sale.rival} & {*readings}
    told = told or _shown(readings, text, about)
    return sale._replace(amount=told.pop(), rival="") if len(told) == 1 else None


def _shown(readings: tuple[str, str], page: str, about: PageMetadata) -> set[str]:
    """Which of the amounts the text of the page shows."""
    tree = LexborHTMLParser(page)  # a tree of its own, since others go on to read the page's
    for element in tree.css(_UNSEEN):
        element.decompose()
    text = tree.body.text(separator=" ")[:MAX_TEXT] if tree.body else ""
    return {amount for amount in readings if _spelling(amount, dotted(about.tongue)).search(text)}


def _spelling(amount: str, dot: bool) -> re.Pattern[str]:
    """How an amount is written in a language: with its marks, or without any."""
    whole, _, cents = amount.partition(".")
    point, gap = (r"\.", r"[,\s’']") if dot else (",", r"[.\s’']")
    zeros = "0*" if len(cents) > 1 else "0?"
    last = f"{point}{cents}{zeros}" if cents else f"(?:{point}(?:00?|[-–—]+))?"
    head = f"{whole[:-3]}{gap}?{whole[-3:]}" if len(whole) > 3 else whole
    return re.compile(rf"(?<![\d.,]){head}{last}(?![\d]|[.,]\d)")


def _meta_node(tree: LexborHTMLParser, about: PageMetadata) -> Node | None:
    """The product that the meta elements describe; None if they name no price and no stock."""
    said = _metas(tree)
    offer = _offer(said)
    known = {key: _first(said, names) for key, names in _PLAIN.items()}
    kind = said.get("og:type", "").lower().removeprefix("og:")
    if kind.startswith(_OTHERS) or not (offer or known["availability"] or kind == "product"):
        return None
    title = said.get("og:title") or said.get("twitter:title") or ""
    product: Node = {"@type": "Product", "name": without_site(title, about), **known}
    stock = known["availability"] or _label_shown(said, _STOCKS)
    product["offers"] = offer | {"availability": stock}
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
    full = full or Shown(_label_shown(said, _PRICES))
    if not full:
        return {}
    offer: Node = {"@type": "Offer", "price": full, "priceCurrency": _first(said, _CODES)}
    if before:
        offer["priceSpecification"] = [{"price": before, "priceType": "ListPrice"}]
    return {key: part for key, part in offer.items() if part}


def _below(one: str, other: str) -> bool:
    less, more = price(one), price(other)
    return more is None or (less is not None and Decimal(less.amount) < Decimal(more.amount))


def _label_shown(said: dict[str, str], labels: frozenset[str]) -> str:
    """What a card for readers shows beside one of the labels."""
    for number in "1234":
        if said.get(f"twitter:label{number}", "").casefold().strip(" :") in labels:
            return said.get(f"twitter:data{number}", "")
    return ""
