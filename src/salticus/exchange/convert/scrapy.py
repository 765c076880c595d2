"""`scrapy`: feed exports, one file a crawl, of items with a url and a price or value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from salticus.exchange.convert.base import ConvertOptions, SourceRows
from salticus.exchange.convert.table import price_values, read_table, text_values

if TYPE_CHECKING:
    import polars as pl

VALUE = ("price", "value", "text", "content", "digest", "hash")


def read(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """JSON, JSON lines or CSV of items. A column with "price" in its name holds prices."""
    files, rows = read_table(sources, options, VALUE, _values)
    prices = all(_priced(file.columns["value"]) for file in files)
    return SourceRows(files=files, rows=rows, kind="offer" if prices else None)


def _priced(column: str) -> bool:
    return "price" in column.lower()


def _values(rows: pl.LazyFrame, columns: Sequence[str], value: str) -> pl.LazyFrame:
    spelling = price_values if _priced(value) else text_values
    return spelling(rows, columns, value)
