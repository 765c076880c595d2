"""Currencies: their codes, signs, and how many decimals people give them."""

from __future__ import annotations

import html
from typing import Any

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
SIGNS = {
    "€": "EUR", "£": "GBP", "₽": "RUB", "₹": "INR", "₩": "KRW", "₺": "TRY", "₴": "UAH",
    "₪": "ILS", "₫": "VND", "฿": "THB", "₱": "PHP", "₦": "NGN", "₸": "KZT", "₾": "GEL",
    "zł": "PLN", "Zł": "PLN", "zl": "PLN", "Kč": "CZK", "kč": "CZK", "Ft": "HUF", "ft": "HUF",
    "лв": "BGN", "лв.": "BGN", "грн": "UAH", "грн.": "UAH", "руб": "RUB", "руб.": "RUB",
    "р.": "RUB", "lei": "RON", "Lei": "RON", "Rp": "IDR", "Rp.": "IDR", "euro": "EUR",
    "Euro": "EUR", "euros": "EUR", "US$": "USD", "CA$": "CAD", "C$": "CAD", "AU$": "AUD",
    "A$": "AUD", "NZ$": "NZD", "HK$": "HKD", "NT$": "TWD", "S$": "SGD", "MX$": "MXN",
    "R$": "BRL", "CN¥": "CNY", "JP¥": "JPY", "円": "JPY", "元": "CNY", "원": "KRW", "đ": "VND",
    "Đ": "VND", "TL": "TRY", "tl": "TRY", "Fr.": "CHF", "SFr.": "CHF", "sFr.": "CHF",
    "din.": "RSD", "ر.س": "SAR", "ر.س.": "SAR", "﷼": "SAR", "د.إ": "AED", "د.إ.": "AED",
    "ج.م": "EGP", "ج.م.": "EGP", "د.ك": "KWD", "د.ك.": "KWD", "S/": "PEN", "RM": "MYR",
    "บาท": "THB", "VNĐ": "VND", "vnđ": "VND", "р": "RUB", 'ש"ח': "ILS", "ש״ח": "ILS",
    "₡": "CRC", "₲": "PYG", "₼": "AZN", "֏": "AMD", "৳": "BDT", "S/.": "PEN",
}  # fmt: skip
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
_SHARED |= {
    "kr.": _SHARED["kr"], "Kr": _SHARED["kr"], "Kr.": _SHARED["kr"], "KR": _SHARED["kr"],
    "Rs.": _SHARED["Rs"], "₨": _SHARED["Rs"],
}  # fmt: skip

# By use, not by statute: nobody prices in the hundredth part of a forint or a rupiah.
_WHOLE = """
    BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KHR KMF KRW LAK MGA MMK PYG RWF TZS UGX UZS VND VUV
    XAF XOF XPF
"""
WHOLE = frozenset(_WHOLE.split())
THOUSANDTHS = frozenset(["BHD", "JOD", "KWD", "LYD", "OMR", "TND"])
_SMALL = WHOLE | frozenset(["RUB", "INR", "KZT", "NGN", "LBP", "AMD", "RSD", "ARS", "PKR", "THB"])


def currency(raw: Any, tongue: str = "") -> str:
    """The ISO 4217 code in capitals; empty when unknown. `tongue` tells what a shared sign means.

    >>> currency("eur"), currency("&euro;"), currency("$"), currency("$", "en-us"), currency(None)
    ('EUR', 'EUR', '', 'USD', '')
    """
    if type(raw) is str and raw in _CODES:
        return raw
    if isinstance(raw, list) and raw:
        raw = raw[0]
    if isinstance(raw, dict):
        raw = raw.get("@value")
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
