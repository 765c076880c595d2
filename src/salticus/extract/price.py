"""Prices and currencies in one canonical form, however they are written."""

from __future__ import annotations

import html
import re
from decimal import Decimal
from functools import lru_cache
from struct import pack, unpack
from typing import Any, NamedTuple

from salticus.extract.words import first

_ISO = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN
    BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS
    GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KRW
    KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD
    NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD
    SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES
    VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL
"""
_CODES = frozenset(_ISO.split())
_OLD = {"RMB": "CNY", "RUR": "RUB", "BYR": "BYN", "NTD": "TWD", "EURO": "EUR", "STG": "GBP"}

# Signs that stand for one currency only.
_ALONE = {
    "AED": "د.إ د.إ.", "AMD": "֏", "AUD": "AU$ A$", "AZN": "₼", "BDT": "৳", "BGN": "лв лв.",
    "BRL": "R$", "CAD": "CA$ C$", "CHF": "Fr. SFr. sFr.", "CNY": "CN¥ 元", "CRC": "₡",
    "CZK": "Kč kč", "EGP": "ج.م ج.م.", "EUR": "€ euro Euro euros", "GBP": "£", "GEL": "₾",
    "HKD": "HK$", "HUF": "Ft ft", "IDR": "Rp Rp.", "ILS": '₪ ש"ח ש״ח', "INR": "₹", "JPY": "JP¥ 円",
    "KRW": "₩ 원", "KWD": "د.ك د.ك.", "KZT": "₸", "MXN": "MX$", "MYR": "RM", "NGN": "₦",
    "NZD": "NZ$", "PEN": "S/ S/.", "PHP": "₱", "PLN": "zł Zł zl", "PYG": "₲", "RON": "lei Lei",
    "RSD": "din.", "RUB": "₽ руб руб. р. р", "SAR": "ر.س ر.س. ﷼", "SGD": "S$", "THB": "฿ บาท",
    "TRY": "₺ TL tl", "TWD": "NT$", "UAH": "₴ грн грн.", "USD": "US$", "VND": "₫ đ Đ VNĐ vnđ",
}  # fmt: skip
SIGNS = {sign: code for code, signs in _ALONE.items() for sign in signs.split()}
# Signs that several countries use: the page's language tells which, or nobody does.
_SHARED = {
    "kr": {"sv": "SEK", "da": "DKK", "nb": "NOK", "nn": "NOK", "no": "NOK", "is": "ISK"},
    "¥": {"ja": "JPY", "zh": "CNY"},
    "$": {
        "us": "USD", "ca": "CAD", "au": "AUD", "nz": "NZD", "mx": "MXN", "sg": "SGD", "hk": "HKD",
        "tw": "TWD", "cl": "CLP", "co": "COP", "ar": "ARS", "uy": "UYU", "pr": "USD",
    },
    "R": {"za": "ZAR"},
    "ريال": {"sa": "SAR", "qa": "QAR", "om": "OMR", "ye": "YER"},
    "درهم": {"ae": "AED", "ma": "MAD"},
    "دينار": {"kw": "KWD", "jo": "JOD", "bh": "BHD", "tn": "TND", "dz": "DZD"},
    "جنيه": {"eg": "EGP", "sd": "SDG"},
    "Rs": {"in": "INR", "hi": "INR", "pk": "PKR", "ur": "PKR", "lk": "LKR", "np": "NPR"},
}  # fmt: skip
_SHARED |= dict.fromkeys(("kr.", "Kr", "Kr.", "KR"), _SHARED["kr"])
_SHARED |= dict.fromkeys(("Rs.", "₨"), _SHARED["Rs"])

# By use, not by statute: nobody prices in the hundredth part of a forint or a rupiah.
_WHOLE_ONLY = """
    BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KHR KMF KRW LAK MGA MMK PYG RWF TZS UGX UZS VND VUV
    XAF XOF XPF
