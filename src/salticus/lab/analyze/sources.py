"""The record of a log from the best of its tables.

Values tell the truth at every hour or day, texts at every crawl of a host, visits what they found.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.write import spelt
from salticus.lab.analyze.pages import AnalyzedPages, key, offsets_us
from salticus.lab.analyze.record import (
    DAY,
    HOUR,
    MICRO,
    Downloads,
    Grid,
    begins,
    changes_of,
    look_of,
    stays,
    step_of,
    tally,
)
from salticus.types import ANSWERED, Ints
from salticus.types.dates import DAY_US, epoch_us

_PAGES = 10  # fewer may well fall silent together
_CHANCE = 1e-9  # of such a silence if the merchant had gone on as before


def record_of(log: Log, known: AnalyzedPages) -> tuple[Downloads | None, list[str]]:
    """What was downloaded and had changed, from the best table there is; or why there is none."""
    if log.has("values"):
        return values_record(log, known), []
    if log.has("visits"):
        return visits_record(log, known), []
    if not log.has("texts"):
        reason = "nothing tells of changes: no values.parquet, visits.parquet or texts.parquet"
    elif not log.has("crawls"):
        reason = "texts.parquet without crawls.parquet does not tell when pages were downloaded"
    elif not known.has("host"):
        reason = "texts.parquet needs column `host` of pages.parquet to find a page's crawls"
    else:
        return texts_record(log, known), []
    return None, [reason]


# --------------------------------------------------------------------------------- values and texts


def values_record(log: Log, known: AnalyzedPages) -> Downloads:
    """Every page is downloaded once an hour (or once a day, if no more is known) while it is there.

    The log ends with its `span` or its last row, whichever is later; a merchant that fell silent
    for good ends with its own last row (see `ends_of`).
    """
    step, notes = step_of(log, "values")
    points, more = points_of(log, "values", "value", known)
    ends, silent = ends_of(points, known, _end(log, points), step)
    grid, slot, stop = _hours(points, known, ends, step)
    seen = stays(points["row"].to_numpy(), slot, points["look"].to_numpy(), stop)
    means = f"a look at a page, one every {spelt(step)} for as long as the page is there"
    return Downloads("values", means, step, step, *tally(seen, grid), notes + more + silent)


def texts_record(log: Log, known: AnalyzedPages) -> Downloads:
    """A page is downloaded whenever its host is crawled, from its first text on."""
    step, notes = step_of(log, "texts")
    points, more = points_of(log, "texts", "text", known)
    grid, slot, stop = _crawls(log, points, known)
    kept = np.flatnonzero(slot >= 0)
    row, look = (points[name].to_numpy()[kept] for name in ("row", "look"))
    seen = stays(row, slot[kept], look, stop[kept])
    if lost := len(slot) - len(kept):
        more.append(f"{lost:,} rows of texts.parquet are of hosts without a row in crawls.parquet")
    unit = DAY if step >= DAY else HOUR
    means = "a look at a page, one at every crawl of its host (crawls.parquet)"
    return Downloads("texts", means, step, unit, *tally(seen, grid), notes + more)


def points_of(
    log: Log, table: str, column: str, known: AnalyzedPages
) -> tuple[pl.DataFrame, list[str]]:
    """Rows of a table by page and time: `row`, `at` (µs), `look`; and what had to be left out."""
    rows = log.scan(table, column).select(
        key(log, table), pl.col("at").cast(pl.Int64), look_of(column).alias("look")
    )
    pages = known.frame.lazy().select("page_id", "row")
    found = rows.join(pages, on="page_id", how="left").drop("page_id").collect()
    whole = found.drop_nulls(["row", "at"]).sort("row", "at", maintain_order=True)
    lost = len(found) - len(whole)
    note = f"{lost:,} rows of {table}.parquet are of no page in pages.parquet or without a time"
    return whole, [note] * bool(lost)


def _end(log: Log, points: pl.DataFrame) -> int:
    """When the log ends, µs, not included."""
    span = log.about.rest.get("span")
    last = int(points["at"].to_numpy().max(initial=0)) + 1
    if not isinstance(span, list) or len(span) != 2 or span[1] is None:
        return last
    try:
        return max(last, epoch_us(datetime.fromisoformat(str(span[1]))))
    except ValueError:
        path = log.folder / "log.json"
        raise InputError(f"{path}: `span`: {span[1]!r} is not a time in ISO 8601") from None


def _hours(
    points: pl.DataFrame, known: AnalyzedPages, ends: Ints, step: timedelta
) -> tuple[Grid, Ints, Ints]:
    """The grid of all zones side by side, the slot of each point, and where its page's slots end.

    A zone whose clock is half an hour off has its slots at the half hour, so that a slot is an hour
    of local time everywhere. Days are those of UTC.
    """
    zones = known.frame["zone"].unique().sort()
    at = points["at"].to_numpy()
    us = step // MICRO
    start = int(at.min()) if len(at) else 0
    past = offsets_us(zones, start) if step < DAY else [0] * len(zones)
    first = start // us - 1
    width = -(-int(ends.max(initial=start)) // us) - first + 1
    codes = known.frame["zone"].cast(pl.Enum(zones)).to_physical().cast(pl.Int64).to_numpy()
    begin = -np.array(past, dtype=np.int64)  # of a zone's hours, relative to those of UTC
    page = points["row"].to_numpy()
    zone = codes[page]
    base = zone * width - first
    slot = base + (at - begin[zone]) // us
    stop = base + -((begin[zone] - ends[page]) // us)
    starts = (begin[:, None] + us * (first + np.arange(width))).ravel()
    names = zones.gather(np.repeat(np.arange(len(zones)), width))
    return Grid(starts, starts + us, names), slot, stop


def _crawls(log: Log, points: pl.DataFrame, known: AnalyzedPages) -> tuple[Grid, Ints, Ints]:
    """The crawls of every host (once for each time zone of its pages), the crawl that brought each
    point, -1 if its host was never crawled, and where its page's crawls end."""
    pairs = known.frame.select("host", "zone").unique().sort("host", "zone").with_row_index("pair")
    crawls = log.scan("crawls").select("host", pl.col("at").cast(pl.Int64)).drop_nulls().unique()
    slots = pairs.lazy().join(crawls, on="host").sort("pair", "at").with_row_index("slot").collect()
    of_page = known.frame.join(pairs, on=["host", "zone"]).select("row", "pair")
    mine = points.select("row", "at").with_row_index("number").join(of_page, on="row", how="left")
    last = slots.select("pair", "at", "slot").sort("at")  # that of each point: at it or before
    found = mine.sort("at").join_asof(last, on="at", by="pair", check_sortedness=False)
    ends = slots.group_by("pair").agg(low=pl.col("slot").min(), high=pl.col("slot").max() + 1)
    found = found.join(ends, on="pair", how="left").sort("number")
    slot = pl.coalesce("slot", "low", -1)  # the first crawl brought what is older
    brought = found.select(slot.cast(pl.Int64), pl.col("high").fill_null(0).cast(pl.Int64))
    at = slots["at"].to_numpy()
    until = slots.select(pl.col("at").shift(-1, fill_value=0).over("pair"))["at"].to_numpy()
    grid = Grid(at, np.maximum(at, until), slots["zone"])
    return grid, brought["slot"].to_numpy(), brought["high"].to_numpy()


