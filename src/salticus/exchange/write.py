"""Writing a log, or just its visits, from a store's rows as they stream by."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from salticus.exchange.cells import harmless
from salticus.exchange.folder import TABLES
from salticus.exchange.place import in_place, new_folder
from salticus.exchange.tables import ROW_GROUP, polars_type, resolution_of, write_about
from salticus.types.dates import utc

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]

_CHUNK = 50_000  # rows held in memory at once
_EXPORTED = ("pages", "visits", "signals", "links", "demand", "requests")
_IF_ANY = ("demand", "requests")  # an empty file would say that nobody ever clicked


def export_log(rows: Callable[[str], Iterator[Row]], folder: Path, *, name: str) -> dict[str, int]:
    """Write all tables that a store has as a log into a new or empty folder; rows a table.

    `rows` gives the rows of a table by its name, times in µs, as `Store.scan` does. Columns that
    the format does not know are kept. The folder appears when it is complete, or not at all.
    """
    with new_folder(folder) as part:
        tables = {table: _Table(table, rows(table)) for table in _EXPORTED}
        for table in list(tables.values()):
            table.write(part)
            if not table.count and table.name in _IF_ANY:
                (part / f"{table.name}.parquet").unlink()
                del tables[table.name]
        write_about(part, _about(name, tables, part))
    return {table.name: table.count for table in tables.values()}


def export_rows(rows: Iterator[Row], path: Path, format: Literal["csv", "jsonl"]) -> int:
    """Write visits as CSV or as JSON lines, times in ISO 8601; returns how many.

    In CSV a text that a spreadsheet would run as a formula has an apostrophe before it.
    A file of that name is replaced when the new one is complete.
    """
    write = {"csv": _csv, "jsonl": _jsonl}[format]
    with in_place(path) as part:
        return write((_readable(row) for row in rows), part)


class _Table:
    """One table on its way to a file: what it has been so far."""

    def __init__(self, name: str, rows: Iterator[Row]) -> None:
        self.name = name
        self.count = 0
        self.first: int | None = None
        self.last: int | None = None
        self._rows = rows

    def write(self, folder: Path) -> None:
        """Write the rows in pieces and join the pieces, in bounded memory.

        Polars would pull from a generator, but in threads of its own, and a database connection
        belongs to one thread.
        """
        import polars as pl

        pieces = folder / f".{self.name}"
        pieces.mkdir()
        try:
            for number, frame in enumerate(self._frames()):
                frame.write_parquet(pieces / f"{number:06d}.parquet")
            joined = pl.scan_parquet(sorted(pieces.iterdir()), glob=False)
            joined.sink_parquet(folder / f"{self.name}.parquet", row_group_size=ROW_GROUP)
        except pl.exceptions.PolarsError as error:  # what it makes of a full disk
            raise OSError(str(error)) from error
        shutil.rmtree(pieces)

    def _frames(self) -> Iterator[pl.DataFrame]:
        """One at least, so that an empty table has its columns."""
        import polars as pl

        chunk = list(islice(self._rows, _CHUNK))
        schema = _schema(self.name, chunk)
        while True:
            self._note(chunk)
            columns = {key: [row.get(key) for row in chunk] for key in schema}
            for key in schema.keys() - TABLES[self.name].keys():
                if schema[key] == pl.String:
                    columns[key] = [_text(cell) for cell in columns[key]]
            yield pl.DataFrame(columns, schema=schema)
            chunk = list(islice(self._rows, _CHUNK))
            if not chunk:
                return

    def _note(self, chunk: list[Row]) -> None:
        self.count += len(chunk)
        times = [row["at"] for row in chunk if row.get("at") is not None]
        if times:
            self.first = min(times) if self.first is None else min(self.first, *times)
            self.last = max(times) if self.last is None else max(self.last, *times)


def _schema(table: str, chunk: list[Row]) -> dict[str, pl.DataType]:
    """The format's columns, then those that only these rows have."""
    import polars as pl

    text_ids = bool(chunk) and isinstance(chunk[0]["page_id"], str)
    found: pl.DataType = pl.String() if text_ids else pl.Int64()
    known = {key: polars_type(kind, found) for key, kind in TABLES[table].items()}
    extra = {key: None for row in chunk for key in row if key not in known}
    return known | {key: _guess(row.get(key) for row in chunk) for key in extra}


def _guess(values: Iterator[Any]) -> pl.DataType:
    """The type of a column that the format does not know; text if its rows do not agree."""
    import polars as pl

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
    return (
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def _about(name: str, tables: dict[str, _Table], folder: Path) -> dict[str, Any]:
    first, last = tables["visits"].first, tables["visits"].last
    return {
        "name": name,
        "span": None if first is None or last is None else [utc(first), utc(last)],
        "resolution": resolution_of(folder / "visits.parquet"),
        **({"demand_bucket": "1h"} if "demand" in tables else {}),
        "source": "exported from a Salticus store",
        "caveats": "visits are what a crawler saw, not the truth; between them nothing is known",
        "rows": {table.name: table.count for table in tables.values()},
    }


def _readable(row: Row) -> Row:
    return {k: utc(v) if k == "at" and v is not None else v for k, v in row.items()}


def _csv(rows: Iterator[Row], path: Path) -> int:
    first = next(rows, None)
    names = list(first or TABLES["visits"])
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([harmless(name) for name in names])
        for row in chain([first] if first else [], rows):
            writer.writerow([harmless(_text(row.get(name)) or "") for name in names])
            count += 1
    return count


def _jsonl(rows: Iterator[Row], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count
