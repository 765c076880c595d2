"""What an offer asks: its prices, told from list prices, unit prices, rates and placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from salticus.extract.about import PageMetadata
from salticus.extract.jsonld import Node
from salticus.extract.naming import is_a
from salticus.extract.price import Price, currency, plausible, price, rival
from salticus.extract.words import availability, several, term

MAX_PARTS = 50
MAX_LOOK = 512 * 1024

_LIST = frozenset({"ListPrice", "StrikethroughPrice", "SRP", "MSRP", "RegularPrice"})
_NOT_ASKED = _LIST | {"MinimumAdvertisedPrice", "InvoicePrice"}
_CHARGES = frozenset({"DeliveryChargeSpecification", "PaymentChargeSpecification"})
_RATES = ("billingDuration", "billingIncrement", "billingPeriod", "billingStart")
_TAXED = "valueAddedTaxIncluded"
_WHOLE_PRICE = frozenset({"SalePrice", "Price", ""})
_PIECES = frozenset(
    {"", "c62", "h87", "ea", "pce", "pc", "nmp", "1", "piece", "pieces", "each", "unit", "item",
     "stück", "stk", "stuk", "pièce", "pezzo", "unidad"}
)  # fmt: skip
_PERIODS = re.compile(
    r"^(?:MON|ANN|WEE|DAY|HUR|P\d+[DWMY])$|month|year|week|monat|jahr|mois|mes|maand|an$",
    re.IGNORECASE,
)
_HIRE = frozenset({"LeaseOut", "Rent", "Repair", "Maintain", "Dispose", "Buy"})
_TOKENS = frozenset({"0", "0.01"})
_GONE = frozenset({"OutOfStock", "SoldOut", "Discontinued"})
_LATER = frozenset({"BackOrder", "PreOrder", "PreSale", "MadeToOrder", "Reserved"})
_APPS = frozenset({"SoftwareApplication", "MobileApplication", "WebApplication", "VideoGame"})
_PHRASES = (
    "on request|on application|call for|call us|contact us for|request a quote|auf anfrage|"
    "anfragen|sur demande|sur devis|su richiesta|bajo petici|bajo consulta|a consultar|"
    "sob consulta|op aanvraag|prijs aanvragen|na zapytanie|na dotaz|på förfrågan|på foresp|"
    "по запросу|お問い合わせください"
)
_ON_REQUEST = _PHRASES.encode().split(b"|")


class Sale(NamedTuple):
    """A price with the offer that states it, of the product or variant that is sold.

    `rival` is the other amount that the same text may mean; empty if there is no doubt.
    """

    amount: str
    currency: str
    offer: Node
    product: Node
    rival: str = ""


def sale(offer: Node, product: Node, about: PageMetadata) -> Sale | None:
    """What an offer asks of the buyer now; None if it does not say."""
    code = currency(offer.get("priceCurrency"), about.tongue)
    if not code and "priceSpecification" in offer:
        named = (part.get("priceCurrency") for part in nodes_of(offer["priceSpecification"]))
        code = next(filter(None, map(currency, named)), "")
    for stated, other in _stated(offer):
        if stated is None:
            continue
        known = currency(other) if other else code
        tongue = about.tongue if _local(stated) else ""
        found = price(stated, known, tongue)
        if found is None:
            continue
        amount, known = found.amount, known or found.currency or _sign(offer, found, about)
        meant = amount not in _TOKENS or _meant(amount, offer, product, about)
        if meant and plausible(amount, known):
            return Sale(amount, known, offer, product, tongue and rival(stated, known, tongue))
    return None


def _sign(offer: Node, found: Price, about: PageMetadata) -> str:
    """The currency that people see beside the same amount."""
    seen = price(offer["@shown"], "", about.tongue) if "@shown" in offer else None
    return seen.currency if seen and seen.amount == found.amount else ""


def _local(stated: Any) -> bool:
    """Whether reading a price takes the language of the page."""
    plain = type(stated) is str and stated[-3:-2] == "." and stated[0].isdigit()
    return not plain and type(stated) is not int


def _stated(offer: Node) -> Iterable[tuple[Any, Any]]:
    """The prices that an offer states, best first, with the currency beside each, if any."""
    own = offer.get("price")
    if "priceSpecification" not in offer:
        return ((offer.get("lowPrice"), None), (own, None))
    given = nodes_of(offer["priceSpecification"])
    asked = [
        (part.get("price", part.get("minPrice")), part.get("priceCurrency"))
        for part in _with_tax(given)
        if _asked(part)
    ]
    first = [] if _is_rate(own, given) else [*_lower(own, asked, given), (own, None)]
    return [(offer.get("lowPrice"), None), *first, *asked]


def _with_tax(parts: list[Node]) -> list[Node]:
    """The specifications without those before tax, if others are said to include it."""
    said = [_word(str(part.get(_TAXED))).lower() for part in parts]
    if "true" not in said:
        return parts
    return [part for part, word in zip(parts, said, strict=True) if word != "false"]


def nodes_of(raw: Any, most: int = MAX_PARTS) -> list[Node]:
    """The nodes among what a property states."""
    return [part for part in several(raw, most) if isinstance(part, dict)]


def _lower(own: Any, asked: list[tuple[Any, Any]], parts: list[Node]) -> Iterator[tuple[Any, Any]]:
    """What is asked below the list price, where an offer repeats the list price as its price."""
    before, said = price(own), [price(part.get("price")) for part in parts if _listed(part)]
    if before and before in said:
        for stated, code in asked:
            now = price(stated)
            if now and Decimal(now.amount) < Decimal(before.amount):
                yield stated, code


def _is_rate(own: Any, parts: list[Node]) -> bool:
    """Whether the price of an offer is repeated as what is paid each month."""
    stated = own is not None and price(own)
    return bool(stated) and stated in [price(part.get("price")) for part in parts if _recurs(part)]


def _asked(part: Node) -> bool:
    """Whether it is what the buyer pays: not crossed out, not per kilogram, not for members."""
    if _word(part.get("priceType")) in _NOT_ASKED or "validForMemberTier" in part:
        return False
    if _recurs(part) or is_a(part, _CHARGES) or _bulk(part):
        return False
    unit = part.get("unitCode") or part.get("unitText")
    return _piece(unit) and _whole(part.get("referenceQuantity"))


def _listed(part: Node) -> bool:
    return _word(part.get("priceType")) in _LIST


def _recurs(part: Node) -> bool:
    """Whether a price is one of many to come: a rate, a rent, an instalment."""
    rates = any(part.get(key) is not None for key in _RATES)
    if rates or _word(part.get("priceComponentType")) not in _WHOLE_PRICE:
        return True
    quantity = part.get("referenceQuantity")
    nodes = (part, quantity) if isinstance(quantity, dict) else (part,)
    units = (node.get(key) for node in nodes for key in ("unitCode", "unitText"))
    return any(isinstance(unit, str) and bool(_PERIODS.search(unit[:40])) for unit in units)


def _whole(quantity: Any) -> bool:
    """Whether a reference quantity is the thing itself: one piece, or what the pack contains."""
    if quantity is None:
        return True
    if not isinstance(quantity, dict):
        return False
    unit = quantity.get("unitCode") or quantity.get("unitText")
    return "valueReference" in quantity or (isinstance(unit, str) and _piece(unit))


def _piece(unit: Any) -> bool:
    return unit is None or (isinstance(unit, str) and unit.strip().rstrip(".").lower() in _PIECES)


def _bulk(node: Node) -> bool:
    """Whether a price is for buyers of several."""
    quantity = node.get("eligibleQuantity")
    least = price(quantity.get("minValue")) if isinstance(quantity, dict) else None
    return least is not None and Decimal(least.amount) > 1


def _word(raw: Any) -> str:
    return term(raw) if isinstance(raw, str) else ""


def for_sale(offer: Node) -> bool:
    """Whether an offer sells one piece to anybody: not a lease, not a price for ten.

    >>> for_sale({"businessFunction": "http://purl.org/goodrelations/v1#LeaseOut"}), for_sale({})
    (False, True)
    """
    if "businessFunction" in offer and _word(offer["businessFunction"]) in _HIRE:
        return False
    return "eligibleQuantity" not in offer or not _bulk(offer)


def _meant(amount: str, offer: Node, product: Node, about: PageMetadata) -> bool:
    """Whether next to nothing is really asked: nobody is told to ask, and 0 can be had."""
    seen = about.content.body[:MAX_LOOK].lower()
    if any(seen.rfind(phrase) >= 0 for phrase in _ON_REQUEST):
        return False
    word = stock(offer, product)
    return amount != "0" or bool(word and readiness(word)) or is_a(product, _APPS)


def stock(offer: Node, product: Node) -> str:
    """The availability that an offer states, or its product in its place."""
    raw = offer.get("availability")
    return availability(raw) or (availability(product.get("availability")) if product else "")


def readiness(word: str) -> int:
    """2 if a thing can be had, or nothing is said of it; 1 if later; 0 if not."""
    return 0 if word in _GONE else 1 if word in _LATER else 2


def list_price(offer: Node, amount: str) -> str:
    """The price before the reduction; empty if none is stated, or none that is higher."""
    for part in nodes_of(offer.get("priceSpecification")):
        found = price(part.get("price")) if _listed(part) else None
        if found and Decimal(found.amount) > Decimal(amount):
            return found.amount
    return ""
