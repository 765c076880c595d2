"""Writing a log: from tables that are columns already, or from a store's rows as they stream by.

Cells of CSV files are written so that spreadsheets show them, and do not run them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TextIO

from salticus.config import duration
from salticus.errors import InputError
from salticus.exchange.folder import KINDS, REQUIRED, TABLES, fits, polars_type
from salticus.exchange.place import check_free, in_place, new_folder, work_folder
from salticus.types.dates import epoch_us, utc
from salticus.types.frames import pl

Row = dict[str, Any]

ROW_GROUP = 250_000  # rows; fixed, so that the bytes do not depend on the machine
PARTIAL = "visits are what a crawler saw, not the truth; between them nothing is known"
STEPS = ("1d", "12h", "8h", "6h", "1h", "30min", "10min", "1min", "1s")

_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000}
_MICRO = timedelta(microseconds=1)
_CHUNK = 50_000  # rows held in memory at once
_EXPORTED = ("pages", "visits", "signals", "links", "demand", "requests")
_IF_ANY = ("demand", "requests")  # an empty file would say that nobody ever clicked
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def write_log(
    folder: Path, tables: Mapping[str, pl.DataFrame | pl.LazyFrame], about: Mapping[str, Any]
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
        written = {name: pl.scan_parquet(part / f"{name}.parquet", glob=False) for name in frames}
        rows = {name: table.select(pl.len()).collect().item() for name, table in written.items()}
        timed = (table for name, table in written.items() if "at" in TABLES[name])
        told = {"name": folder.name, "span": span_of(timed), **about, "rows": rows}
        text = json.dumps(told, indent=2, ensure_ascii=False, default=_plain)
        (part / "log.json").write_text(text + "\n", "utf-8")
    return rows


def in_format(table: str, frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """The frame with the format's types and order of columns; InputError names what cannot be."""
    if table not in TABLES:
        raise InputError(f"a log has no table `{table}`; it may have {', '.join(TABLES)}")
    lazy = frame.lazy()
    schema = lazy.collect_schema()
    if missing := [column for column in REQUIRED[table] if column not in schema]:
        raise InputError(f"table `{table}`: column `{missing[0]}` is missing")
    known = {column: kind for column, kind in TABLES[table].items() if column in schema}
    for column, kind in known.items():
        if not fits(kind, found := schema[column]):
            raise InputError(f"table `{table}`: column `{column}` is {found}, not {KINDS[kind]}")
    cast = [pl.col(c).cast(polars_type(kind, schema[c])) for c, kind in known.items()]
    return lazy.select(*cast, pl.exclude(TABLES[table]))


def _plain(value: Any) -> str:
    return spelt(value) if isinstance(value, timedelta) else iso(value)


def span_of(tables: Iterable[pl.LazyFrame]) -> list[str] | None:
    """First and last time in the `at` of these tables; None if there is none."""
    at = pl.col("at")
    ends = [table.select(first=at.min(), last=at.max()).collect().row(0) for table in tables]
    known = [end for both in ends for end in both if end is not None]
    return [iso(min(known)), iso(max(known))] if known else None


