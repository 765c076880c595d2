"""Links to new pages on sources: how many, for how long, and how few sources show most of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from salticus.allocate.cover import cover, distinct_pairs
from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.exchange.folder import Log
from salticus.lab.analyze.pages import AnalyzedPages, key
from salticus.lab.analyze.shares import percent
from salticus.lab.analyze.week import HOURS
from salticus.types import Ints
from salticus.types.dates import DAY_US, HOUR_US

MOST = 0.8  # of the pages, as in Lefortier et al. 2013, §3.1
_BUSIEST = 20


@dataclass(frozen=True, slots=True)
class Covered:
    """The share of all pages that so many sources show, the best of them first."""

    sources: int
    share: float


@dataclass(frozen=True, slots=True)
class BusySource:
    """A source: its links, how many a day, and the share of them that no other source shows."""

    source: str
    links: int
    a_day: float
    alone: float


@dataclass(frozen=True, slots=True)
class LinkSummary:
    """Links of sources, and the pages that they lead to.

    Half of the links stand for `median_hours` or more; the share `brief` was seen once only.
    `hours` are links by the hour of the source's day. The first `enough` sources of the greedy
    `cover` show 80 % of the pages: the share `main` of them are the main pages of their hosts, and
    `sections` pages whose path consists of names, without a number or a query.
    """

    sources: int
    links: int
    pages: int
    links_a_day: float
    pages_a_day: float
    median_hours: float | None
    brief: float | None
    hours: list[int]
    cover: list[Covered]
    enough: int
    main: float | None
    sections: float | None
    busiest: list[BusySource]
    notes: list[str]


def links_of(log: Log, known: AnalyzedPages) -> LinkSummary | None:
    """What the log tells of links; None if it has none."""
    if not log.has("links"):
        return None
    links, notes = read_links(log, known)
    if links.is_empty():
        return None
    source, page = links["source"].to_numpy(), links["page"].to_numpy()
    at = links["appeared"].to_numpy()  # in order
    days = max(float(at[-1] - at[0]) / DAY_US, 1 / 24)
    best, gains = cover(source, page)
    pages = int(gains.sum())
    share = np.cumsum(gains) / pages
    enough = int(np.searchsorted(share, MOST - 1e-12)) + 1
    named = names_of(log, known)
    main, sections = _kinds([named[row] for row in best[:enough].tolist()], notes)
    stood = links["stood"].drop_nulls().to_numpy()
    return LinkSummary(
        sources=len(best),
        links=len(links),
        pages=pages,
        links_a_day=len(links) / days,
        pages_a_day=pages / days,
        median_hours=float(np.median(stood)) / HOUR_US if len(stood) else None,
        brief=float((stood <= 0).mean()) if len(stood) else None,
        hours=np.bincount(links["hour"].to_numpy(), minlength=24).tolist(),
        cover=[Covered(n, float(part)) for n, part in enumerate(share, 1)],
        enough=enough,
        main=main,
        sections=sections,
        busiest=_busiest(source, page, named, days),
        notes=notes,
    )


def read_links(log: Log, known: AnalyzedPages) -> tuple[pl.DataFrame, list[str]]:
    """Links between known pages: rows of both, when each appeared (µs) and in which hour of its
    source's day, for how long it stood (µs) if that is told; and what had to be left out."""
    page = key(log, "links")
    kind = known.frame.schema["page_id"]
    stood = pl.lit(None, dtype=pl.Int64)
    if "vanished" in log.columns("links"):
        stood = pl.col("vanished").cast(pl.Int64) - pl.col("appeared").cast(pl.Int64)
    found = (
        log.scan("links")
        .select(
            page, pl.col("source_id").cast(kind), pl.col("appeared").cast(pl.Int64), stood=stood
        )
        .join(_rows(known, "source_id", "source", "zone"), on="source_id", how="left")
        .join(_rows(known, "page_id", "page"), on="page_id", how="left")
        .select("source", "page", "zone", "appeared", "stood")
        .collect()
    )
    whole = found.drop_nulls(["source", "page", "appeared"]).sort("appeared", "source", "page")
    lost = len(found) - len(whole)
    note = f"{lost:,} rows of links.parquet are of no page in pages.parquet or without a time"
    return _local(whole), [note] * bool(lost)


def _rows(known: AnalyzedPages, id_: str, row: str, *more: str) -> pl.LazyFrame:
    return known.frame.lazy().select(pl.col("page_id").alias(id_), pl.col("row").alias(row), *more)


