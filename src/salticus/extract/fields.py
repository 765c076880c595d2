"""The fields that a rule selects, and the value that they make up."""

from __future__ import annotations

import re
from collections.abc import Mapping

from salticus.config import Rule
from salticus.errors import ConfigError, ExtractError
from salticus.extract.document import ParsedPage
from salticus.extract.price import Price, Shown, currency, price
from salticus.extract.select import Selector, selector
from salticus.extract.words import availability, condition
from salticus.types import Reading, Value

OFFER = ("price", "currency", "availability")

_WORDS = {"currency": currency, "availability": availability, "condition": condition}
_PRICES = frozenset({"price", "list_price", "low_price", "high_price"})
_NUMBER = re.compile(r"\d(?:[\d.,'\u2019\u00a0\u202f ]*\d)?(?:[.,][-\u2013\u2014]{1,2})?")
_MONEY = re.compile(r"[^\s\d.,;:()*/-]{1,5}\.?")
_NEAR = 6
_LONGEST = 500  # characters in which a number is looked for
_MINUS = "-\u2212\u2013"


class Fields:
    """The fields of one rule; ConfigError if a selector is wrong.

    Selected fields replace those of the page's mark-up. A field that the value needs and that is
    not found leaves the page without a value, and the fault names it.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.selectors: dict[str, Selector] = {}
        for name, said in rule.select.items():
            try:
                self.selectors[name] = selector(said)
            except ConfigError as error:
                raise ConfigError(f"select.{name}: {error}") from error

    def read(self, document: ParsedPage, base: Value | None, kind: str | None) -> Reading:
        """The value of a page, from its mark-up (`base`) and from what the rule selects."""
        known = dict(base.fields) if base else {}
        faults: dict[str, str] = {}
        for name in self.selectors:
            known.pop(name, None)
            try:
                known |= self._field(name, document)
            except ExtractError as error:
                faults[name] = f"{error}"
        if kind is None and (base is None or base.kind != "offer"):
            kind = "offer" if "price" in self.selectors else None
        return made(self.rule, known, kind or (base.kind if base else "page"), faults)

    def _field(self, name: str, document: ParsedPage) -> dict[str, str]:
        texts = self.selectors[name].find(document)
        if not texts:
            raise ExtractError(f"{self.rule.select[name]} finds nothing")
        text, code = spelt(self.rule, name, texts, document.language)
        beside = code and "currency" not in self.selectors
        return {name: text} | ({"currency": code} if beside else {})


def spelt(rule: Rule, name: str, texts: list[str], tongue: str = "") -> tuple[str, str]:
    """A field in the one spelling that it has everywhere, from the texts found for it, and the
    currency that was written beside it.

    >>> spelt(Rule("*"), "price", ["1.299,00 €"]), spelt(Rule("*"), "title", ["Green", "tea"])
    (('1299', 'EUR'), ('Green tea', ''))
    """
    if name in _PRICES:
        amount = asked(texts[0], tongue)
        if amount is None:
            raise ExtractError(f"{texts[0][:60]!r} is not one price")
        return amount.amount, amount.currency
    if name in _WORDS:
        return _WORDS[name](texts[0]) or str(texts[0]), ""
    if name in rule.tolerance:
        return number(texts[0], tongue) or str(texts[0]), ""
    return " ".join(texts), ""


def made(
    rule: Rule, known: Mapping[str, str], kind: str, faults: Mapping[str, str] | None = None
) -> Reading:
    """The value that a rule makes of known fields.

    An offer's value is its price, currency and availability, in the form in which `Offer` writes
    them; of other pages one field stands for itself, several are named. `rule.value` says which.
    """
    faults = faults or {}
    needed = rule.value or (OFFER if kind == "offer" else tuple(rule.select))
    for name in needed:
        if name in faults:
            return Reading(fault=f"field {name!r}: {faults[name]}")
        if name not in known and (rule.value or name == "price"):
            return Reading(fault=f"field {name!r}: the page does not have it")
    held = [name for name in needed if name in known]
    plain = kind == "offer" and set(held) <= set(OFFER)
    if plain or len(held) == 1:
        text = " ".join(known[name] for name in held)
    else:
        text = "; ".join(f"{name}: {known[name]}" for name in held)
    return Reading(Value(kind, text, dict(known)) if text else None)


def asked(text: str, tongue: str = "") -> Price | None:
    """The one price in a text that a selector found; None unless there is exactly one.

    Of several numbers it is the one with a currency beside it. `tongue` is the page's language.

    >>> asked("Now only 1.299,00 € *"), asked("12 pieces, 5 €"), asked("5 € or 6 €")
    (Price(amount='1299', currency='EUR'), Price(amount='5', currency='EUR'), None)
    """
    if whole := price(text, tongue=tongue):
        return whole
    found = [_beside(text, number, tongue) for number in _NUMBER.finditer(text[:_LONGEST])]
    prices = {one for one in found if one is not None}
    with_currency = {one for one in prices if one.currency}
    if len(with_currency) == 1:
        return with_currency.pop()
    return prices.pop() if len(prices) == 1 and len(found) == 1 else None


def _beside(text: str, number: re.Match[str], tongue: str) -> Price | None:
    """A number as a price, with the currency before or after it."""
    if _negative(text, number):
        return None
    before = _MONEY.findall(text[max(0, number.start() - _NEAR) : number.start()])[-1:]
    after = _MONEY.findall(text[number.end() : number.end() + _NEAR])[:1]
    for sign in (*after, *before):
        if (found := price(Shown(f"{number[0]} {sign}"), tongue=tongue)) and found.currency:
            return found
    return price(Shown(number[0]), tongue=tongue)


def number(text: str, tongue: str = "") -> str:
    """The one number in a text as a plain decimal; empty if there is not exactly one.

    >>> number("−1.234,50 °C"), number("12 of 40"), number("none")
    ('-1234.5', '', '')
    """
    found = list(_NUMBER.finditer(text[:_LONGEST]))
    if len(found) != 1:
        return ""
    raw = found[0][0]
    amount = price(Shown(raw) if isinstance(text, Shown) else raw, tongue=tongue)
    if amount is None:
        return ""
    minus = "-" if _negative(text, found[0]) and amount.amount != "0" else ""
    return minus + amount.amount


def _negative(text: str, number: re.Match[str]) -> bool:
    """Whether a minus stands before a number, and not a dash between two words."""
    before = text[: number.start()]
    return before[-1:] in _MINUS and not before[-2:-1].isalnum() if before else False
