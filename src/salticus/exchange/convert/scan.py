"""CSV, JSON lines and JSON arrays as lazy frames of text, every row with its place in the file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from salticus.errors import InputError

CSV, LINES, ARRAY = {".csv", ".tsv"}, {".jsonl", ".jl", ".ndjson"}, {".json"}
MARK = "+"  # before the names of the source's own columns, so that they meet none of ours
_LOOKED_AT = 1000  # rows of JSON whose keys become columns
_SEPARATORS = ",;\t|"


def files_in(sources: Sequence[Path]) -> list[Path]:
    """The files given, and those in the folders given, in the order of their names."""
    known, found = CSV | LINES | ARRAY, list[Path]()
    for source in sources:
        if source.is_dir():
            found += sorted(path for path in source.iterdir() if path.suffix.lower() in known)
        elif not source.is_file():
            raise InputError(f"{source}: no such file or folder")
        elif source.suffix.lower() not in known:
            raise InputError(f"{source}: neither CSV nor JSON; its name must end in .csv or .jsonl")
        else:
            found.append(source)
    if not found:
        raise InputError(f"{sources[0]}: no .csv, .jsonl or .json file in it")
    return found


def scan(path: Path) -> tuple[pl.LazyFrame, str]:
    """Rows with `line`, `broken` (is it no row at all?) and the file's columns, marked, as text.

    The second answer is what a row is counted in: "line", or "item" of an array.
    """
    suffix = path.suffix.lower()
    try:
        if suffix in CSV:
            return _csv(path), "line"
        return (_lines(path), "line") if suffix in LINES else (_array(path), "item")
    except OSError as error:
        raise InputError(f"{path}: {error}") from error


def names(rows: pl.LazyFrame) -> list[str]:
    """The file's own columns."""
    columns = rows.collect_schema().names()
    return [name.removeprefix(MARK) for name in columns if name.startswith(MARK)]


def _csv(path: Path) -> pl.LazyFrame:
    with path.open(encoding="utf-8", errors="replace") as file:
        heading = file.readline()
    separator = max(_SEPARATORS, key=heading.count)
    try:
        rows = pl.scan_csv(path, separator=separator, infer_schema=False, glob=False)
        columns = rows.collect_schema().names()
    except pl.exceptions.PolarsError as error:
        said = str(error).partition("\n")[0]
        raise InputError(f"{path}: not a CSV file ({said})") from error
    marked = rows.rename({name: MARK + name for name in columns})
    return marked.with_row_index("line", offset=2).with_columns(broken=pl.lit(False))


def ragged(path: Path) -> list[int]:
    """The lines of a CSV file that have more fields than its heading."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        heading = file.readline()
        separator = max(_SEPARATORS, key=heading.count)
        width = len(next(csv.reader([heading], delimiter=separator)))
        rows = csv.reader(file, delimiter=separator)
        return [rows.line_num + 1 for row in rows if len(row) > width]


def _lines(path: Path) -> pl.LazyFrame:
    with path.open("rb") as file:
        keys = _keys(islice(file, _LOOKED_AT))
    text = pl.scan_lines(path, name="text", row_index_name="line", row_index_offset=1, glob=False)
    return _objects(text.filter(pl.col("text").str.contains(r"\S")), keys)


def _array(path: Path) -> pl.LazyFrame:
    try:
        items = msgspec.json.decode(path.read_bytes(), type=list[msgspec.Raw])
        text = pl.DataFrame({"text": [bytes(item).decode() for item in items]})
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON array ({error})") from error
    rows = text.lazy().cast(pl.String).with_row_index("line", offset=1)
    return _objects(rows, _keys(bytes(item) for item in items[:_LOOKED_AT]))


def _keys(rows: Iterable[str | bytes]) -> list[str]:
    """The keys of JSON objects, in the order in which they appear."""
    return list(dict.fromkeys(key for row in rows for key in _object(row) or ()))


def _object(text: str | bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _objects(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """The objects in `text` as columns. Parsing each once in Python takes a third of the time that
    polars takes to look for every key by itself."""
    columns = {MARK + key: pl.String() for key in keys}
    kind = pl.Struct({"broken": pl.Boolean(), **columns})

    def parsed(texts: pl.Series) -> pl.Series:
        found = [_object(text) for text in texts]
        cells = {MARK + key: [_text((row or {}).get(key)) for row in found] for key in keys}
        broken = {"broken": [row is None for row in found]}
        return pl.DataFrame({**broken, **cells}, schema=dict(kind)).to_struct()

    text = pl.col("text").map_batches(parsed, return_dtype=kind, is_elementwise=True)
    return rows.select("line", text).unnest("text")


def _text(cell: Any) -> str | None:
    return cell if cell is None or isinstance(cell, str) else msgspec.json.encode(cell).decode()
