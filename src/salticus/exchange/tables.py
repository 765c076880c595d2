"""Writing a log whose tables are columns already: lazily, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from salticus.config import duration
from salticus.errors import InputError
from salticus.exchange.folder import KINDS, REQUIRED, TABLES, fits
from salticus.exchange.place import new_folder

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

ROW_GROUP = 250_000  # rows; fixed, so that the bytes do not depend on the machine
STEPS = ("1d", "12h", "8h", "6h", "1h", "30min", "10min", "1min", "1s")

_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000}


def write_log(
    folder: Path,
    tables: Mapping[str, pl.DataFrame | pl.LazyFrame],
    about: Mapping[str, Any],
) -> dict[str, int]:
    """Write tables and `log.json` into a new or empty folder; returns rows a table.

    Frames are streamed where they are lazy, and written in the order that they have. Columns stand
    in the order of the format, then those it does not know. `about` is provenance: spans of time
    may be `timedelta`; `span` is found from the times if it is not given, and `rows` is added.
    The same frames make the same bytes. The folder appears when it is complete, or not at all.
    """
    frames = {name: in_format(name, frame) for name, frame in tables.items()}
    if "pages" not in frames:
        raise InputError("a log needs a table `pages`")
    with new_folder(folder) as part:
        for name, frame in frames.items():
            frame.sink_parquet(part / f"{name}.parquet", row_group_size=ROW_GROUP)
        rows = {name: _count(part / f"{name}.parquet") for name in frames}
        found = {"name": folder.name, "span": span_of(part, frames)}
        write_about(part, {**found, **about, "rows": rows})
    return rows


def in_format(table: str, frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """The frame with the format's types and order of columns; InputError names what cannot be."""
    import polars as pl

    if table not in TABLES:
        raise InputError(f"a log has no table `{table}`; it may have {', '.join(TABLES)}")
    lazy = frame.lazy()
    schema = lazy.collect_schema()
    if missing := [column for column in REQUIRED[table] if column not in schema]:
        raise InputError(f"table `{table}`: column `{missing[0]}` is missing")
    for column, kind in TABLES[table].items():
        if column in schema and not fits(kind, schema[column]):
            raise InputError(
                f"table `{table}`: column `{column}` is {schema[column]}, not {KINDS[kind]}"
            )
    known = [c for c in TABLES[table] if c in schema]
    cast = [pl.col(c).cast(polars_type(TABLES[table][c], schema[c])) for c in known]
    return lazy.select(*cast, pl.exclude(TABLES[table]))


def polars_type(kind: str, found: pl.DataType | None = None) -> pl.DataType:
    """How a kind of the format is stored; ids stay text or integers, as they were found."""
    import polars as pl

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


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write `log.json`."""
    text = json.dumps(about, indent=2, ensure_ascii=False, default=_plain)
    (folder / "log.json").write_text(text + "\n", "utf-8")


def _plain(value: Any) -> str:
    return spelt(value) if isinstance(value, timedelta) else iso(value)


def span_of(folder: Path, tables: Iterable[str]) -> list[str] | None:
    """First and last time in the `at` of the tables written to a folder; None if there is none."""
    import polars as pl

    ends: list[datetime] = []
    for table in tables:
        if "at" in TABLES[table]:
            at = pl.scan_parquet(folder / f"{table}.parquet", glob=False).select(
                first=pl.col("at").min(), last=pl.col("at").max()
            )
            ends += [end for end in at.collect().row(0) if end is not None]
    return [iso(min(ends)), iso(max(ends))] if ends else None


def resolution_of(path: Path, timezone: str = "UTC") -> timedelta | None:
    """The coarsest of `STEPS` on which the `at` of a table lies, by the clocks of a time zone.

    Times are never said to be known better than to the second; None if there are none.
    """
    import polars as pl

    steps = [duration(step) for step in STEPS]
    local = pl.col("at").dt.convert_time_zone(timezone).dt.replace_time_zone(None).dt.epoch("us")
    whole = [(local % _micros(step) == 0).all().alias(STEPS[n]) for n, step in enumerate(steps)]
    found = pl.scan_parquet(path, glob=False).select(pl.len(), *whole).collect(engine="streaming")
    count, *fits = found.row(0)
    coarsest = (step for step, fit in zip(steps, fits, strict=True) if fit)
    return next(coarsest, steps[-1]) if count else None


def _count(path: Path) -> int:
    import polars as pl

    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def iso(when: datetime) -> str:
    """An aware time as text.

    >>> iso(datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC))
    '2026-01-01T00:00:00.500000Z'
    """
    text = when.astimezone(UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def spelt(span: timedelta) -> str:
    """A length of time as settings and `log.json` write it.

    >>> spelt(timedelta(days=1)), spelt(timedelta(minutes=10)), spelt(timedelta(seconds=1.5))
    ('1d', '10min', '1500ms')
    """
    micros = _micros(span)
    for unit, size in _UNITS.items():
        if micros % size == 0:
            return f"{micros // size}{unit}"
    return f"{micros / 1_000_000}s"


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