def resolution_of(rows: pl.LazyFrame, timezone: str = "UTC") -> timedelta | None:
    """The coarsest of `STEPS` on which the `at` of these rows lies, by the clocks of a time zone.

    Times are never said to be known better than to the second; None if there are none.
    """
    steps = [duration(step) for step in STEPS]
    local = pl.col("at").dt.convert_time_zone(timezone).dt.replace_time_zone(None).dt.epoch("us")
    whole = [(local % (step // _MICRO) == 0).all().alias(STEPS[n]) for n, step in enumerate(steps)]
    found = rows.select(pl.len(), *whole).collect(engine="streaming")
    count, *fits = found.row(0)
    coarsest = (step for step, fit in zip(steps, fits, strict=True) if fit)
    return next(coarsest, steps[-1]) if count else None


def iso(when: datetime) -> str:
    """An aware time as text; see `utc`."""
    return utc(epoch_us(when))


def spelt(span: timedelta) -> str:
    """A length of time as settings and `log.json` write it.

    >>> spelt(timedelta(days=1)), spelt(timedelta(minutes=10)), spelt(timedelta(seconds=1.5))
    ('1d', '10min', '1500ms')
    """
    micros = span // _MICRO
    for unit, size in _UNITS.items():
        if micros % size == 0:
            return f"{micros // size}{unit}"
    return f"{micros / 1_000_000}s"


def export_log(rows: Callable[[str], Iterator[Row]], folder: Path, *, name: str) -> dict[str, int]:
    """Write all tables that a store has as a log into a new or empty folder; rows a table.

    `rows` gives the rows of a table by its name, times in µs, as `Store.scan` does. Columns that
    the format does not know are kept. The folder appears when it is complete, or not at all.
    """
    check_free(folder)
    with work_folder(folder) as work:
        try:
            staged = {table: _staged(table, rows(table), work / table) for table in _EXPORTED}
            tables = {table: frame for table, frame in staged.items() if frame is not None}
            about = {
                "name": name,
                "span": span_of([tables["visits"]]),
                "resolution": resolution_of(tables["visits"]),
                **({"demand_bucket": "1h"} if "demand" in tables else {}),
                "source": "exported from a Salticus store",
                "caveats": PARTIAL,
            }
            return write_log(folder, tables, about)
        except pl.exceptions.PolarsError as error:  # what it makes of a full disk
            raise OSError(str(error)) from error


def _staged(table: str, rows: Iterator[Row], pieces: Path) -> pl.LazyFrame | None:
    """The rows written in pieces, in bounded memory; None of a table that is written if it has any.

    Polars would pull from a generator, but in threads of its own, and a database connection belongs
    to one thread.
    """
    chunk = list(islice(rows, _CHUNK))
    if not chunk and table in _IF_ANY:
        return None
    schema = _schema(table, chunk)
    odd = [key for key in schema if key not in TABLES[table] and schema[key] == pl.String]
    pieces.mkdir()
    while True:  # one at least, so that an empty table has its columns
        columns = {key: [row.get(key) for row in chunk] for key in schema}
        columns |= {key: [_text(cell) for cell in columns[key]] for key in odd}
        piece = pieces / f"{len(list(pieces.iterdir())):06d}.parquet"
        pl.DataFrame(columns, schema=schema).write_parquet(piece)
        if not (chunk := list(islice(rows, _CHUNK))):
            return pl.scan_parquet(sorted(pieces.iterdir()), glob=False)


def _schema(table: str, chunk: list[Row]) -> dict[str, pl.DataType]:
    """The format's columns, then those that only these rows have."""
    text_ids = bool(chunk) and isinstance(chunk[0]["page_id"], str)
    found: pl.DataType = pl.String() if text_ids else pl.Int64()
    known = {key: polars_type(kind, found) for key, kind in TABLES[table].items()}
    extra = {key: None for row in chunk for key in row if key not in known}
    return known | {key: _guess(row.get(key) for row in chunk) for key in extra}


def _guess(values: Iterator[Any]) -> pl.DataType:
    """The type of a column that the format does not know; text if its rows do not agree."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Boolean()
    if kinds == {int}:
        return pl.Int64()
    return pl.Float64() if kinds and kinds <= {int, float} else pl.String()


def _text(value: Any) -> str | None:
    """A value for a place that takes only text.

    >>> _text("a"), _text(True), _text({"b": 1}), _text(None)
    ('a', 'true', '{"b": 1}', None)
    """
    plain = value is None or isinstance(value, str)
    return value if plain else json.dumps(value, ensure_ascii=False)


def export_rows(rows: Iterator[Row], path: Path, format: Literal["csv", "jsonl"]) -> int:
    """Write visits as CSV or as JSON lines, times in ISO 8601; returns how many.

    In CSV a text that a spreadsheet would run as a formula has an apostrophe before it.
    A file of that name is replaced when the new one is complete.
    """
    readable = (row if row.get("at") is None else {**row, "at": utc(row["at"])} for row in rows)
    write = {"csv": _csv, "jsonl": _jsonl}[format]
    with in_place(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        return write(readable, file)


def _csv(rows: Iterator[Row], file: TextIO) -> int:
    first = next(rows, None)
    names = list(first or TABLES["visits"])
    writer = csv.writer(file)
    writer.writerow(map(harmless, names))
    count = 0
    for row in chain([first] if first else [], rows):
        writer.writerow(harmless(_text(row.get(name)) or "") for name in names)
        count += 1
    return count


def _jsonl(rows: Iterator[Row], file: TextIO) -> int:
    count = 0
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
        count += 1
    return count


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before it if it looks like one.

    Pages write what they like, and spreadsheets run what begins with ``=``, ``+``, ``-`` or ``@``.

    >>> [harmless(text) for text in ("=1+2", "-3.5", "@a", "19.9 EUR")]
    ["'=1+2", '-3.5', "'@a", '19.9 EUR']
    """
    formula = re.match(_FORMULA, text) and not re.fullmatch(_NUMBER[1:-1], text)
    return f"'{text}" if formula else text


def harmless_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """`harmless` for all texts of a table, its headings too."""
    texts = pl.col(pl.String)
    formula = texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)
    safe = rows.with_columns(pl.when(formula).then("'" + texts).otherwise(texts).name.keep())
    return safe.rename(harmless)
