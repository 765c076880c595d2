"""A log as it lies on disk: what `log.json` says of it, and its tables, scanned lazily.

`TABLES` is the format: which tables a log may have, their columns, and what each column holds."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from salticus.config import duration
from salticus.errors import InputError
from salticus.types.frames import pl

_FAR_MS = 2**48  # the years -6950 and 10889
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

TABLES: dict[str, dict[str, str]] = {
    "pages": {
        "page_id": "id", "url": "text", "kind": "text", "merchant": "text", "brand": "text",
        "category": "text", "condition": "text", "country": "text", "language": "text",
        "title": "text", "timezone": "text", "host": "text", "tags": "texts", "stratum": "text",
    },
    "values": {"page_id": "id", "at": "time", "value": "text"},
    "demand": {"page_id": "id", "at": "time", "clicks": "count", "impressions": "count"},
    "visits": {
        "page_id": "id", "at": "time", "purpose": "text", "policy": "text", "propensity": "float",
        "status": "text", "changed": "bool", "value": "text", "age_s": "float",
    },
    "requests": {"page_id": "id", "at": "time"},
    "links": {"source_id": "id", "page_id": "id", "appeared": "time", "vanished": "time"},
    "texts": {"page_id": "id", "at": "time", "text": "text"},
    "signals": {"page_id": "id", "at": "time", "kind": "text", "value": "text"},
    "crawls": {"host": "text", "at": "time"},
}  # fmt: skip

REQUIRED: dict[str, tuple[str, ...]] = {
    "pages": ("page_id",),
    "values": ("page_id", "at", "value"),
    "demand": ("page_id", "at", "clicks"),
    "visits": ("page_id", "at"),
    "requests": ("page_id", "at"),
    "links": ("source_id", "page_id", "appeared"),
    "texts": ("page_id", "at", "text"),
    "signals": ("page_id", "at", "kind"),
    "crawls": ("host", "at"),
}


@dataclass(frozen=True, slots=True)
class LogMetadata:
    """What `log.json` says of a log. `resolution` is how finely its times are known."""

    name: str
    resolution: timedelta | None = None
    demand_bucket: timedelta | None = None
    rest: dict[str, Any] = field(default_factory=dict)

    def ends(self) -> tuple[datetime, datetime] | None:
        """The first and the last instant of `span`, if it is given; ValueError if it is not right.

        Both are within the log. A bare date stands for its whole day.

        >>> first, last = LogMetadata("x", rest={"span": ["2026-01-01", "2026-01-31"]}).ends()
        >>> str(first), str(last)
        ('2026-01-01 00:00:00+00:00', '2026-01-31 23:59:59.999999+00:00')
        """
        span = self.rest.get("span")
        if span is None:
            return None
        if not isinstance(span, list) or len(span) != 2:
            raise ValueError(f"{shown(span)} is not a list of two times")
        first, last = _instant(span[0]), _instant(span[1])
        if _DAY.fullmatch(span[1]):
            last += timedelta(days=1) - timedelta(microseconds=1)
        if last < first:
            raise ValueError(f"it ends ({span[1]}) before it begins ({span[0]})")
        return first, last


def read_about(path: Path) -> dict[str, Any]:
    """What `log.json` holds; InputError says why it cannot be read."""
    try:
        raw = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: not a JSON object")
    return raw


def about_of(folder: Path) -> LogMetadata:
    """What a log says of itself; without `log.json`, nothing but the name of its folder."""
    path = folder / "log.json"
    if not path.exists():
        return LogMetadata(folder.resolve().name)
    raw = read_about(path)
    spans: dict[str, timedelta] = {}
    for key in ("resolution", "demand_bucket"):
        try:
            if raw.get(key) is not None:
                spans[key] = length(raw[key])
        except ValueError as error:
            raise InputError(f"{path}: `{key}`: {error}") from None
    return LogMetadata(str(raw.get("name") or folder.resolve().name), **spans, rest=raw)


def length(given: Any) -> timedelta:
    """A length of time as `log.json` gives it; ValueError if it is none."""
    try:
        span = duration(given)
    except OverflowError:
        raise ValueError(f"{shown(given)} is too long") from None
    if not span:
        raise ValueError("it must be more than 0")
    return span


def shown(given: Any) -> str:
    """Something out of a file, short enough for a message.

    >>> shown([1]), len(shown("long" * 1000))
    ('[1]', 100)
    """
    text = str(given)
    return text if len(text) <= 100 else text[:99] + "…"


def _instant(text: Any) -> datetime:
    try:
        when = datetime.fromisoformat(text)
        if _DAY.fullmatch(text):
            return when.replace(tzinfo=UTC)
        if when.tzinfo is not None:
            return when.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{shown(text)} is not a time such as 2026-01-31T12:00:00Z") from None
    raise ValueError(f"{text} has no time zone; write {text}Z if it is UTC")


class Log:
    """A folder of Parquet tables. Opening it reads `log.json` alone (or is told `about`).

    Every table but `pages` may be absent: `has` tells, and `scan` of what is absent says so by
    the name of its file or column.
    """

    def __init__(self, folder: Path, about: LogMetadata | None = None) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
        self.folder = folder
        self.about = about or about_of(folder)

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def has(self, table: str) -> bool:
        return self.path(table).is_file()

    def columns(self, table: str) -> set[str]:
        """The columns that a table has; none if it is absent."""
        return set(self.schema(table)) if self.has(table) else set()

    def rows(self, table: str) -> int:
        """How many rows a table has; 0 if it is absent."""
        if not self.has(table):
            return 0
        with reading(self.path(table)):
            return int(self.raw(table).select(pl.len()).collect().item())

    def scan(self, table: str, *needed: str, loose: Collection[str] = ()) -> pl.LazyFrame:
        """A table with its required columns and those `needed`; others are there if the log has
        them. Times are UTC in µs, text is String, ids as the log has them. A column in `loose`
        comes as it is, whatever its type."""
        schema = self.schema(table)
        for column in (*REQUIRED[table], *needed):
            if column not in schema:
                raise InputError(f"{self.path(table)}: column `{column}` is missing")
        known = {c: kind for c, kind in TABLES[table].items() if c in schema and c not in loose}
        for column, kind in known.items():
            if not fits(kind, schema[column]):
                wrong, _ = misfit(kind, schema[column])
                where = f"{self.path(table)}: column `{column}`"
                raise InputError(f"{where} is {wrong}; see `salticus log check`")
        plain = [plainly(column, kind, schema[column]) for column, kind in known.items()]
        return self.raw(table).with_columns(plain)

    def schema(self, table: str) -> pl.Schema:
        """The columns of a table and their types; InputError if it cannot be read."""
        if not self.has(table):
            raise InputError(f"{self.path(table)}: no such file")
        with reading(self.path(table)):
            return self.raw(table).collect_schema()

    def raw(self, table: str) -> pl.LazyFrame:
        """A table as it lies on disk, whatever it holds."""
        return pl.scan_parquet(self.path(table), glob=False)  # a folder may be called `[1]`


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What the reader of Parquet says of a bad file becomes an InputError that names the file."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        said = shown(str(error).partition("\n")[0])
        raise InputError(f"{path}: not a Parquet file, or damaged ({said})") from error


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
    if found == pl.Null:
        return True
    if kind == "time":
        return isinstance(found, pl.Datetime) and found.time_zone is not None
    text = found in (pl.String, pl.Categorical) or isinstance(found, pl.Enum)
    return {
        "id": text or found.is_integer(),
        "text": text,
        "texts": isinstance(found, pl.List) and found.inner in (pl.String, pl.Null),
        "float": found.is_numeric(),
        "count": found.is_integer(),
        "bool": found == pl.Boolean,
    }[kind]


def misfit(kind: str, found: pl.DataType) -> tuple[str, str]:
    """What a column that does not fit holds instead of what it should, and what to do about it."""
    if kind == "time" and isinstance(found, pl.Datetime):
        problem = "a timestamp without a time zone, not a UTC timestamp"
        return problem, "write with the times that they are UTC"
    if kind == "time" and found == pl.Date:
        return "a date without a time, not a UTC timestamp", "write the day's midnight in UTC"
    return f"{found}, not {KINDS[kind]}", f"write {KINDS[kind]}"


def polars_type(kind: str, found: pl.DataType | None = None) -> pl.DataType:
    """How a kind of the format is stored; ids stay text or integers, as they were found."""
    if kind == "id":
        return pl.Int64() if found is not None and found.is_integer() else pl.String()
    kinds: dict[str, pl.DataType] = {
        "text": pl.String(),
        "texts": pl.List(pl.String()),
        "time": pl.Datetime("us", "UTC"),
        "float": pl.Float64(),
        "count": pl.Int64(),
        "bool": pl.Boolean(),
    }
    return kinds[kind]


def plainly(column: str, kind: str, found: pl.DataType) -> pl.Expr:
    """A column that fits, in the one form that readers meet."""
    cell = pl.col(column)
    if kind == "time" and isinstance(found, pl.Datetime):
        if found.time_unit == "ms":  # what lies beyond our calendar may not have a µs
            cell = cell.to_physical().clip(-_FAR_MS, _FAR_MS).cast(found)
        return cell.dt.cast_time_unit("us").dt.convert_time_zone("UTC")
    if kind in ("text", "id") and not found.is_integer():
        return cell.cast(pl.String)
    if kind == "texts" or found == pl.Null:
        return cell.cast(polars_type(kind))
    return cell
