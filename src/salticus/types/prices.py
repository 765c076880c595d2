"""What the value of an offer tells in numbers: what it costs, and whether it is in stock."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from salticus.types.arrays import Floats

PRICE = r"^\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)"
"""The price, at the start of a value."""

LONGEST = 200  # characters of a value that is read: that of an offer is short

_PRICE = re.compile(PRICE)


def priced(values: Sequence[str | None]) -> tuple[Floats, Floats]:
    """Price and stock (1 or 0) that values tell; NaN = unknown.

    >>> priced(["19.9 EUR InStock", "5 EUR OutOfStock", "a text", None])
    (array([19.9,  5. ,  nan,  nan]), array([ 1.,  0., nan, nan]))
    """
    found = np.full((2, len(values)), np.nan)
    for place, value in enumerate(values):
        if not value or not is_short(value):
            continue
        if number := _PRICE.match(value):
            found[0, place] = float(number[1])
        if "InStock" in value or "OutOfStock" in value:
            found[1, place] = "InStock" in value
    return found[0], found[1]


def is_short(value: str) -> bool:
    """Whether a value is short enough, and plain, to be that of an offer."""
    return len(value) <= LONGEST and value.isprintable()
