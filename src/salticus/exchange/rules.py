"""What `log.json` must say, and what the rows of each table must keep, each on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from salticus.errors import InputError
from salticus.exchange.about import LogMetadata, length, read_about, shown
from salticus.exchange.schema import REQUIRED, TABLES
from salticus.exchange.violation import Promise, Violation
from salticus.types import PURPOSE, STATUS

_FILE = "log.json"
_LENGTH = "write a length of time such as 10min, 1h or 1d"
_WHY = {
    "resolution": ("values", "say how finely the times of values.parquet are known"),
    "demand_bucket": ("demand", "say how long the buckets of demand.parquet are"),
}

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

Rule = tuple[Promise, "pl.Expr"]
"""A promise, and the rows that break it: those of which the expression is true."""

KINDS_OF_PAGE = ("offer", "article", "page", "source")
STRATA = ("uniform", "click")

_MICRO = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def rules_of(table: str, columns: set[str], about: LogMetadata) -> list[Rule]:
    """The rules of a table that concern no other columns than these."""
    rules = [*_filled(table), *_within(table, about)]
    if table in _SPECIAL:
        rules += _SPECIAL[table](about)
    return [rule for rule in rules if {rule[0].column, *rule[1].meta.root_names()} <= columns]


def _filled(table: str) -> Iterator[Rule]:
    """Ids, times and hosts are in every row."""
    import polars as pl

    for column in REQUIRED[table]:
        if TABLES[table][column] in ("id", "time") or column == "host":
            yield Promise(column, "empty", "every row needs one"), pl.col(column).is_null()


def _within(table: str, about: LogMetadata) -> Iterator[Rule]:
    """Times lie within `span` (a bucket of demand may begin before it), and within the calendar.

    A link may vanish after the log has ended.
    """
    import polars as pl

    ends = about.ends()
    early = about.demand_bucket or _MICRO if table == "demand" else _MICRO
    for column, kind in TABLES[table].items():
        if kind == "time" and ends and column in REQUIRED[table]:
            remedy = "correct the time, or widen the span"
            promise = Promise(column, "{} is outside the `span` of log.json", remedy)
            begin = ends[0] - min(early - _MICRO, ends[0] - _EVER[0])
            yield promise, ~pl.col(column).is_between(begin, ends[1])
        elif kind == "time":
            promise = Promise(column, "{} is no time of our calendar", "correct the time")
            yield promise, ~pl.col(column).is_between(*_EVER)


def _pages(about: LogMetadata) -> Iterator[Rule]:
    import polars as pl

    if names := sorted(available_timezones()):  # none, where a system has no time zones at all
        remedy = "write a name such as Europe/Paris, or leave it empty"
        promise = Promise("timezone", "{} is no IANA time zone", remedy)
        yield promise, ~pl.col("timezone").is_in(names)
    promise = Promise("stratum", "{} is no stratum", _one_of(STRATA))
    yield promise, ~pl.col("stratum").is_in(STRATA)
    yield _label("kind", KINDS_OF_PAGE)


def _demand(about: LogMetadata) -> Iterator[Rule]:
    import polars as pl

    for column in ("clicks", "impressions"):
        yield Promise(column, "{} is less than 0", "write a count"), pl.col(column) < 0
    if about.demand_bucket is not None:
        at, bucket = pl.col("at").dt.epoch("us"), about.demand_bucket
        # days and less count from midnight; who counts by weeks chooses where they begin
        start = pl.lit(0) if bucket <= _DAY else at.min()
        problem = f"{{}} is not where a bucket of {about.rest.get('demand_bucket')} begins"
        promise = Promise("at", problem, "round it down to `demand_bucket` of log.json")
        yield promise, (at - start) % min(bucket // _MICRO, 2**62) != 0


def _visits(about: LogMetadata) -> Iterator[Rule]:
    import polars as pl

    chance, age = (pl.col(column).cast(pl.Float64) for column in ("propensity", "age_s"))
    remedy = "write a number from 0 to 1, or leave it empty"
    odd = chance.is_nan() | ~chance.is_between(0, 1)
    yield Promise("propensity", "{} is no probability", remedy), odd
    remedy = "write seconds, or leave it empty"
    yield Promise("age_s", "{} is no age", remedy), age.is_nan() | (age < 0)
    yield _label("purpose", tuple(PURPOSE))
    yield _label("status", tuple(STATUS))


def _links(about: LogMetadata) -> Iterator[Rule]:
    import polars as pl

    remedy = "correct one of them, or leave `vanished` empty"
    promise = Promise("vanished", "{} is before `appeared`", remedy)
    yield promise, pl.col("vanished") < pl.col("appeared")


def _label(column: str, labels: tuple[str, ...]) -> Rule:
    """A label that others need not understand."""
    import polars as pl

    promise = Promise(column, f"{{}} is no known {column}", _one_of(labels), "warning")
    return promise, ~pl.col(column).is_in(labels)


def _one_of(labels: tuple[str, ...]) -> str:
    return f"write {', '.join(labels[:-1])} or {labels[-1]}, or leave it empty"


_SPECIAL: dict[str, Callable[[LogMetadata], Iterator[Rule]]] = {
    "pages": _pages,
    "demand": _demand,
    "visits": _visits,
    "links": _links,
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
