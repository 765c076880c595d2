"""Tables of (url, time, value): `prices`, `scrapy` and `digests`; which column is which, how people
write times and prices, and what is wrong with each row."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import polars as pl

from salticus.errors import InputError
from salticus.exchange.convert.base import (
    COMPLAINTS,
    ConvertOptions,
    File,
    Problem,
    SourceRows,
    flag,
)
from salticus.exchange.convert.scan import MARK, files_in, names, scan

_PLAIN = r"^\d{1,15}(?:\.\d{1,20})?$"
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?")
_LONGEST = 40
_ISO = (
    r"^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r" ?(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?$"
)
_DATE = r"^(?:19|20)\d{6}$"
_EPOCH = r"^\d{1,17}(?:\.\d+)?$"

URL = ("url", "link", "page_url", "page", "loc")
TIME = (
    "time", "at", "timestamp", "datetime", "date", "scraped_at", "crawled_at", "fetched_at",
    "visited_at", "seen_at", "crawl_time", "fetch_time",
)  # fmt: skip
CURRENCY = ("currency", "pricecurrency", "price_currency")
PRICE = ("price", "value", "amount", "price_eur", "price_usd")
ITEM = ("price", "value", "text", "content", "digest", "hash")
DIGEST = ("digest", "hash", "checksum", "md5", "sha1", "sha256", "signature", "etag", "value")

# adds `value` and `value_problem` to rows whose value is the text in `raw`; also told are the
# file's columns, and which of them that is
Spelling = Callable[[pl.LazyFrame, Sequence[str], str], pl.LazyFrame]


def prices(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """CSV or JSON of prices seen, with currency, title and anything else."""
    files, rows = read_table(sources, options, PRICE, price_values)
    return SourceRows(files=files, rows=rows, kind="offer")


def scrapy(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """Feed exports, one file a crawl. A column with "price" in its name holds prices."""
    files, rows = read_table(sources, options, ITEM, _item_values)
    prices = all(_priced(file.columns["value"]) for file in files)
    return SourceRows(files=files, rows=rows, kind="offer" if prices else None)


def digests(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """A crawl log of digests: what a page was cannot be told, but when it was another."""
    files, rows = read_table(sources, options, DIGEST, text_values)
    return SourceRows(
        files=files,
        rows=rows,
        values_are="digests",
        caveats="a digest tells any change of the bytes, meaningful or not",
    )


def read_table(
    sources: Sequence[Path], options: ConvertOptions, values: Sequence[str], spelling: Spelling
) -> tuple[list[File], pl.LazyFrame]:
    """The rows of all files, one after another; `values` are usual names of the value's column."""
    paths = files_in(sources)
    if options.at is not None and len(paths) > 1:
        raise InputError(f"--at gives one time, but there are {len(paths)} files; convert each")
    files, frames = list[File](), list[pl.LazyFrame]()
    for number, path in enumerate(paths):
        rows, unit = scan(path)
        file = File(path, _roles(path, names(rows), options, values), unit)
        frames.append(_read(rows, file, options, spelling).with_columns(file=pl.lit(number)))
        files.append(file)
    return files, pl.concat(frames, how="diagonal")


def _roles(
    path: Path, columns: Sequence[str], options: ConvertOptions, values: Sequence[str]
) -> dict[str, str]:
    roles = {
        "url": _pick(path, columns, options.url_column, URL, "url"),
        "value": _pick(path, columns, options.value_column, values, "value"),
    }
    if options.at is None or options.time_column or _usual(columns, TIME):
        roles["time"] = _pick(path, columns, options.time_column, TIME, "time")
    return roles


def _pick(
    path: Path, columns: Sequence[str], given: str | None, usual: Sequence[str], role: str
) -> str:
    """The column for a role: the one given, else the first with a usual name."""
    if given is not None and given not in columns:
        raise InputError(f"{path}: column `{given}` is missing; it has {_listed(columns)}")
    found = given or _usual(columns, usual)
    if found is None:
        raise InputError(
            f"{path}: which column is the {role}? It has {_listed(columns)}; "
            f"name one with --{role}-column"
        )
    return found


def _usual(columns: Sequence[str], usual: Sequence[str]) -> str | None:
    lower = {name.strip().lower(): name for name in reversed(columns)}
    return next((lower[name] for name in usual if name in lower), None)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns) or "no columns"


