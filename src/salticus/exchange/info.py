"""What a log holds, in figures, and what it can be used for."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from salticus.errors import InputError
from salticus.exchange.folder import REQUIRED, TABLES, Log, reading
from salticus.types.dates import DAY_US

_GROUPS = ("country", "category", "merchant")

_DAY = timedelta(days=1)


def info(folder: Path) -> dict[str, Any]:
    """The figures of a log; those that its tables do not give are absent. Rates are per day.

    The log is taken to be sound; `check` tells whether it is.
    """
    log = Log(folder)
    span = _span(log)
    days = (span[1] - span[0]) / _DAY if span else 0.0
    return {
        "name": log.about.name,
        "span": log.about.rest.get("span") or [str(when) for when in span or ()],
        "resolution": log.about.rest.get("resolution"),
        "rows": rows_of(log),
        **_pages(log),
        **(_changes(log, span[1]) if span else {}),
        **(_visits(log, days) if log.has("visits") else {}),
        **(_demand(log, days) if log.has("demand") else {}),
        "uses": {  # "yes", "imputed" or "no", and why
            "simulate": _simulate(log),
            "weigh by clicks": _use_of_demand(log),
            "replay requests": _needs(log, "requests"),
            "find new pages": _finding(log),
            "analyze": _analyze(log),
            "serve in a mall": _needs(log, "values"),
        },
    }


def rows_of(log: Log) -> dict[str, int]:
    """How many rows each table has that is there."""
    return {table: log.rows(table) for table in TABLES if log.has(table)}


def _span(log: Log) -> tuple[datetime, datetime] | None:
    """From `log.json`, else the first and the last time in the tables."""
    try:
        said = log.about.ends()
    except ValueError as error:
        raise InputError(f"{log.folder / 'log.json'}: `span`: {error}") from None
    if said:
        return said
    ends: list[datetime] = []
    for table in filter(log.has, TABLES):
        for column in (c for c in REQUIRED[table] if TABLES[table][c] == "time"):
            at = pl.col(column)
            found = _row(log, table, log.scan(table), first=at.min(), last=at.max())
            ends += [when for when in found.values() if when is not None]
    return (min(ends), max(ends)) if ends else None


def _pages(log: Log) -> dict[str, Any]:
    """How many pages of each kind and so on; how many merchants."""
    pages, columns = log.scan("pages"), log.columns("pages")
    known = [column for column in ("kind", "stratum", "country") if column in columns]
    facts: dict[str, Any] = {"pages": log.rows("pages")}
    facts |= {f"pages_by_{column}": _counts(log, "pages", column) for column in known}
    if "merchant" in columns:
        count = pl.col("merchant").drop_nulls().n_unique()
        facts |= _row(log, "pages", pages, merchants=count)
    return facts


def _changes(log: Log, end: datetime) -> dict[str, Any]:
    """How often pages change, from values or else texts; the first row of a page is no change.

    Page-days run from a page's first row to the end of the log, or until it is gone.
    """
    table, column = ("values", "value") if log.has("values") else ("texts", "text")
    if not log.has(table):
        return {}
    at, gone, changes = pl.col("at"), pl.col("gone"), pl.col("changes")
    ended = at.filter(pl.col(column).is_null()).max()
    rows = log.scan(table).group_by("page_id")
    pages = rows.agg(changes=pl.len() - 1, first=at.min(), last=at.max(), gone=ended)
    until = pl.when(gone == pl.col("last")).then(gone).otherwise(pl.lit(end))
    lived = ((until - pl.col("first")).dt.total_microseconds().clip(0) / DAY_US).sum()
    counts = {
        "median": changes.median(),
        "p90": changes.quantile(0.9, "nearest"),
        "max": changes.max(),
    }
    rates = {
        "changes_per_page_day": changes.cast(pl.Float64).sum() / lived,
        "share_never_changed": (changes == 0).mean(),
    }
    found = _row(log, table, pages, pages=pl.len(), **counts, **rates)
    return {
        f"pages_with_{table}": found["pages"],
        "changes_per_page": {key: found[key] for key in counts},
        **{key: found[key] for key in rates},
    }


def _visits(log: Log, days: float) -> dict[str, Any]:
    """How often pages are visited, and how visits end."""
    visits, pages = log.rows("visits"), log.rows("pages")
    facts: dict[str, Any] = {"visits_per_page_day": _neat(visits / (pages * days or math.nan))}
    for column in ("status", "purpose"):
        if column in log.columns("visits"):
            counts = _counts(log, "visits", column)
            facts[f"share_by_{column}"] = {key: _neat(n / visits) for key, n in counts.items()}
    return facts


def _demand(log: Log, days: float) -> dict[str, Any]:
    """Clicks and impressions a day."""
    counted = [c for c in ("clicks", "impressions") if c in log.columns("demand")]
    sums = {c: pl.col(c).cast(pl.Float64).sum() / (days or math.nan) for c in counted}
    found = _row(log, "demand", log.scan("demand"), **sums)
    return {f"{column}_per_day": found[column] for column in counted}


def _counts(log: Log, table: str, column: str) -> dict[str, int]:
    """Rows of each label, the most frequent first; those without one are "unknown"."""
    labels = log.scan(table).select(pl.col(column).fill_null("unknown"))
    counts = labels.group_by(column).len().sort(["len", column], descending=[True, False])
    with reading(log.path(table)):
        return dict(counts.collect(engine="streaming").iter_rows())


def _row(log: Log, table: str, rows: pl.LazyFrame, **figures: pl.Expr) -> dict[str, Any]:
    """Figures over rows, by name."""
    with reading(log.path(table)):
        found = rows.select(**figures).collect(engine="streaming").row(0, named=True)
    return {name: _neat(figure) for name, figure in found.items()}


def _neat(figure: Any) -> Any:
    """A number with four digits that mean something; None instead of what is no number.

    >>> _neat(0.123456), _neat(1234567.8), _neat(7), _neat(float("nan"))
    (0.1235, 1235000.0, 7, None)
    """
    if not isinstance(figure, float):
        return figure
    return float(f"{figure:.4g}") if math.isfinite(figure) else None


def _needs(log: Log, table: str) -> str:
    return f"yes ({table}.parquet)" if log.has(table) else f"no, because {table}.parquet is missing"


def _finding(log: Log) -> str:
    """`simulate --rate`: there must be links, and not all of them there from the first moment."""
    if not log.has("links"):
        return _needs(log, "links")
    appeared = pl.col("appeared")
    links = log.scan("links").drop_nulls(["source_id", "page_id", "appeared"])
    found = _row(log, "links", links, links=pl.len(), moments=appeared.n_unique())
    if found["links"] == 0:
        return "no, because links.parquet has no link of which it is known when it appeared"
    if found["moments"] == 1:
        return "no, because all links of links.parquet appeared at once"
    if log.has("demand"):
        return "yes (links.parquet; what pages are worth by demand.parquet)"
    return "yes (links.parquet; all links count alike, because demand.parquet is missing)"


def _simulate(log: Log) -> str:
    """The truth is values, else texts, else what visits leave open."""
    resolution = log.about.rest.get("resolution")
    for table in ("values", "texts"):
        if log.has(table):
            told = f"ticks of {resolution} or more" if resolution else "log.json lacks `resolution`"
            return f"yes ({table}.parquet; {told})"
    if not log.has("visits"):
        return "no, because values.parquet, texts.parquet and visits.parquet are missing"
    if "changed" not in log.columns("visits"):
        return "no, because visits.parquet has no column `changed`, and values.parquet is missing"
    return "imputed, because it has visits.parquet but no values.parquet"


def _use_of_demand(log: Log) -> str:
    if not log.has("demand"):
        return "synthetic, because demand.parquet is missing"
    if log.about.demand_bucket is None:
        return "no, because log.json lacks `demand_bucket`"
    return "yes (demand.parquet)"


def _analyze(log: Log) -> str:
    """Changes, by the time of the week and by what is known of the pages."""
    table = next((t for t in ("values", "visits", "texts") if log.has(t)), None)
    if table is None:
        some = "demand only (demand.parquet)" if log.has("demand") else "no"
        return f"{some}, because values.parquet, visits.parquet and texts.parquet are missing"
    if table == "visits" and not log.columns("visits") & {"changed", "value"}:
        return "no, because visits.parquet has neither column `changed` nor `value`"
    if table == "texts" and not log.has("crawls"):
        return "no, because texts.parquet tells nothing without crawls.parquet"
    columns = log.columns("pages")
    if table == "texts" and "host" not in columns:
        return "no, because pages.parquet has no column `host`, by which crawls.parquet goes"
    hours = "local hour" if "timezone" in columns else "hour in UTC (pages.parquet: no `timezone`)"
    by = [hours, *(name for name in _GROUPS if name in columns)]
    return f"yes ({table}.parquet; by {', '.join(by)})"
