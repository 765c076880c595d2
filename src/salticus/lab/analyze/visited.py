"""Records of logs that hold visits only: a download is a visit that was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.analyze.pages import AnalyzedPages, key
from salticus.lab.analyze.record import DAY, HOUR, Downloads, step_of
from salticus.lab.analyze.walk import begins, changes_of, look_of
from salticus.types import ANSWERED

if TYPE_CHECKING:
    import polars as pl


def visits_record(log: Log, known: AnalyzedPages) -> Downloads:
    """Downloads are the answered visits, and a change is `changed = true`.

    A page's first answer is no change, whatever the crawler knew before the log began. Where the
    log has no `changed`, values that differ from the last one are changes.
    """
    import polars as pl

    visits, notes = _answered(log, known)
    step, more = step_of(log, "visits")
    firsts = visits.group_by("row").agg(
        downloads=pl.len().cast(pl.Int64),
        first=pl.col("at").min(),
        last=pl.col("at").max(),
    )
    pages = firsts.collect()
    later = visits.join(pages.lazy().select("row", "first"), on="row")
    seen = later.filter(pl.col("changed") & (pl.col("at") > pl.col("first")))
    changes = _changes(log, visits, seen)
    per_page = changes.group_by("row").agg(changes=pl.len().cast(pl.Int64))
    pages = pages.join(per_page, on="row", how="left").with_columns(
        pl.col("changes").fill_null(0), watched=pl.col("last") - pl.col("first")
    )
    return Downloads(
        source="visits",
        means="a visit that was answered (visits.parquet)",
        step=step,
        unit=DAY if step >= DAY else HOUR,
        pages=pages.sort("row"),
        changes=changes,
        looks=_looks(visits, changes, known),
        notes=more + notes,
        valued="value" in log.columns("visits"),
    )


def _answered(log: Log, known: AnalyzedPages) -> tuple[pl.LazyFrame, list[str]]:
    """The answered visits of known pages: `row`, `at` (µs), `look`, `changed`; and remarks."""
    import polars as pl

    have = log.columns("visits")
    if not have & {"changed", "value"}:
        path = log.path("visits")
        raise InputError(f"{path}: neither column `changed` nor `value`: changes cannot be told")
    visits = log.scan("visits").with_columns(key(log, "visits"))
    notes = []
    if "status" in have:
        answered = sorted(status.label for status in ANSWERED)
        visits = visits.filter(pl.col("status").cast(pl.String).is_in(answered))
    else:
        notes.append("visits.parquet has no column `status`: every visit is taken as answered")
    look = look_of("value") if "value" in have else pl.lit(0, dtype=pl.UInt64)
    visits = visits.join(known.frame.lazy().select("page_id", "row"), on="page_id").select(
        "row",
        pl.col("at").cast(pl.Int64),
        look.alias("look"),
        pl.col("changed").fill_null(False) if "changed" in have else pl.lit(False).alias("changed"),
    )
    if "changed" not in have:
        notes.append("visits.parquet has no column `changed`: a new value is taken as a change")
        visits = _compared(visits)
    return visits.filter(pl.col("at").is_not_null()), notes


def _compared(visits: pl.LazyFrame) -> pl.LazyFrame:
    """`changed` where a value differs from the last one that the page's visits brought."""
    import polars as pl

    held = pl.when(pl.col("look") != 0).then("look").forward_fill()
    visits = visits.sort("row", "at").with_columns(held=held.over("row"))
    before = pl.col("held").shift(1).over("row")
    return visits.with_columns(changed=(pl.col("held") != before).fill_null(False)).drop("held")


def _changes(log: Log, visits: pl.LazyFrame, seen: pl.LazyFrame) -> pl.DataFrame:
    """The changes, each after the page's first answer or the change before."""
    import polars as pl

    valued = pl.col("look").filter(pl.col("look") != 0)
    first = visits.group_by("row").agg(
        look=valued.sort_by(pl.col("at").filter(pl.col("look") != 0)).first().fill_null(0),
        at=pl.col("at").min(),
    )
    both = pl.concat([first.select("row", "at", "look"), seen.select("row", "at", "look")])
    marks = both.sort("row", "at", maintain_order=True).collect()
    page = marks["row"].to_numpy()
    return changes_of(page, marks["at"].to_numpy(), marks["look"].to_numpy(), begins(page))


def _looks(visits: pl.LazyFrame, changes: pl.DataFrame, known: AnalyzedPages) -> pl.DataFrame:
    """Downloads and changes by zone and quarter of an hour, of which every zone's hour is made."""
    import polars as pl

    zones = known.frame.lazy().select("row", "zone")
    quarter = (pl.col("at") // 900_000_000) * 900_000_000

    def counted(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
        keys = [pl.col("zone"), quarter.alias("at")]
        return rows.join(zones, on="row").group_by(keys).agg(pl.len().cast(pl.Int64).alias(name))

    downloads, changed = counted(visits, "downloads"), counted(changes.lazy(), "changes")
    joined = downloads.join(changed, on=["zone", "at"], how="left")
    return joined.with_columns(pl.col("changes").fill_null(0)).collect()
