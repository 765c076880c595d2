"""`prices`: tables of (url, time, price), with currency, title and anything else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from salticus.exchange.convert.base import ConvertOptions, SourceRows
from salticus.exchange.convert.table import price_values, read_table

PRICE = ("price", "value", "amount", "price_eur", "price_usd")


def read(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """CSV or JSON of prices seen."""
    files, rows = read_table(sources, options, PRICE, price_values)
    return SourceRows(files=files, rows=rows, kind="offer")
