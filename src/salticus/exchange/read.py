"""Reading the truth of a log whole: what is absent or wrong is said with its file and column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from salticus.errors import InputError
from salticus.exchange.folder import KINDS, Log, reading

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl


def read_pages(folder: Path) -> pl.DataFrame:
    """The pages of a log as they stand, ids as text, each once."""
    import polars as pl

    log = Log(folder)
    pages = _whole(log, "pages", log.scan("pages"))
    twice = pages.filter(pl.col("page_id").is_duplicated())
    if len(twice):
        first = twice["page_id"][0]
        raise InputError(f"{log.path('pages')}: column `page_id` has {first!r} more than once")
    return pages


def read_values(folder: Path) -> pl.DataFrame:
    """The truth of a log: `page_id`, `at` (µs, UTC) and `value` (text), by page and time.

    A value that is a number is taken as its text.
    """
    import polars as pl

    log = Log(folder)
    kept = log.scan("values", loose=("value",)).select("page_id", "at", "value")
    kind = log.schema("values")["value"]
    if kind.is_nested():
        raise InputError(f"{log.path('values')}: column `value` is {kind}, not {KINDS['text']}")
    values = _whole(log, "values", kept.with_columns(pl.col("value").cast(pl.String)))
    return values.sort("page_id", "at", maintain_order=True)


def _whole(log: Log, table: str, rows: pl.LazyFrame) -> pl.DataFrame:
    """All rows in memory, ids as text; ids and times must be in every one of them."""
    import polars as pl

    with reading(log.path(table)):
        frame = rows.with_columns(pl.col("page_id").cast(pl.String)).collect()
    for column in ("page_id", "at"):
        if column in frame.columns and frame[column].null_count():
            raise InputError(f"{log.path(table)}: column `{column}` has empty rows")
    return frame
