"""The promises of the log format: what `log.json` and the rows of each table must keep, each on its
own, and what a breach of one is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from zoneinfo import available_timezones

import polars as pl

from salticus.errors import InputError
from salticus.exchange.folder import (
    REQUIRED,
    TABLES,
    Log,
    LogMetadata,
    fits,
    length,
    misfit,
    plainly,
    read_about,
    shown,
)
from salticus.types import KINDS, PURPOSE, STATUS

_FILE = "log.json"
_LENGTH = "write a length of time such as 10min, 1h or 1d"
_WHY = {
    "resolution": ("values", "say how finely the times of values.parquet are known"),
    "demand_bucket": ("demand", "say how long the buckets of demand.parquet are"),
}

STRATA = ("uniform", "click")

_MICRO = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Faults = Mapping[str | None, str]
"""What keeps columns from being read; None stands for the whole file."""

Level = Literal["violation", "warning"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What the cells of a column keep: how a breach of it is put, and what to do about one.

    `{}` in `problem` is where the offending cell is shown.
    """

    column: str
    problem: str
    remedy: str
    level: Level = "violation"


Rule = tuple[Promise, pl.Expr]
"""A promise, and the rows that break it: those of which the expression is true."""


@dataclass(slots=True)
class RowTally:
    """How many rows, and the first of them, counted from 1."""

    count: int = 0
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that breaks a promise of the format, or (level "warning") that is odd.

    `row` is the first row concerned, counted from 1, and `count` how many rows there are. In
    `log.json` a column is a name of the object.

    >>> print(Violation("values.parquet", "at", "early", "sort by page_id, at", row=17, count=4))
    values.parquet: column `at`, row 17 (and 3 more): early; sort by page_id, at
    """

    file: str
    column: str | None
    problem: str
    remedy: str
    row: int | None = None
    count: int | None = None
    level: Level = "violation"

    def __str__(self) -> str:
        noun = "" if self.file.endswith(".json") else "column "
        parts = [f"{noun}`{self.column}`"] if self.column else []
        if self.row is not None:
            more = f" (and {self.count - 1:,} more)" if self.count and self.count > 1 else ""
            parts.append(f"row {self.row}{more}")
        where = ", ".join(parts) + ": " if parts else ""
        return f"{self.file}: {where}{self.problem}; {self.remedy}"


class Checked:
    """A table, and how far it can be used: `sound` are the columns that are there and fit."""

    def __init__(self, log: Log, name: str, faults: Faults) -> None:
        self.log = log
        self.name = name
        self.file = log.path(name).name
        self.faults = faults

    @cached_property
    def schema(self) -> Mapping[str, pl.DataType]:
        """All columns and their types; none if the file cannot be read."""
        there = self.log.has(self.name) and None not in self.faults
        return self.log.schema(self.name) if there else {}

    @cached_property
    def sound(self) -> dict[str, str]:
        """The format's columns that can be used, and their kinds."""
        readable = self.schema.keys() - self.faults.keys()
        known = {c: kind for c, kind in TABLES[self.name].items() if c in readable}
        return {c: kind for c, kind in known.items() if fits(kind, self.schema[c])}

    @cached_property
    def rows(self) -> pl.LazyFrame:
        """The sound columns in one form, and `row`, counted from 1."""
        forms = (plainly(c, kind, self.schema[c]) for c, kind in self.sound.items())
        # one wide integer, because ids of different widths cannot be joined
        ids = [c for c, kind in self.sound.items() if kind == "id" and self.schema[c].is_integer()]
        plain = self.log.raw(self.name).select(forms).with_columns(pl.col(ids).cast(pl.Int128))
        return plain.with_row_index("row", 1)

    def distinct(self, column: str) -> pl.DataFrame:
        """The different cells of a sound column, numbered as `code`."""
        found = self.rows.select(column).drop_nulls().unique().collect(engine="streaming")
        return found.with_row_index("code")

    @cached_property
    def ids(self) -> pl.DataFrame:
        """The pages of the table: `page_id`, `code`."""
        return self.distinct("page_id")

    def columns(self) -> Iterator[Violation]:
        """The file or columns that are absent, damaged, or of the wrong type."""
        if not self.log.has(self.name):
            yield Violation(self.file, None, "no such file", "a log needs one")
            return
        for column, fault in self.faults.items():
            yield Violation(self.file, column, f"cannot be read ({fault})", "write the file anew")
        if None in self.faults:
            return
        for column, kind in TABLES[self.name].items():
            if column in self.schema and not fits(kind, self.schema[column]):
                yield Violation(self.file, column, *misfit(kind, self.schema[column]))
            elif column not in self.schema and column in REQUIRED[self.name]:
                yield Violation(self.file, column, "missing", "every row needs it")

    def broken(self, promise: Promise, tally: RowTally) -> Iterator[Violation]:
        """The rows that break a promise, if there are any; the first one's cell is shown."""
        if tally.first is not None:
            yield Violation(
                self.file,
                promise.column,
                promise.problem.format(self._cell(promise.column, tally.first)),
                promise.remedy,
                row=tally.first,
                count=tally.count,
                level=promise.level,
            )

    def _cell(self, column: str, row: int) -> str:
        """What stands in a row, for people; times may be such that no calendar has them."""
        time = self.sound[column] == "time"
        cell = pl.col(column).dt.epoch("us") if time else pl.col(column)
        found = self.rows.slice(row - 1, 1).select(cell).collect().item()
        if isinstance(found, str):
            return repr(shown(found))
        return _time(found) if time and found is not None else shown(found)

    def tally(self, odd: pl.LazyFrame) -> RowTally:
        """How many rows a query over `rows` leaves, and the first of them."""
        found = odd.select(pl.len(), pl.col("row").min()).collect(engine="streaming")
        return RowTally(*found.row(0))