def _local(links: pl.DataFrame) -> pl.DataFrame:
    """The same with the hour of the day at each source."""
    utc = pl.col("appeared").cast(pl.Datetime("us", "UTC")).dt
    hour = pl.lit(0, dtype=pl.Int8)
    for zone in links["zone"].unique():
        here = utc.convert_time_zone(zone).dt.hour()
        hour = pl.when(pl.col("zone") == zone).then(here).otherwise(hour)
    return links.with_columns(hour=hour.cast(pl.Int64))


def names_of(log: Log, known: AnalyzedPages) -> list[str]:
    """The URL of each page, or its id where none is known."""
    name = pl.col("page_id").cast(pl.String)
    if "url" in log.columns("pages"):
        name = pl.coalesce(pl.col("url").cast(pl.String), name)
    names = log.scan("pages").select(key(log, "pages"), name=name)
    return known.frame.lazy().join(names, on="page_id").sort("row").collect()["name"].to_list()


def _kinds(urls: Sequence[str], notes: list[str]) -> tuple[float | None, float | None]:
    """The shares of main pages and of sections; None if these are no URLs."""
    split = [urlsplit(url) for url in urls]
    if not all(parts.netloc for parts in split):
        notes.append("pages.parquet has no `url` of every source: their kinds are not known")
        return None, None
    main = [parts.path in ("", "/") and not parts.query for parts in split]
    plain = [not parts.query and not any(c.isdigit() for c in parts.path) for parts in split]
    sections = [names and not top for names, top in zip(plain, main, strict=True)]
    return sum(main) / len(urls), sum(sections) / len(urls)


def _busiest(source: Ints, page: Ints, named: Sequence[str], days: float) -> list[BusySource]:
    of_pair, pages = distinct_pairs(source, page)
    only = np.bincount(pages)[pages] == 1
    rows, links = np.unique(source, return_counts=True)
    shown = np.bincount(of_pair)
    alone = np.bincount(of_pair, weights=only) / np.maximum(shown, 1)
    most = np.lexsort((rows, -links))[:_BUSIEST]
    return [
        BusySource(named[rows[k]], int(links[k]), float(links[k] / days), float(alone[rows[k]]))
        for k in most.tolist()
    ]


# ----------------------------------------------------------------------------------------- the page


def draw_links(sheet: Sheet, links: LinkSummary) -> None:
    """The section on links to new pages."""
    sheet.heading("Links to new pages")
    stand = links.median_hours
    sheet.words(
        f"{links.links:,} links on {links.sources:,} sources lead to {links.pages:,} pages: "
        f"{links.links_a_day:,.0f} links and {links.pages_a_day:,.0f} pages a day."
        + ("" if stand is None else f" Half of the links stand for {stand:.3g} h or more,")
        + ("" if links.brief is None else f" {percent(links.brief)} were seen once only.")
    )
    of_them = ""
    if links.main is not None:
        of_them = f"; {percent(links.main)} are main pages, {percent(links.sections)} sections"
    sheet.words(f"{links.enough:,} sources show {percent(MOST)} of the pages{of_them}.")
    sheet.chart(_cover_curve(links))
    sheet.chart(_hour_bars(links))
    rows = [(s.source, f"{s.links:,}", f"{s.a_day:,.3g}", percent(s.alone)) for s in links.busiest]
    sheet.table(("source", "links", "a day", "on no other source"), rows)
    sheet.remarks(links.notes)


def _cover_curve(links: LinkSummary) -> Any:
    x = kit.by("sources:Q", title="sources, each time the one that adds most")
    y = kit.by("share:Q", title="share of the new pages", axis={"format": "~%"})
    tips = [kit.tip("sources", ","), kit.tip("share", ".1~%", "of the pages")]
    chart = kit.lines([asdict(point) for point in links.cover], x=x, y=y, tooltip=tips)
    return chart.properties(width=560, height=240)


def _hour_bars(links: LinkSummary) -> Any:
    rows = [{"hour": name, "links": n} for name, n in zip(HOURS, links.hours, strict=True)]
    x = kit.by("hour:O", title="hour of the day (local time)", axis={"labelAngle": 0})
    chart = kit.plot(rows, x=x, y=kit.by("links:Q"), tooltip=[kit.tip("links", ",")])
    return chart.mark_bar(color=kit.BLUE).properties(width=kit.WIDTH, height=200)