def _cells(rows: pl.LazyFrame, **columns: str | None) -> pl.LazyFrame:
    """Columns of the source under new names, as text without margins; null if empty.

    Lists of one are unwrapped, as item loaders write them.
    """
    given = {
        new: pl.lit(None, dtype=pl.String) if name is None else pl.col(MARK + name)
        for new, name in columns.items()
    }
    trimmed = pl.col(*columns).str.strip_chars().str.replace(r'^\["?(.*?)"?\]$', "$1")
    filled = pl.when(pl.col(*columns) != "").then(pl.col(*columns))
    return rows.with_columns(**given).with_columns(trimmed).with_columns(filled)


def _read(
    rows: pl.LazyFrame, file: File, options: ConvertOptions, spelling: Spelling
) -> pl.LazyFrame:
    own, roles = names(rows), file.columns
    rows = _cells(rows, url=roles["url"], time=roles.get("time"), raw=roles["value"])
    rows = spelling(_with_times(rows, options), own, roles["value"])
    shown = pl.when(pl.col("time_problem").is_not_null()).then("time").otherwise("raw")
    rows = rows.with_columns(
        problem=pl.coalesce(
            flag(pl.col("broken"), Problem.NO_OBJECT),
            flag(pl.col("url").is_null(), Problem.NO_URL),
            "time_problem",
            "value_problem",
        )
    )
    rest = [MARK + name for name in own if name not in roles.values()]
    shown = pl.when(pl.col("problem").is_not_null()).then(shown)
    return rows.select("line", "url", "at", "value", "problem", *rest, shown=shown)


def _with_times(rows: pl.LazyFrame, options: ConvertOptions) -> pl.LazyFrame:
    """The rows with their times; where there is none, with the one given for the file."""
    rows = read_times(rows, options.timezone)
    if options.at is None:
        return rows
    given = read_time(options.at, options.timezone, "--at")
    empty = pl.col("time").is_null()
    return rows.with_columns(
        at=pl.when(empty).then(pl.lit(given)).otherwise("at"),
        time_problem=pl.when(~empty).then("time_problem"),
    )


def text_values(rows: pl.LazyFrame, columns: Sequence[str], value: str) -> pl.LazyFrame:
    """Values that are text as they stand; a `Spelling`."""
    raw = pl.col("raw")
    return rows.with_columns(value=raw, value_problem=flag(raw.is_null(), Problem.NO_VALUE))


def _priced(column: str) -> bool:
    return "price" in column.lower()


def _item_values(rows: pl.LazyFrame, columns: Sequence[str], value: str) -> pl.LazyFrame:
    spelling = price_values if _priced(value) else text_values
    return spelling(rows, columns, value)


def price_values(rows: pl.LazyFrame, columns: Sequence[str], value: str) -> pl.LazyFrame:
    """Values as the extractor of offers writes them: price, currency, availability, as far as the
    columns tell; a `Spelling`."""
    currency, stock = _usual(columns, CURRENCY), _usual(columns, ("availability",))
    rows = _cells(read_prices(rows), _currency=currency, _stock=stock)
    # schema.org's words without its address
    word = pl.col("_stock").str.strip_chars().str.replace(r"^https?://schema\.org/", "")
    known = ("price", pl.col("_currency").str.to_uppercase(), word)
    text = pl.concat_str(known, separator=" ", ignore_nulls=True)
    none, unread = pl.col("raw").is_null(), pl.col("price").is_null()
    return rows.with_columns(
        value=pl.when(~unread).then(text),
        value_problem=pl.coalesce(flag(none, Problem.NO_VALUE), flag(unread, Problem.BAD_PRICE)),
    )


