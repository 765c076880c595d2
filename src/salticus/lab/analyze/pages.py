"""The pages of a log by number, with what the study groups them by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.analyze.shares import percent
from salticus.types.dates import HOUR_US

GROUPS = ("country", "category", "merchant", "stratum", "kind")


@dataclass(frozen=True, slots=True)
class AnalyzedPages:
    """All pages: `row` (0, 1, …), `page_id`, `zone`, `host` and the columns of GROUPS that exist.

    `category` is cut to its top level. `zone` is a time zone that can be computed with: UTC where
    the log has none, which is true of the share `unzoned` of pages.
    """

    frame: pl.DataFrame
    unzoned: float
    notes: list[str]

    def __len__(self) -> int:
        return len(self.frame)

    def has(self, column: str) -> bool:
        return column in self.frame.columns


def known_pages(log: Log) -> AnalyzedPages:
    """Read what the study needs of `pages.parquet`."""
    have = log.columns("pages")
    texts = [c for c in (*GROUPS, "host", "timezone") if c in have]
    frame = (
        log.scan("pages")
        .select(key(log, "pages"), *(pl.col(c).cast(pl.String) for c in texts))
        .sort("page_id")  # so that the order of the file changes nothing, not even rounding
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
        .collect()
    )
    ids = frame["page_id"]
    if ids.null_count():
        raise InputError(f"{log.path('pages')}: column `page_id` has empty rows")
    if twice := ids.filter(ids.is_duplicated()).head(1).to_list():
        raise InputError(f"{log.path('pages')}: column `page_id` has {twice[0]!r} more than once")
    if "category" in have:
        top = pl.col("category").str.split(">").list.first().str.strip_chars()
        frame = frame.with_columns(category=pl.when(top != "").then(top))
    return _zoned(frame)


def key(log: Log, table: str) -> pl.Expr:
    """The column `page_id`, of the same type in every table; InputError where it cannot be."""
    kinds = [log.scan(t).collect_schema()["page_id"].is_integer() for t in ("pages", table)]
    if kinds[0] != kinds[1]:
        wanted, found = ("integer" if kind else "text" for kind in kinds)
        raise InputError(
            f"{log.path(table)}: column `page_id` is {found}, "
            f"but {wanted} in pages.parquet; write both alike"
        )
    return pl.col("page_id").cast(pl.Int64 if kinds[0] else pl.String)


def _zoned(frame: pl.DataFrame) -> AnalyzedPages:
    """Put UTC where no time zone is known, or none that exists."""
    if "timezone" not in frame.columns:
        note = "pages.parquet has no column `timezone`: local time is UTC for all pages"
        return AnalyzedPages(frame.with_columns(zone=pl.lit("UTC")), 1.0, [note] * bool(len(frame)))
    names = frame["timezone"].drop_nulls().unique().sort().to_list()
    usable = [name for name in names if offsets_us([name], 0) is not None]
    strange = sorted(set(names) - set(usable))
    known = pl.when(pl.col("timezone").is_in(usable)).then("timezone")
    frame = frame.with_columns(zone=known)
    unzoned = frame["zone"].null_count() / max(1, len(frame))
    notes = [f"time zones that do not exist are taken as UTC: {', '.join(strange[:5])}"]
    missing = (
        f"{percent(unzoned)} of pages have no usable `timezone` in pages.parquet: UTC for them"
    )
    return AnalyzedPages(
        frame.drop("timezone").with_columns(pl.col("zone").fill_null("UTC")),
        unzoned,
        notes * bool(strange) + [missing] * bool(unzoned),
    )


def offsets_us(zones: Iterable[str], at: int) -> list[int] | None:
    """How far each zone's clock is past a whole hour of UTC at a time, µs; None if one is unknown.

    >>> offsets_us(["Europe/Paris", "Asia/Kolkata"], 0), offsets_us(["Mars/Olympus"], 0)
    ([0, 1800000000], None)
    """
    moment = pl.Series([at], dtype=pl.Datetime("us", "UTC"))
    try:
        local = [moment.dt.convert_time_zone(zone).dt.replace_time_zone(None) for zone in zones]
    except pl.exceptions.PolarsError:
        return None
    return [(int(clock.cast(pl.Int64)[0]) - at) % HOUR_US for clock in local]
