"""Times as people write them: ISO 8601 with or without a zone, dates, and seconds since 1970."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from salticus.errors import InputError
from salticus.exchange.convert.base import COMPLAINTS, Problem

if TYPE_CHECKING:
    import polars as pl

_ISO = (
    r"^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r" ?(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?$"
)
_DATE = r"^(?:19|20)\d{6}$"
_NUMBER = r"^\d{1,17}(?:\.\d+)?$"


def read_times(rows: pl.LazyFrame, timezone: str | None) -> pl.LazyFrame:
    """The rows with `at` (UTC, µs), read from the text in `time`, and `time_problem`.

    Numbers are seconds, milliseconds or microseconds since 1970, by their size; eight digits are
    a date. What states no zone is in `timezone`; without one it is a problem. A time that the
    clocks of the zone show twice is the earlier one.
    """
    import polars as pl

    # in steps, because an expression that is used twice would be computed twice
    text, naive = pl.col("time"), pl.col("_naive")
    rows = rows.with_columns(_parts=text.str.extract_groups(_ISO))
    parts = pl.col("_parts")
    rows = rows.with_columns(
        _naive=pl.coalesce(_naive(parts), _date(text)), _offset=_offset(parts.struct.field("5"))
    )
    # the years that Python's calendar has in every zone
    rows = rows.with_columns(_naive=pl.when(naive.dt.year().is_between(2, 9998)).then(naive))
    local = naive.dt.replace_time_zone(
        timezone or "UTC", ambiguous="earliest", non_existent="null"
    ).dt.convert_time_zone("UTC")
    zoned = (naive - pl.col("_offset")).dt.replace_time_zone("UTC")
    rows = rows.with_columns(
        at=pl.coalesce(zoned, _epoch(text), local if timezone else pl.lit(None))
    )
    unplaced = Problem.SKIPPED_TIME if timezone else Problem.NO_ZONE
    problem = (
        pl.when(pl.col("at").is_not_null())
        .then(None)
        .when(text.is_null())
        .then(Problem.NO_TIME.value)
        .when(naive.is_null())
        .then(Problem.BAD_TIME.value)
        .otherwise(unplaced.value)
    )
    return rows.with_columns(time_problem=problem.cast(pl.Int8)).drop("_parts", "_naive", "_offset")


def _naive(parts: pl.Expr) -> pl.Expr:
    import polars as pl

    day, minute, second, fraction = (parts.struct.field(str(n)) for n in range(1, 5))
    text = pl.concat_str(day, minute.fill_null("00:00"), second.fill_null("00"), separator=" ")
    micros = (fraction.fill_null("") + "000000").str.slice(0, 6).cast(pl.Int64)
    whole = text.str.to_datetime("%Y-%m-%d %H:%M %S", time_unit="us", strict=False)
    return whole + pl.duration(microseconds=micros)


def _date(text: pl.Expr) -> pl.Expr:
    import polars as pl

    eight = pl.when(text.str.contains(_DATE)).then(text)
    return eight.str.to_date("%Y%m%d", strict=False).cast(pl.Datetime("us"))


def _offset(zone: pl.Expr) -> pl.Expr:
    """How far a stated zone is ahead of UTC; null where none is stated."""
    import polars as pl

    digits = zone.str.replace(":", "")
    hours = digits.str.slice(1, 2).cast(pl.Int64, strict=False)
    minutes = digits.str.slice(3, 2).cast(pl.Int64, strict=False).fill_null(0)
    ahead = hours * 60 + minutes
    signed = pl.when(zone.str.starts_with("-")).then(-ahead).otherwise(ahead)
    named = zone.str.contains("^[A-Za-z]")
    return pl.duration(minutes=pl.when(named).then(0).when(zone.is_not_null()).then(signed))


def _epoch(text: pl.Expr) -> pl.Expr:
    """Numbers: seconds below 10^11 (the year 5138), then milliseconds, then microseconds."""
    import polars as pl

    plain = text.str.contains(_NUMBER) & ~text.str.contains(_DATE)
    number = pl.when(plain).then(text).cast(pl.Float64, strict=False)
    micros = (
        pl.when(number < 1e11).then(number * 1e6).when(number < 1e14).then(number * 1e3)
    ).otherwise(number)
    return micros.round().cast(pl.Int64).cast(pl.Datetime("us", "UTC"))


def read_time(text: str, timezone: str | None, option: str) -> datetime:
    """One time, given as an option."""
    import polars as pl

    given = pl.LazyFrame({"time": [text.strip() or None]}, schema={"time": pl.String})
    at, problem = read_times(given, timezone).select("at", "time_problem").collect().row(0)
    if problem is not None:
        _, wrong, remedy = COMPLAINTS[Problem(problem)]
        raise InputError(f"{option}: {text!r} {wrong}; {remedy}")
    found: datetime = at
    return found
