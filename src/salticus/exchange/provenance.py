"""Whether `log.json` says what it must, so that what it says can be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from salticus.errors import InputError
from salticus.exchange.about import LogMetadata, length, read_about, shown
from salticus.exchange.violation import Violation

_FILE = "log.json"
_LENGTH = "write a length of time such as 10min, 1h or 1d"
_WHY = {
    "resolution": ("values", "say how finely the times of values.parquet are known"),
    "demand_bucket": ("demand", "say how long the buckets of demand.parquet are"),
}


def check_about(folder: Path) -> tuple[LogMetadata, list[Violation]]:
    """What is right in `log.json`, and what is wrong with it."""
    path, nothing = folder / _FILE, LogMetadata(folder.resolve().name)
    if not path.exists():
        problem, remedy = "no such file", "write one with `name` and `resolution`"
        return nothing, [Violation(_FILE, None, problem, remedy, level="warning")]
    try:
        raw = read_about(path)
    except InputError as error:
        problem = str(error).removeprefix(f"{path}: ")
        return nothing, [Violation(_FILE, None, problem, "write one JSON object")]
    found = [*_name(raw), *_lengths(folder, raw), *_span(raw)]
    wrong = {each.column for each in found}
    right = {key: value for key, value in raw.items() if key not in wrong}
    spans = {key: length(right[key]) for key in _WHY if right.get(key) is not None}
    return LogMetadata(str(right.get("name", nothing.name)), **spans, rest=right), found


def _name(raw: dict[str, Any]) -> Iterator[Violation]:
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        problem = "missing" if name is None else f"{shown(name)!r} is no name"
        yield Violation(_FILE, "name", problem, "give the log a name")


def _lengths(folder: Path, raw: dict[str, Any]) -> Iterator[Violation]:
    for key, (table, remedy) in _WHY.items():
        if raw.get(key) is None:
            if (folder / f"{table}.parquet").is_file():
                yield Violation(_FILE, key, "missing", remedy)
            continue
        try:
            length(raw[key])
        except ValueError as error:
            yield Violation(_FILE, key, shown(str(error).partition(";")[0]), _LENGTH)


def _span(raw: dict[str, Any]) -> Iterator[Violation]:
    try:
        LogMetadata("", rest=raw).ends()
    except ValueError as error:
        remedy = "write the first and the last time or day, such as [2026-01-01, 2026-01-31]"
        yield Violation(_FILE, "span", str(error), remedy)