"""
WHOLE = frozenset(_WHOLE_ONLY.split())
THOUSANDTHS = frozenset(["BHD", "JOD", "KWD", "LYD", "OMR", "TND"])
_SMALL = WHOLE | frozenset(["RUB", "INR", "KZT", "NGN", "LBP", "AMD", "RSD", "ARS", "PKR", "THB"])

_PLAIN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_WHOLE = r"""
    (?P<whole> [1-9][0-9]{0,2} (?P<gap>[ .,'])[0-9]{3} (?:(?P=gap)[0-9]{3}){0,3}  # 1.299.000
      | [1-9][0-9]? (?:,[0-9]{2}){1,4} ,[0-9]{3}                                  # 1,29,999
      | [0-9]{1,15}
    )"""
_LOCAL = re.compile(
    rf"""(?P<before>[^0-9]{{0,24}}?)
    {_WHOLE}
    (?: (?!(?P=gap))[.,] (?P<cents>[0-9]{{1,2}}|[0-9]{{2}}00)(?![0-9])
      | [.,:]\s?[-\u2013\u2014\u2212]{{1,2}}                                      # 12,- and 12:-
    )?
    (?P<after>[^0-9]{{0,40}})""",
    re.VERBOSE,
)
_SPLIT = re.compile(
    rf"(?P<before>){_WHOLE}\s?(?P<after>[^0-9\s.,]{{1,3}})\s?(?P<cents>[0-9]{{2}})", re.VERBOSE
)
_DOUBT = re.compile(r"0*([1-9][0-9]{0,2})([.,])([0-9]{3})")
_LONGEST = 80
_NOISE = Decimal("1e-12")  # of an amount: a few steps of a double
_NOISY = 7  # decimals from which on an amount may have some
_DIGITS = (0xFF10, 0x0660, 0x06F0, 0x0966, 0x09E6, 0x0E50)  # wide, Arabic, Persian, Indian, Thai
_UNSEEN = (0xAD, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_TABLE: dict[int, str] = {
    **{zero + digit: str(digit) for zero in _DIGITS for digit in range(10)},
    **dict.fromkeys(map(ord, "\u2019\u02bc\u2018`\u00b4\u02b9"), "'"),
    **dict.fromkeys(_UNSEEN, ""),
    **{ord(wide): plain for wide, plain in zip("．，：￥＄￦－（）", ".,:¥$₩-()", strict=True)},
    ord("٫"): ".",
    ord("٬"): ",",
    ord("،"): ",",
}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_CENTS = re.compile(r"(?<=[0-9])[⁰¹²³⁴⁵⁶⁷⁸⁹]{2}")
# What may stand beside a price and leaves it what it is. "From", "per" and "plus tax" do not.
_NOTES = re.compile(
    r"""\b(?:inkl?|incl?|including|inclusive|includes|mit|der|gesetzl|mwst|ust|vat|gst|tax(?:es)?
    |ttc|tva|iva|btw|moms|dph|áfa|kdv|ндс|comprise?|inclus[aei]?|incluid[ao]|incluíd[ao]|dahil
    |preis|price|prix|precio|prezzo|preço|prijs|cena|pris|ár|цена|fiyat|our|your|unser|ihr|votre
    |nur|only|now|jetzt|seulement|solo|sólo|nu|aktuell(?:er)?|current|sale|de|con|med|s\sdph|vč)\b\.?
    |(?:/|\b(?:pro|per|par|je|à|por)\b)\s*
    (?:stück|stk|piece|pcs?|stuk|pièce|pezzo|pieza|unidad|unidade|szt|ks|db|шт|adet|個|개)\b\.?
    |税込み?|税込価格|価格|价格|価额|가격|السعر|[*:()¹²†]|,\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
_SIGN = re.compile("|".join(sorted(map(re.escape, SIGNS), key=len, reverse=True)))
_DOLLAR = re.compile(r"\b(US|CA|AU|NZ|HK|NT|MX|C|A|S|R)\s\$")
# Languages in which the decimal mark is a dot; in the others it is a comma.
_LANGUAGES = "en ja zh ko th he hi bn ta ur ms fil ar mt ga cy"
_REGIONS = "ch li mx gt hn ni pa pe do sv pr us gb au in"
_DOTTED, _DOTTED_REGIONS = frozenset(_LANGUAGES.split()), frozenset(_REGIONS.split())


def currency(raw: Any, tongue: str = "") -> str:
    """The ISO 4217 code in capitals; empty when unknown. `tongue` tells what a shared sign means.

    >>> currency("eur"), currency("&euro;"), currency("$"), currency("$", "en-us"), currency(None)
    ('EUR', 'EUR', '', 'USD', '')
    """
    if type(raw) is str and raw in _CODES:
        return raw
    raw = first(raw, "@value")
    if not isinstance(raw, str) or len(raw) > 40:
        return ""
    text = html.unescape(raw).strip()
    code = text.rpartition("/")[2].upper()
    return SIGNS.get(text) or _OLD.get(code, code if code in _CODES else signed(text, tongue) or "")


def signed(token: str, tongue: str = "") -> str | None:
    """The code that a sign beside a price means; empty if several may be meant, None if none.

    >>> signed("kr", "sv"), signed("kr"), signed("kg"), signed("$", "en-au")
    ('SEK', '', None, 'AUD')
    """
    if token in SIGNS:
        return SIGNS[token]
    if token in _SHARED:
        meant = (_SHARED[token].get(part) for part in reversed(tongue.lower().split("-")))
        return next(filter(None, meant), "")
    return token if token in _CODES else _OLD.get(token)


def plausible(amount: str, code: str) -> bool:
    """Whether a price is one that anybody asks: no row of nines, and not beyond all bounds.

    >>> plausible("999.99", "EUR"), plausible("999999", "EUR"), plausible("999999", "IDR")
    (True, False, True)
    """
    if len(amount) < 6:
        return True
    whole = amount.partition(".")[0]
    small = code in _SMALL
    if len(whole) >= (8 if small else 6) and not whole.strip("9"):
        return False
    return len(whole) <= (12 if small else 8)


class Price(NamedTuple):
    """An amount as the shortest plain decimal, and the currency written beside it, if any."""

    amount: str
    currency: str = ""


class Shown(str):
    """A text that people see, in their own notation, rather than a value for machines."""

    __slots__ = ()


def price(raw: Any, code: str = "", tongue: str = "") -> Price | None:
    """The price that a value states; None unless it states exactly one.

    The amount has no sign, no exponent, no group separators, no leading and no trailing zeros:
    equal prices have equal text. Numbers and plain decimals are taken as schema.org defines them
    (``"1.299"`` is less than two); only what is neither is read as people write prices. `code` is
    the currency where it is known from elsewhere, `tongue` the language of the page.

    >>> price("19.90"), price(19), price("1.299,00 €")
    (Price(amount='19.9', currency=''), Price(amount='19', currency=''), \
Price(amount='1299', currency='EUR'))
    >>> price("1.299", "JPY"), price(Shown("1.299"), tongue="de"), price("1 299 kr", tongue="sv")
    (Price(amount='1299', currency=''), Price(amount='1299', currency=''), \
Price(amount='1299', currency='SEK'))
    >>> price("call us"), price(-1), price("from 5 to 7 €"), price("free")
    (None, None, None, None)
    """
    if type(raw) is str and len(raw) <= _LONGEST:
        return _read(raw, code, tongue)
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = str(raw) if abs(raw) < 10**15 else None
    if isinstance(raw, list):
        return _one(raw, code, tongue)
    if isinstance(raw, dict):
        raw = raw.get("@value")
        return price(raw, code, tongue) if isinstance(raw, str | int) else None
    return _stated(raw, code, tongue) if isinstance(raw, str) and len(raw) <= _LONGEST else None


@lru_cache(1 << 14)  # the same prices are asked everywhere
def _read(raw: str, code: str, tongue: str) -> Price | None:
    if _PLAIN.fullmatch(raw):
        return Price(_shortest(_regrouped(raw, code) if raw[-4:-3] == "." else raw))
    return _stated(raw, code, tongue)


def _stated(raw: str, code: str, tongue: str) -> Price | None:
    """The price that a text states, as machines write it or as people do."""
    text = raw.strip()
    grouped = code not in THOUSANDTHS and _people(raw, tongue) and _DOUBT.fullmatch(text)
    if _NUMBER.fullmatch(text) and not grouped:
        return _checked(Decimal(_regrouped(text, code)))
    return _local(text, code, tongue)


def rival(raw: Any, code: str = "", tongue: str = "") -> str:
    """The other amount that a value may just as well mean; empty if there is no doubt.

    Three digits after the only mark are thousands or thousandths. The currency decides where it
    has no decimals or three, the language where the mark can be only one thing in it.

    >>> rival("1.299", "EUR", "de"), rival("1.299", "EUR", "en"), rival("1.299", "JPY", "de")
    ('1299', '', '')
    """
    raw = first(raw)
    if not isinstance(raw, str) or len(raw) > _LONGEST or code in WHOLE:
        return ""
    found = _DOUBT.fullmatch(_bare(raw))
    if not found or dotted(tongue) or (_people(raw, tongue) and found[2] == "."):
        return ""
    grouped, decimal = found[1] + found[3], _shortest(f"{found[1]}.{found[3]}")
    if found[2] == ",":
        return decimal if tongue else ""
    plain = tongue and code not in THOUSANDTHS and _NUMBER.fullmatch(raw.strip())
    return grouped if plain else ""


def dotted(tongue: str) -> bool:
    """Whether the decimal mark is a dot in a language."""
    language, _, region = tongue.lower().partition("-")
    return language in _DOTTED or region in _DOTTED_REGIONS


def _people(raw: str, tongue: str) -> bool:
    """Whether a text is in the notation of a language that groups by dots."""
    return isinstance(raw, Shown) and bool(tongue) and not dotted(tongue)


def _one(raw: list[Any], code: str, tongue: str) -> Price | None:
    """The price on which all in a list that state one agree."""
    read = {price(part, code, tongue) for part in raw[:20] if not isinstance(part, list)}
    found = sorted(part for part in read if part)
    return found[-1] if len({part.amount for part in found}) == 1 else None


def _regrouped(text: str, code: str) -> str:
    """A decimal with three digits after the dot, as a whole number in currencies of these only."""
    grouped = code in WHOLE and (found := _DOUBT.fullmatch(text))
    return found[1] + found[3] if grouped and found else text


def _shortest(text: str) -> str:
    if "." in text:
        noisy = len(text) - text.index(".") > _NOISY
        text = (_calm(text) if noisy else text).rstrip("0").rstrip(".")
    if text.startswith("0"):
        text = text.lstrip("0")
        return text if text[:1].isdigit() else "0" + text
    return text


def _calm(text: str) -> str:
    """A decimal without what binary arithmetic has added to it.

    >>> _calm("44.400000000000006"), _calm("19.989999771118164"), _calm("0.000012345678")
    ('44.40', '19.99', '0.000012345678')
    """
    amount = Decimal(text)
    for places in (2, 4, 6, 8):
        rounded = round(amount, places)
        (single,) = unpack("f", pack("f", rounded))
        if abs(rounded - amount) <= amount * _NOISE or single == float(amount):
            return f"{rounded:f}"
    return text


def _checked(amount: Decimal, currency: str = "") -> Price | None:
    text = f"{amount:f}"
    return Price(_shortest(text), currency) if _PLAIN.fullmatch(text) else None


def _clean(text: str) -> str:
    if "&" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = _CENTS.sub(lambda found: "." + found[0].translate(_RAISED), text.translate(_TABLE))
    return " ".join(text.split())


def _bare(text: str) -> str:
    """The number of a text without what stands around it."""
    return re.sub(r"^[^0-9]+|[^0-9]+$", "", _clean(text))


def _local(text: str, code: str, tongue: str) -> Price | None:
    """A price as people write it, with nothing else around it than a currency."""
    text = _clean(text)
    found = _LOCAL.fullmatch(text) or _SPLIT.fullmatch(text)
    sign = found and _beside(f"{found['before']} {found['after']}", tongue)
    if not found or sign is None:
        return None
    if (code or sign) in THOUSANDTHS and _NUMBER.fullmatch(found["whole"]):
        return _checked(Decimal(found["whole"]), sign)
    digits = re.sub("[^0-9]", "", found["whole"])
    return _checked(Decimal(f"{digits}.{found['cents'] or '0'}"), sign)


def _beside(around: str, tongue: str) -> str | None:
    """The currency among the words beside a number; None if there is any other word."""
    left = _NOTES.sub(" ", _DOLLAR.sub(r"\1$", around))
    codes = [signed(token, tongue) for token in _SIGN.sub(r" \g<0> ", left).split()]
    if None in codes or len(codes) > 3:
        return None
    known = {code for code in codes if code}
    return None if len(known) > 1 else next(iter(known), "")
