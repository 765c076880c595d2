"""One spelling for one value, so that equal prices are equal text."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_PLAIN = r"^\d{1,15}(?:\.\d{1,20})?$"
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?")
_LONGEST = 40


def read_prices(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows with `price`, the amount that the text in `raw` states; null if it states not one.

    Amounts are the shortest plain decimals. Plain decimals are taken as they are ("1.299" is less
    than two); what is not one is read as people write prices ("1.299,00 €").
    """
    import polars as pl

    text, plain = pl.col("raw"), pl.col("_plain")
    short = text.str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    odd = (
        pl.when(~plain)
        .then(text)
        .map_batches(_amounts, return_dtype=pl.String, is_elementwise=True)
    )
    price = pl.coalesce(pl.when(plain).then(short.str.replace(r"^0+(\d)", "$1")), odd)
    return (
        rows.with_columns(_plain=text.str.contains(_PLAIN)).with_columns(price=price).drop("_plain")
    )


def _amounts(texts: pl.Series) -> pl.Series:
    """Each spelling is read once."""
    import polars as pl

    spellings = texts.drop_nulls().unique()
    amounts = pl.Series([amount(s) for s in spellings], dtype=pl.String)
    return texts.replace_strict(spellings, amounts, default=None, return_dtype=pl.String)


def amount(text: str) -> str | None:
    """The one price that a text states, as the shortest plain decimal.

    >>> amount("1.299,00 €"), amount("$5"), amount("1e3"), amount("5 to 7"), amount("-5")
    ('1299', '5', '1000', None, None)
    """
    if len(text) > _LONGEST or text.startswith("-") or len(re.findall(r"\d[\d.,' ]*", text)) != 1:
        return None if not _NUMBER.fullmatch(text) else _shortest(Decimal(text))
    import price_parser

    try:
        found = price_parser.Price.fromstring(text).amount
    except (InvalidOperation, ValueError):
        return None
    return None if found is None else _shortest(found)


def _shortest(number: Decimal) -> str:
    text = f"{number:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def availability(column: pl.Expr) -> pl.Expr:
    """schema.org's word without its address, as the extractor of offers writes it."""
    return column.str.strip_chars().str.replace(r"^https?://schema\.org/", "")
