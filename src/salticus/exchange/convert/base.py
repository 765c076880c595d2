"""The contract of conversion: files → rows, each with its place, its time and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from salticus.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """What the user says of the sources. Columns that are not named are found by usual names.

    `timezone` is for times that state none, `at` for rows without a time. `complete` states that
    the rows are every change. With `skip_bad` bad rows are left out and counted.
    """

    url_column: str | None = None
    time_column: str | None = None
    value_column: str | None = None
    timezone: str | None = None
    at: str | None = None
    resolution: timedelta | None = None
    name: str | None = None
    complete: bool = False
    skip_bad: bool = False

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.timezone or "UTC")
        except (ValueError, OSError, LookupError):
            raise InputError(
                f"--timezone: {self.timezone!r} is no time zone; write UTC or Europe/Berlin"
            ) from None


class Problem(IntEnum):
    """What can be wrong with a row; `COMPLAINTS` has the words."""

    NO_OBJECT = 0
    NO_URL = 1
    BAD_URL = 2
    NO_TIME = 3
    NO_ZONE = 4
    BAD_TIME = 5
    SKIPPED_TIME = 6
    NO_VALUE = 7
    BAD_PRICE = 8
    CLASH = 9
    BAD_ITEM = 10


# which column, what is wrong, what to do
COMPLAINTS: dict[Problem, tuple[str, str, str]] = {
    Problem.NO_OBJECT: ("row", "is not a JSON object", "write {…}, one a line"),
    Problem.NO_URL: ("url", "is empty", "every row needs the address of its page"),
    Problem.BAD_URL: ("url", "is not a URL", "write http://… or https://…"),
    Problem.NO_TIME: ("time", "is empty", "give the row its time, or the file one with --at"),
    Problem.NO_ZONE: ("time", "has no time zone", "add Z or +02:00, or give --timezone"),
    Problem.BAD_TIME: ("time", "is not a time", "write 2026-01-31T12:00:00Z or seconds since 1970"),
    Problem.SKIPPED_TIME: ("time", "was skipped by the clocks of --timezone", "check the zone"),
    Problem.NO_VALUE: ("value", "is empty", "give the row its value, or leave it out"),
    Problem.BAD_PRICE: ("value", "is not one price", "write 1299.00"),
    Problem.CLASH: ("value", "differs from another row of its page and time", "keep one of them"),
    Problem.BAD_ITEM: ("row", "is not an item with store, id, name and priceHistory", "mend it"),
}


@dataclass(frozen=True, slots=True)
class File:
    """A source file, and what its columns for url, time and value are called."""

    path: Path
    columns: dict[str, str] = field(default_factory=dict)
    unit: str = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRows:
    """Rows of a source, lazily.

    Columns: `file` (number among `files`), `line`, `url`, `at`, `value`, and if something is wrong
    `problem` and `shown`, the text that is. `page_id` is there if the source has ids of its own.
    All others are kept of the pages. With `truth` the rows are every change, and no visits.
    """

    files: Sequence[File]
    rows: pl.LazyFrame
    source: str | None = None
    kind: str | None = None
    caveats: str = ""
    values_are: str | None = None
    resolution: timedelta | None = None
    truth: bool = False


Converter = Callable[[Sequence[Path], ConvertOptions], SourceRows]
"""One source format."""


def flag(wrong: pl.Expr, problem: Problem) -> pl.Expr:
    """The problem where something is wrong, else null."""
    return pl.when(wrong).then(pl.lit(problem.value, dtype=pl.Int8))


def the_only(sources: Sequence[Path], what: str) -> Path:
    """The one source of a format that takes one."""
    if len(sources) != 1:
        raise InputError(f"{len(sources)} sources given; name one {what}")
    return sources[0]
