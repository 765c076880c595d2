"""Cells of CSV files that spreadsheets show, and do not run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before it if it looks like one.

    Pages write what they like, and spreadsheets run what begins with ``=``, ``+``, ``-`` or ``@``.

    >>> [harmless(text) for text in ("=1+2", "-3.5", "@a", "19.9 EUR")]
    ["'=1+2", '-3.5', "'@a", '19.9 EUR']
    """
    if re.match(_FORMULA, text) and not re.fullmatch(_NUMBER[1:-1], text):
        return f"'{text}"
    return text


def harmless_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """`harmless` for all texts of a table, its headings too."""
    import polars as pl

    texts = pl.col(pl.String)
    formula = texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)
    safe = rows.with_columns(pl.when(formula).then("'" + texts).otherwise(texts).name.keep())
    return safe.rename(harmless)
