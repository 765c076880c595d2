"""The whole study of a log: what it could do and, for each section, what it could not and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from salticus.charts.sheet import Sheet
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.write import iso, spelt
from salticus.lab.analyze.demand import DemandSummary, demand_of, draw_demand
from salticus.lab.analyze.groups import GroupShares, draw_groups, groups_of
from salticus.lab.analyze.interest import InterestSummary, draw_interest, interest_of
from salticus.lab.analyze.intervals import Intervals, draw_intervals, intervals_of, spoken
from salticus.lab.analyze.links import MOST, LinkSummary, draw_links, links_of
from salticus.lab.analyze.pages import AnalyzedPages, known_pages
from salticus.lab.analyze.rates import Rates, draw_rates, rates_of
from salticus.lab.analyze.record import Downloads
from salticus.lab.analyze.shares import ChangeShare, percent, shares_of
from salticus.lab.analyze.sources import record_of
from salticus.lab.analyze.week import WeekShares, draw_week, week_of
from salticus.types import moment

Tell = Callable[[str], None]
_SAID = ("name", "resolution", "demand_bucket")


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Everything that `salticus analyze` says, as plain numbers.

    `source` is the table that told what changed (`values`, `visits` or `texts`), `download` what
    counts as one. Without a source the sections on change are None, and `notes` say why. `links` is
    None without links.parquet, `interest` also without clicks on the pages that they lead to.
    """

    log: dict[str, Any]
    pages: int
    source: str | None = None
    download: str | None = None
    step: str | None = None
    span: tuple[str, str] | None = None
    overall: ChangeShare | None = None
    week: WeekShares | None = None
    intervals: Intervals | None = None
    groups: dict[str, GroupShares] | None = None
    rates: Rates | None = None
    demand: DemandSummary
    links: LinkSummary | None = None
    interest: InterestSummary | None = None
    notes: list[str]


def study(log: Log, tell: Tell = lambda doing: None) -> Analysis:
    """Study a log; `tell` hears what is being done."""
    try:
        return _study(log, tell)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{log.folder}: {error}; see `salticus log check`") from error


def _study(log: Log, tell: Tell) -> Analysis:
    tell("reading pages")
    known = known_pages(log)
    tell("following changes")
    record, reason = record_of(log, known)
    tell("counting")
    notes = (record.notes if record else []) + reason
    if record is not None and record.pages.is_empty():
        notes.append(f"{record.source}.parquet shows no page of pages.parquet")
        record = None
    sections = {} if record is None else _sections(record, known)
    tell("weighing demand")
    return Analysis(
        log={**log.about.rest, "name": log.about.name},
        pages=len(known),
        **sections,
        demand=demand_of(log, known, record),
        links=links_of(log, known),
        interest=interest_of(log, known),
        notes=notes,
    )


def _sections(record: Downloads, known: AnalyzedPages) -> dict[str, Any]:
    ends = record.pages["first"].to_numpy().min(), record.pages["last"].to_numpy().max()
    sums = pl.col("downloads", "changes").sum()
    overall = record.pages.select(sums, name=pl.lit("all"), pages=pl.len())
    return {
        "source": record.source,
        "download": record.means,
        "step": spelt(record.step),
        "span": tuple(iso(moment(np.datetime64(int(t), "us"))) for t in ends),
        "overall": shares_of(overall)[0],
        "week": week_of(record, known),
        "intervals": intervals_of(record),
        "groups": groups_of(record, known),
        "rates": rates_of(record),
    }


# ----------------------------------------------------------------------------------------- the page


def facts_of(study: Analysis) -> dict[str, Any]:
    """The chief figures, for a terminal and for the head of the page."""
    facts: dict[str, Any] = {"pages": study.pages}
    if study.overall is not None:
        facts |= {
            "pages seen": study.overall.pages,
            "changes come from": f"{study.source}.parquet",
            "a download is": study.download,
            "span (UTC)": study.span and " to ".join(f"{t[:10]} {t[11:16]}" for t in study.span),
            "downloads": study.overall.downloads,
            "changes": study.overall.changes,
            "probability of change": study.overall.told(),
        }
    return facts | dict(_chief(study))


def _chief(study: Analysis) -> Iterator[tuple[str, Any]]:
    if study.week and study.week.weekdays:
        yield "likeliest day", _most(study.week.weekdays)
        yield "likeliest hour (local)", _most(study.week.hours)
        if study.week.hours and study.week.unzoned:
            yield "pages without a time zone (UTC)", percent(study.week.unzoned)
    if study.intervals:
        median = study.intervals.median_hours
        yield "median interval", None if median is None else spoken(median)
        yield "peaks at", ", ".join(spoken(p.hours) for p in study.intervals.peaks) or None
    if study.rates:
        yield "changes a page and day", study.rates.mean and f"{study.rates.mean:.4g}"
        yield "pages that never change", percent(study.rates.never)
        yield "changes from the top 10 % of pages", percent(study.rates.top_10_percent)
        yield "changes undone within 2 days", percent(study.rates.undone)
    if study.demand.clicks is not None:
        yield "clicks", study.demand.clicks
        yield "clicks on the top 10 % of pages", percent(study.demand.top_10_percent)
    if links := study.links:
        yield "new links a day", f"{links.links_a_day:,.0f} on {links.sources:,} sources"
        yield "new pages a day", f"{links.pages_a_day:,.0f}"
        yield f"sources that show {percent(MOST)} of them", links.enough
    if study.interest:
        yield "clicks on a new page", f"{study.interest.profit:.3g}"
        yield "half of them within", f"{study.interest.half_life_hours:.3g} h"
        yield "ephemeral pages", percent(study.interest.ephemeral)


def _most(shares: list[ChangeShare]) -> str | None:
    """The likeliest group; equal ones are settled by their order."""
    if not shares:
        return None
    best = max(shares, key=lambda s: s.probability or 0.0)
    return f"{best.name} ({percent(best.probability)})"


def sheet_of(study: Analysis) -> Sheet:
    """The whole study, section by section."""
    sheet = Sheet(f"How the pages of “{study.log['name']}” change")
    sheet.words(
        "The price-change study of Han et al. (2019), section 3, for this log. The probability of "
        "change is the number of downloads that showed a change over the number of downloads; the "
        "first look at a page never counts as a change. Whiskers are 95 % intervals (Wilson); they "
        "take downloads as independent, so pages that change together make them too narrow."
    )
    facts = {name: fact for name, fact in facts_of(study).items() if fact is not None}
    rows = [(name, f"{v:,}" if isinstance(v, int) else v) for name, v in facts.items()]
    sheet.table(("", ""), rows)
    said = (f"{k}: {v}" for k, v in study.log.items() if isinstance(v, str) and k not in _SAID)
    sheet.remarks(study.notes).remarks(said)
    if study.week is not None:
        draw_week(sheet, study.week)
    if study.intervals is not None:
        draw_intervals(sheet, study.intervals)
    for groups in (study.groups or {}).values():
        draw_groups(sheet, groups)
    if study.rates is not None:
        draw_rates(sheet, study.rates)
    draw_demand(sheet, study.demand)
    if study.links is not None:
        draw_links(sheet, study.links)
    if study.interest is not None:
        draw_interest(sheet, study.interest)
    return sheet