def read_prices(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows with `price`, the amount that the text in `raw` states; null if it states not one.

    Amounts are the shortest plain decimals. Plain decimals are taken as they are ("1.299" is less
    than two); what is not one is read as people write prices ("1.299,00 €").
    """
    text, plain = pl.col("raw"), pl.col("_plain")
    short = text.str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    odd = pl.when(~plain).then(text)
    read = odd.map_batches(_amounts, return_dtype=pl.String, is_elementwise=True)
    price = pl.coalesce(pl.when(plain).then(short.str.replace(r"^0+(\d)", "$1")), read)
    rows = rows.with_columns(_plain=text.str.contains(_PLAIN))
    return rows.with_columns(price=price).drop("_plain")


def _amounts(texts: pl.Series) -> pl.Series:
    """Each spelling is read once."""
    spellings = texts.drop_nulls().unique()
    amounts = pl.Series([amount(s) for s in spellings], dtype=pl.String)
    return texts.replace_strict(spellings, amounts, default=None, return_dtype=pl.String)


def amount(text: str) -> str | None:
    """The one price that a text states, as the shortest plain decimal.

    >>> amount("1.299,00 €"), amount("$5"), amount("1e3"), amount("5 to 7"), amount("-5")
    ('1299', '5', '1000', None, None)
    """
    if len(text) > _LONGEST or text.startswith("-") or len(re.findall(r"\d[\d.,' ]*", text)) != 1:
        return None if not _NUMBER.fullmatch(text) else _shortest(Decimal(text))
    import price_parser

    try:
        found = price_parser.Price.fromstring(text).amount
    except (InvalidOperation, ValueError):
        return None
    return None if found is None else _shortest(found)


def _shortest(number: Decimal) -> str:
    text = f"{number:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def read_times(rows: pl.LazyFrame, timezone: str | None) -> pl.LazyFrame:
    """The rows with `at` (UTC, µs), read from the text in `time`, and `time_problem`.

    Numbers are seconds, milliseconds or microseconds since 1970, by their size; eight digits are
    a date. What states no zone is in `timezone`; without one it is a problem. A time that the
    clocks of the zone show twice is the earlier one.
    """
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
    problem = pl.coalesce(
        flag(text.is_null(), Problem.NO_TIME),
        flag(naive.is_null(), Problem.BAD_TIME),
        flag(pl.lit(True), Problem.SKIPPED_TIME if timezone else Problem.NO_ZONE),
    )
    problem = pl.when(pl.col("at").is_null()).then(problem)
    return rows.with_columns(time_problem=problem).drop("_parts", "_naive", "_offset")


def _naive(parts: pl.Expr) -> pl.Expr:
    day, minute, second, fraction = (parts.struct.field(str(n)) for n in range(1, 5))
    text = pl.concat_str(day, minute.fill_null("00:00"), second.fill_null("00"), separator=" ")
    micros = (fraction.fill_null("") + "000000").str.slice(0, 6).cast(pl.Int64)
    whole = text.str.to_datetime("%Y-%m-%d %H:%M %S", time_unit="us", strict=False)
    return whole + pl.duration(microseconds=micros)


def _date(text: pl.Expr) -> pl.Expr:
    eight = pl.when(text.str.contains(_DATE)).then(text)
    return eight.str.to_date("%Y%m%d", strict=False).cast(pl.Datetime("us"))


def _offset(zone: pl.Expr) -> pl.Expr:
    """How far a stated zone is ahead of UTC; null where none is stated."""
    digits = zone.str.replace(":", "")
    hours = digits.str.slice(1, 2).cast(pl.Int64, strict=False)
    minutes = digits.str.slice(3, 2).cast(pl.Int64, strict=False).fill_null(0)
    ahead = hours * 60 + minutes
    signed = pl.when(zone.str.starts_with("-")).then(-ahead).otherwise(ahead)
    named = zone.str.contains("^[A-Za-z]")
    return pl.duration(minutes=pl.when(named).then(0).when(zone.is_not_null()).then(signed))


def _epoch(text: pl.Expr) -> pl.Expr:
    """Numbers: seconds below 10^11 (the year 5138), then milliseconds, then microseconds."""
    plain = text.str.contains(_EPOCH) & ~text.str.contains(_DATE)
    number = pl.when(plain).then(text).cast(pl.Float64, strict=False)
    micros = (
        pl.when(number < 1e11).then(number * 1e6).when(number < 1e14).then(number * 1e3)
    ).otherwise(number)
    return micros.round().cast(pl.Int64).cast(pl.Datetime("us", "UTC"))


def read_time(text: str, timezone: str | None, option: str) -> datetime:
    """One time, given as an option."""
    given = pl.LazyFrame({"time": [text.strip() or None]}, schema={"time": pl.String})
    at, problem = read_times(given, timezone).select("at", "time_problem").collect().row(0)
    if problem is not None:
        _, wrong, remedy = COMPLAINTS[Problem(problem)]
        raise InputError(f"{option}: {text!r} {wrong}; {remedy}")
    found: datetime = at
    return found
