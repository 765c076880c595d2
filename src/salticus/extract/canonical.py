"""One form for text that reads the same, and for JSON that means the same."""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any

import msgspec

from salticus.errors import ExtractError

# Controls (NUL cannot be stored everywhere), and marks that nobody sees: soft hyphen, zero-width
# space, word joiner, byte order mark. Joiners stay: they carry meaning in Persian and in emoji.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]+")

_ASIAN = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
_STRICT = msgspec.json.Decoder(float_hook=Decimal)
_LENIENT = json.JSONDecoder(strict=False, parse_float=Decimal, parse_constant=str)
_ENCODER = msgspec.json.Encoder(decimal_format="number", order="sorted")
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)  # in any other, numbers are rounded
_PLAIN = 30  # zeros up to which a number is written out
_OPENING = "{["
_LETTERS = 3  # a word, where words are not set apart


def canonical(text: str) -> str:
    """The text with single spaces, composed characters, and nothing that cannot be stored.

    Idempotent; encodable as UTF-8; no space at either end.

    >>> canonical(" soft\\xadly \\x00 cafe\\u0301 \\n")
    'softly café'
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = unicodedata.normalize("NFC", _UNSEEN.sub("", _CONTROLS.sub(" ", text)))
    return " ".join(text.split())


def length(text: str) -> int:
    """How long a text is, in words, also where words are not set apart.

    >>> length("three short words"), length("お探しのページは見つかりません")
    (3, 5)
    """
    words = len(text.split())
    return words if text.isascii() else max(words, len(_ASIAN.findall(text)) // _LETTERS)


def parse_json(text: str) -> Any:
    """The JSON in a text, also behind ``window.state = {…};``; ExtractError if there is none.

    >>> parse_json('var shop = {"a": 1.50};')
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


def json_text(value: Any) -> str:
    """A JSON value as text: strings as they are, the rest with sorted keys and shortest numbers.

    >>> json_text({"b": Decimal("1.50"), "a": [True, None]}), json_text("x")
    ('{"a":[true,null],"b":1.5}', 'x')
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
    """The same number without zeros at its end."""
    short = number.normalize(_EXACT)
    exponent = short.as_tuple().exponent
    if not number or not isinstance(exponent, int):
        return Decimal(0)
    return short.quantize(1, context=_EXACT) if 0 < exponent <= _PLAIN else short
