"""JSON read exactly: numbers keep their digits, equal meaning gives equal text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec

from salticus.errors import ExtractError
from salticus.extract.canonical import canonical

_STRICT = msgspec.json.Decoder(float_hook=Decimal)
_LENIENT = json.JSONDecoder(strict=False, parse_float=Decimal, parse_constant=str)
_ENCODER = msgspec.json.Encoder(decimal_format="number", order="sorted")
_PLAIN = 30  # zeros up to which a number is written out
_OPENING = "{["


def parse(text: str) -> Any:
    """The JSON value in a text, also behind an assignment such as ``window.state = {…};``.

    ExtractError if there is none.

    >>> parse('var shop = {"a": 1.50};')
    {'a': Decimal('1.50')}
    """
    text = text.strip("\ufeff \t\r\n")
    try:
        return _STRICT.decode(text)
    except RecursionError:
        raise ExtractError("the JSON is nested too deeply") from None
    except (msgspec.MsgspecError, ValueError):
        return _found(text)


def _found(text: str) -> Any:
    start = min((at for at in map(text.find, _OPENING) if at >= 0), default=-1)
    if start < 0:
        raise ExtractError("there is no JSON")
    try:
        return _LENIENT.raw_decode(text, start)[0]
    except RecursionError:
        raise ExtractError("the JSON is nested too deeply") from None
    except (ValueError, ArithmeticError) as error:
        raise ExtractError(f"the JSON cannot be read: {error}") from None


def shown(value: Any) -> str:
    """A JSON value as text: strings as they are, the rest with sorted keys and shortest numbers.

    >>> shown({"b": Decimal("1.50"), "a": [True, None]}), shown(Decimal("2.0")), shown("x")
    ('{"a":[true,null],"b":1.5}', '2', 'x')
    """
    if isinstance(value, str):
        return canonical(value)
    try:
        return canonical(_ENCODER.encode(_exact(value)).decode())
    except RecursionError:
        raise ExtractError("the JSON is nested too deeply") from None


def _exact(value: Any) -> Any:
    if isinstance(value, dict):
        return {canonical(key): _exact(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_exact(part) for part in value]
    if isinstance(value, str):
        return canonical(value)
    return _shortest(value) if isinstance(value, Decimal) else value


def _shortest(number: Decimal) -> Decimal:
    """The same number without zeros at its end; arithmetic would round it."""
    sign, digits, exponent = number.as_tuple()
    if not number or not isinstance(exponent, int):
        return Decimal(0)
    written = "".join(map(str, digits))
    short = written.rstrip("0")
    exponent += len(written) - len(short)
    if 0 < exponent <= _PLAIN:
        short, exponent = short + "0" * exponent, 0
    return Decimal((sign, tuple(map(int, short)), exponent))
