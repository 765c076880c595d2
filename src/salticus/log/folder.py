"""A log as it lies on disk: its provenance, and its tables, scanned lazily."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from salticus.config import duration
from salticus.errors import InputError
from salticus.log.schema import REQUIRED, TABLES

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl


@dataclass(frozen=True, slots=True)
class About:
    """What `log.json` says of a log. `resolution` is how finely its times are known."""

    name: str
    resolution: timedelta | None = None
    demand_bucket: timedelta | None = None
    rest: dict[str, Any] = field(default_factory=dict)


class Log:
    """A folder of Parquet tables. Opening it reads `log.json` alone.

    Every table but `pages` may be absent: `has` tells, and `scan` of what is absent says so by
    the name of its file or column.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
        self.folder = folder
        self.about = _about(folder)

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def has(self, table: str) -> bool:
        return self.path(table).is_file()

    def columns(self, table: str) -> set[str]:
        """The columns that a table has; none if it is absent."""
        return set(self._schema(table)) if self.has(table) else set()

    def scan(self, table: str, *needed: str) -> pl.LazyFrame:
        """A table with its required columns and those `needed`; others are there if the log has
        them. Times are UTC in µs, ids as the log has them."""
        import polars as pl

        schema = self._schema(table)
        for column in (*REQUIRED[table], *needed):
            if column not in schema:
                raise InputError(f"{self.path(table)}: column `{column}` is missing")
        for column, kind in TABLES[table].items():
            if column in schema and not fits(kind, schema[column]):
                shown = f"{self.path(table)}: column `{column}` is {schema[column]}"
                raise InputError(f"{shown}, not {KINDS[kind]}; see `salticus log check`")
        times = [c for c, kind in TABLES[table].items() if kind == "time" and c in schema]
        zoned = [pl.col(c).dt.cast_time_unit("us").dt.convert_time_zone("UTC") for c in times]
        return pl.scan_parquet(self.path(table)).with_columns(zoned)

    def _schema(self, table: str) -> pl.Schema:
        import polars as pl

        path = self.path(table)
        try:
            return pl.read_parquet_schema(path)  # type: ignore[return-value]
        except FileNotFoundError:
            raise InputError(f"{path}: no such file") from None
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{path}: not a Parquet file ({error})") from error


KINDS = {
    "id": "text or integer",
    "text": "text",
    "texts": "a list of text",
    "time": "a UTC timestamp",
    "float": "a number",
    "count": "a whole number",
    "bool": "true or false",
}


def fits(kind: str, found: pl.DataType) -> bool:
    """Whether a Parquet column may hold what the format wants; a column of nulls holds anything."""
    import polars as pl

    if found == pl.Null:
        return True
    if kind == "time":
        return isinstance(found, pl.Datetime) and found.time_zone is not None
    text = found in (pl.String, pl.Categorical) or isinstance(found, pl.Enum)
    return {
        "id": text or found.is_integer(),
        "text": text,
        "texts": isinstance(found, pl.List) and found.inner == pl.String,
        "float": found.is_numeric(),
        "count": found.is_integer(),
        "bool": found == pl.Boolean,
    }[kind]


def _about(folder: Path) -> About:
    path = folder / "log.json"
    if not path.exists():
        return About(folder.resolve().name)
    try:
        raw = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: not a JSON object")
    return About(
        name=str(raw.get("name") or folder.resolve().name),
        resolution=_span(path, raw, "resolution"),
        demand_bucket=_span(path, raw, "demand_bucket"),
        rest=raw,
    )


def _span(path: Path, raw: dict[str, Any], key: str) -> timedelta | None:
    if raw.get(key) is None:
        return None
    try:
        return duration(raw[key])
    except ValueError as error:
        raise InputError(f"{path}: `{key}`: {error}") from None