def ends_of(
    points: pl.DataFrame, known: AnalyzedPages, end: int, step: timedelta
) -> tuple[Ints, list[str]]:
    """When each page is last heard of (µs, not included), and a sentence on every merchant (or
    host) who fell silent for good before the end: with the share f of days that brought news
    before, a silence of k days has a chance of (1 − f)^k, and that is below 1e-9.

    A log of values cannot tell a price that stayed from a crawl that stopped. Where a merchant's
    pages kept changing and then, all of them, never again, the crawl has stopped: counting on would
    dilute every probability with downloads that nobody made.
    """
    ends: Ints = np.full(len(known), end)
    notes: list[str] = []
    names = [pl.col(c) for c in ("merchant", "host") if known.has(c)]
    if not names or points.is_empty():
        return ends, notes
    who = known.frame.select("row", name=pl.coalesce(names))
    day = max(DAY_US, step // MICRO)
    lives = (
        points.lazy()
        .join(who.lazy(), on="row")
        .drop_nulls("name")
        .group_by("name")
        .agg(
            first=pl.col("at").min() // day,
            last=pl.col("at").max() // day,
            active=(pl.col("at") // day).n_unique(),
            pages=pl.col("row").n_unique(),
        )
        .collect()
    )
    busy = pl.col("active") / (pl.col("last") - pl.col("first") + 1)
    silent = (end - 1) // day - pl.col("last")
    gone = (pl.col("pages") >= _PAGES) & (silent * (1 - busy).log() < np.log(_CHANCE))
    found = lives.with_columns(silent=silent).filter(gone & (pl.col("silent") > 0)).sort("name")
    for life in found.to_dicts():
        until = (life["last"] + 1) * day
        ends[who.filter(pl.col("name") == life["name"])["row"].to_numpy()] = until
        date = np.datetime64(until - 1, "us").astype("datetime64[D]")
        notes.append(
            f"nothing is heard of {life['name']} ({life['pages']:,} pages) after {date}, "
            f"{life['silent']} days before the log ends: its crawl is taken to have stopped then"
        )
    return ends, notes


# ------------------------------------------------------------------------------------------- visits


def visits_record(log: Log, known: AnalyzedPages) -> Downloads:
    """Downloads are the answered visits, and a change is `changed = true`.

    A page's first answer is no change, whatever the crawler knew before the log began. Where the
    log has no `changed`, values that differ from the last one are changes.
    """
    visits, notes = _answered(log, known)
    step, more = step_of(log, "visits")
    ends = {"first": pl.col("at").min(), "last": pl.col("at").max()}
    pages = visits.group_by("row").agg(downloads=pl.len().cast(pl.Int64), **ends).collect()
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
        looks=_visited(visits, changes, known),
        notes=more + notes,
        valued="value" in log.columns("visits"),
    )


def _answered(log: Log, known: AnalyzedPages) -> tuple[pl.LazyFrame, list[str]]:
    """The answered visits of known pages: `row`, `at` (µs), `look`, `changed`; and remarks."""
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
    visits = visits.join(known.frame.lazy().select("page_id", "row"), on="page_id").select(
        "row",
        pl.col("at").cast(pl.Int64),
        look=look_of("value") if "value" in have else pl.lit(0, dtype=pl.UInt64),
        changed=pl.col("changed").fill_null(False) if "changed" in have else pl.lit(False),
    )
    if "changed" not in have:
        notes.append("visits.parquet has no column `changed`: a new value is taken as a change")
        visits = _compared(visits)
    return visits.filter(pl.col("at").is_not_null()), notes


def _compared(visits: pl.LazyFrame) -> pl.LazyFrame:
    """`changed` where a value differs from the last one that the page's visits brought."""
    held = pl.when(pl.col("look") != 0).then("look").forward_fill()
    visits = visits.sort("row", "at").with_columns(held=held.over("row"))
    before = pl.col("held").shift(1).over("row")
    return visits.with_columns(changed=(pl.col("held") != before).fill_null(False)).drop("held")


def _changes(log: Log, visits: pl.LazyFrame, seen: pl.LazyFrame) -> pl.DataFrame:
    """The changes, each after the page's first answer or the change before."""
    valued = pl.col("look").filter(pl.col("look") != 0)
    first = visits.group_by("row").agg(
        look=valued.sort_by(pl.col("at").filter(pl.col("look") != 0)).first().fill_null(0),
        at=pl.col("at").min(),
    )
    both = pl.concat([first.select("row", "at", "look"), seen.select("row", "at", "look")])
    marks = both.sort("row", "at", maintain_order=True).collect()
    page = marks["row"].to_numpy()
    return changes_of(page, marks["at"].to_numpy(), marks["look"].to_numpy(), begins(page))


def _visited(visits: pl.LazyFrame, changes: pl.DataFrame, known: AnalyzedPages) -> pl.DataFrame:
    """Downloads and changes by zone and quarter of an hour, of which every zone's hour is made."""
    zones = known.frame.lazy().select("row", "zone")
    quarter = (pl.col("at") // 900_000_000) * 900_000_000

    def counted(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
        keys = [pl.col("zone"), quarter.alias("at")]
        return rows.join(zones, on="row").group_by(keys).agg(pl.len().cast(pl.Int64).alias(name))

    downloads, changed = counted(visits, "downloads"), counted(changes.lazy(), "changes")
    joined = downloads.join(changed, on=["zone", "at"], how="left")
    return joined.with_columns(pl.col("changes").fill_null(0)).collect()
