"""What a spider's items say of their page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

from itemadapter import ItemAdapter
from msgspec.structs import replace

from salticus.config import Rule
from salticus.errors import ExtractError
from salticus.extract.canonical import json_text
from salticus.extract.fields import made, spelt
from salticus.types import Reading, Value


def reading(items: Sequence[Any], rule: Rule | None = None, kind: str | None = None) -> Reading:
    """The value of a page of which a spider made these items (`taken`); `kind` is its own so far.

    An item with a price is an offer, whose value is price, currency and availability; of others
    all fields count, or those that the rule's `value` names. Fields that are None or empty are
    unknown. Several items make one value, in the order in which they came.

    >>> reading([{"price": 19.90, "currency": "EUR", "title": "Green tea"}]).value.text
    '19.9 EUR'
    >>> reading([{"title": "Tea", "text": "How to brew"}]).value.text
    'text: How to brew; title: Tea'
    """
    rule = rule or Rule("*")
    try:
        each = [_read(item, rule, rule.kind or kind) for item in items]
    except ExtractError as error:
        return Reading(fault=str(error))
    if len(each) == 1:
        return each[0]
    values = [one.value for one in each if one.value is not None]
    if len(values) < len(each) or not each:
        faults = (one.fault for one in each if one.value is None)
        return Reading(fault=next(faults, None) or "the spider made no item of it")
    text = "\n".join(value.text for value in values)
    return Reading(Value(values[0].kind, text, {"items": str(len(values))}))


def taken(item: Any) -> Any:
    """The fields of an item as they are now; pipelines may change them."""
    return ItemAdapter(item).asdict() if ItemAdapter.is_item(item) else item


def _read(item: Any, rule: Rule, kind: str | None) -> Reading:
    if not isinstance(item, dict):
        raise ExtractError(f"a {type(item).__name__} is not an item: it has no fields")
    known: dict[str, str] = {}
    faults: dict[str, str] = {}
    for name, raw in item.items():
        try:
            known = _field(rule, name, raw) | known  # what the item itself says goes first
        except ExtractError as error:
            faults[name] = str(error)
    if kind is None:
        kind = "offer" if "price" in known else "page"
    if not rule.value and kind != "offer":
        if faults:
            return Reading(fault="; ".join(f"field {name!r}: {faults[name]}" for name in faults))
        rule = replace(rule, value=tuple(sorted(known)))
    return made(rule, known, kind, faults)


def _field(rule: Rule, name: str, raw: Any) -> dict[str, str]:
    """A field as text, and the currency if the text of a price has it; nothing if it is unknown."""
    if raw is None or raw == "":
        return {}
    if not isinstance(raw, str):
        return {name: json_text(_plain(raw))}
    text = json_text(raw)
    if not text:
        return {}
    found = spelt(rule, name, [text])
    return {name: found.text} | ({"currency": found.currency} if found.currency else {})


def _plain(raw: Any) -> Any:
    """A Python value as JSON would have it; equal values are written alike."""
    if isinstance(raw, bool | str | None):
        return raw
    if isinstance(raw, Decimal | Real):
        return _number(raw)
    if isinstance(raw, date | datetime):
        return raw.isoformat()
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace")
    if isinstance(raw, Mapping):
        return {str(key): _plain(part) for key, part in raw.items()}
    if isinstance(raw, set | frozenset):
        return sorted((_plain(part) for part in raw), key=json_text)
    if isinstance(raw, list | tuple):
        return [_plain(part) for part in raw]
    raise ExtractError(
        f"a {type(raw).__name__} has no spelling of its own; let the spider give text or numbers"
    )


def _number(raw: Any) -> Decimal | str:
    number = Decimal(str(raw))
    return number if number.is_finite() else str(number)
