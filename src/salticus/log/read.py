"""Reading a log: what is absent or wrong is said with the name of its file and column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from salticus.errors import InputError

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl


def read_pages(folder: Path) -> pl.DataFrame:
    """The pages of a log as they stand, ids as text, each once."""
    import polars as pl

    path = folder / "pages.parquet"
    pages = _ids(path, _read(path, {"page_id"}))
    twice = pages.filter(pl.col("page_id").is_duplicated())
    if len(twice):
        raise InputError(f"{path}: column `page_id` has {twice['page_id'][0]!r} more than once")
    return pages


def read_values(folder: Path) -> pl.DataFrame:
    """The truth of a log: `page_id`, `at` (µs, UTC) and `value` (text), by page and time."""
    import polars as pl

    path = folder / "values.parquet"
    values = _ids(path, _read(path, {"page_id", "at", "value"}))
    if not values.schema["at"].is_temporal() or values.schema["at"] in (pl.Time, pl.Duration):
        raise InputError(f"{path}: column `at` is {values.schema['at']}, not a timestamp")
    if values.schema["value"].is_nested():
        raise InputError(f"{path}: column `value` is {values.schema['value']}, not text")
    values = values.select("page_id", _utc(values.schema["at"]), pl.col("value").cast(pl.String))
    if values["at"].null_count():
        raise InputError(f"{path}: column `at` has empty rows")
    return values.sort("page_id", "at", maintain_order=True)


def _read(path: Path, needed: set[str]) -> pl.DataFrame:
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: not a Parquet file ({error})") from error
    if missing := sorted(needed - set(frame.columns)):
        raise InputError(f"{path}: column `{missing[0]}` is missing")
    return frame


def _ids(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    kind = frame.schema["page_id"]
    if not (kind == pl.String or kind.is_integer()):
        raise InputError(f"{path}: column `page_id` is {kind}, neither text nor integer")
    if frame["page_id"].null_count():
        raise InputError(f"{path}: column `page_id` has empty rows")
    return frame.with_columns(pl.col("page_id").cast(pl.String))


def _utc(kind: pl.DataType) -> pl.Expr:
    """`at` in microseconds of UTC; a timestamp without a zone is UTC already."""
    import polars as pl

    at = pl.col("at")
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        return at.dt.cast_time_unit("us").dt.convert_time_zone("UTC")
    return at.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