def _time(micros: int) -> str:
    """A time in µs since 1970, as far as there is a calendar.

    >>> _time(1_500_000), _time(2**62)
    ('1970-01-01 00:00:01.500000+00:00', '4611686018427387904 µs after 1970')
    """
    try:
        return str(_EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        return f"{micros} µs after 1970"


def rules_of(table: str, columns: set[str], about: LogMetadata) -> list[Rule]:
    """The rules of a table that concern no other columns than these."""
    rules = [*_filled(table), *_within(table, about)]
    if table in _SPECIAL:
        rules += _SPECIAL[table](about)
    return [rule for rule in rules if {rule[0].column, *rule[1].meta.root_names()} <= columns]


def _filled(table: str) -> Iterator[Rule]:
    """Ids, times and hosts are in every row."""
    for column in REQUIRED[table]:
        if TABLES[table][column] in ("id", "time") or column == "host":
            yield Promise(column, "empty", "every row needs one"), pl.col(column).is_null()


def _within(table: str, about: LogMetadata) -> Iterator[Rule]:
    """Times lie within `span` (a bucket of demand may begin before it), and within the calendar.

    A link may vanish after the log has ended.
    """
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
    if names := sorted(available_timezones()):  # none, where a system has no time zones at all
        remedy = "write a name such as Europe/Paris, or leave it empty"
        promise = Promise("timezone", "{} is no IANA time zone", remedy)
        yield promise, ~pl.col("timezone").is_in(names)
    promise = Promise("stratum", "{} is no stratum", _one_of(STRATA))
    yield promise, ~pl.col("stratum").is_in(STRATA)
    yield _label("kind", KINDS)


def _demand(about: LogMetadata) -> Iterator[Rule]:
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
    chance, age = (pl.col(column).cast(pl.Float64) for column in ("propensity", "age_s"))
    remedy = "write a number from 0 to 1, or leave it empty"
    odd = chance.is_nan() | ~chance.is_between(0, 1)
    yield Promise("propensity", "{} is no probability", remedy), odd
    remedy = "write seconds, or leave it empty"
    yield Promise("age_s", "{} is no age", remedy), age.is_nan() | (age < 0)
    yield _label("purpose", tuple(PURPOSE))
    yield _label("status", tuple(STATUS))


def _links(about: LogMetadata) -> Iterator[Rule]:
    remedy = "correct one of them, or leave `vanished` empty"
    promise = Promise("vanished", "{} is before `appeared`", remedy)
    yield promise, pl.col("vanished") < pl.col("appeared")


def _label(column: str, labels: tuple[str, ...]) -> Rule:
    """A label that others need not understand."""
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
