"""Prices, currencies and schema.org words in one canonical form each."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, NamedTuple

import price_parser

_PLAIN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_LOCAL = re.compile(
    r"""
    (?: \d{1,15}                                             # 1299
      | [1-9]\d{0,2} (?P<gap>[ .,'])\d{3} (?:(?P=gap)\d{3}){0,3}  # 1.299.000
      | [1-9]\d? (?:,\d{2}){1,4} ,\d{3}                       # 1,29,999
    )
    (?: [.,]\d{1,2} | [.,][-\u2013\u2014]{1,2} )?             # 12,50 and 12,-
    """,
    re.VERBOSE,
)
_LONGEST = 40
_GAPS = re.compile(r"[\s_-]")

# Signs that stand for one currency only; "$", "¥" and "kr" do not.
_SIGNS = {
    "€": "EUR", "£": "GBP", "₽": "RUB", "₹": "INR", "₩": "KRW", "₺": "TRY", "₴": "UAH",
    "₪": "ILS", "₫": "VND", "฿": "THB", "₱": "PHP", "₦": "NGN", "₸": "KZT", "₾": "GEL",
    "zł": "PLN", "Zł": "PLN", "Kč": "CZK", "Ft": "HUF", "лв": "BGN", "лв.": "BGN", "грн": "UAH",
    "грн.": "UAH", "руб": "RUB", "руб.": "RUB", "lei": "RON", "Rp": "IDR", "euro": "EUR",
    "US$": "USD", "CA$": "CAD", "C$": "CAD", "AU$": "AUD", "A$": "AUD", "NZ$": "NZD",
    "HK$": "HKD", "NT$": "TWD", "S$": "SGD", "MX$": "MXN", "R$": "BRL", "CN¥": "CNY",
}  # fmt: skip


def _words(*words: str) -> dict[str, str]:
    """Every usual spelling of schema.org's words; the rest is left to `_word`."""
    spelt = ("{}", "https://schema.org/{}", "http://schema.org/{}")
    usual = {spelling.format(word): word for word in words for spelling in spelt}
    return usual | {word.lower(): word for word in words}


_AVAILABILITY = _words(
    "BackOrder", "Discontinued", "InStock", "InStoreOnly", "LimitedAvailability", "MadeToOrder",
    "OnlineOnly", "OutOfStock", "PreOrder", "PreSale", "Reserved", "SoldOut",
)  # fmt: skip
_CONDITION = _words("DamagedCondition", "NewCondition", "RefurbishedCondition", "UsedCondition")


class Price(NamedTuple):
    """An amount as the shortest plain decimal, and the currency written beside it, if any."""

    amount: str
    currency: str = ""


def price(raw: Any) -> Price | None:
    """The price that a JSON value states; None unless it states exactly one.

    The amount has no sign, no exponent, no group separators, no leading and no trailing zeros:
    equal prices have equal text. Numbers and plain decimals are taken as schema.org defines them
    (``"1.299"`` is less than two); only what is neither is read as people write prices.

    >>> price("19.90"), price(19), price("1.299,00 €")
    (Price(amount='19.9', currency=''), Price(amount='19', currency=''), \
Price(amount='1299', currency='EUR'))
    >>> price("call us"), price(-1), price("from 5 to 7 €"), price("free")
    (None, None, None, None)
    """
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = str(raw) if abs(raw) < 10**15 else None
    if not isinstance(raw, str) or len(raw) > _LONGEST:
        return None
    if _PLAIN.fullmatch(raw):
        return Price(_shortest(raw))
    text = raw.strip()
    return _checked(Decimal(text)) if _NUMBER.fullmatch(text) else _local(text)


def _shortest(text: str) -> str:
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if text.startswith("0"):
        text = text.lstrip("0")
        return text if text[:1].isdigit() else "0" + text
    return text


def _checked(amount: Decimal, currency: str = "") -> Price | None:
    text = f"{amount:f}"
    return Price(_shortest(text), currency) if _PLAIN.fullmatch(text) else None


def _local(text: str) -> Price | None:
    """A price as people write it, with nothing else around it than a currency."""
    text = " ".join(text.replace("\u2019", "'").split())
    parsed = price_parser.Price.fromstring(text)
    sign = parsed.currency or ""
    if parsed.amount is None or not _LOCAL.fullmatch(text.replace(sign, "", 1).strip()):
        return None
    return _checked(parsed.amount, currency(sign))


def currency(raw: Any) -> str:
    """The ISO 4217 code in capitals; empty when unknown.

    >>> currency("eur"), currency("€"), currency("$"), currency(None)
    ('EUR', 'EUR', '', '')
    """
    if not isinstance(raw, str):
        return ""
    text = raw.strip()
    code = text.upper() if len(text) == 3 and text.isascii() and text.isalpha() else ""
    return _SIGNS.get(text, code)


def availability(raw: Any) -> str:
    """The last part of a schema.org ItemAvailability; empty when unknown.

    >>> availability("http://schema.org/InStock"), availability("in stock"), availability("yes")
    ('InStock', 'InStock', '')
    """
    return _word(raw, _AVAILABILITY)


def condition(raw: Any) -> str:
    """The last part of a schema.org OfferItemCondition; empty when unknown."""
    return _word(raw, _CONDITION)


def _word(raw: Any, known: dict[str, str]) -> str:
    if isinstance(raw, list) and raw:
        raw = raw[0]
    if isinstance(raw, dict):
        raw = raw.get("@id")
    if not isinstance(raw, str):
        return ""
    return known.get(raw) or known.get(_GAPS.sub("", term(raw)).lower(), "")


def term(name: str) -> str:
    """A schema.org name without its prefix.

    >>> term("https://schema.org/Product"), term("schema:Product"), term("Product")
    ('Product', 'Product', 'Product')
    """
    return name.strip().rstrip("/").rpartition("/")[2].rpartition(":")[2].rpartition("#")[2]
