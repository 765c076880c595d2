"""The study as a page, and its chief figures as a few facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from salticus.charts.sheet import WIDTH, Sheet
from salticus.lab.analyze import charts
from salticus.lab.analyze.demand import DemandSummary
from salticus.lab.analyze.groups import ENOUGH, GroupShares
from salticus.lab.analyze.intervals import Intervals
from salticus.lab.analyze.rates import Rates
from salticus.lab.analyze.shares import ChangeShare, percent
from salticus.lab.analyze.study import Analysis
from salticus.lab.analyze.week import WeekShares

_BARS = 30
_SAID = ("name", "resolution", "demand_bucket")
_PLURALS = {
    "country": "countries",
    "category": "top-level categories",
    "merchant": "merchants",
    "stratum": "strata",
    "kind": "kinds",
}


def facts_of(study: Analysis) -> dict[str, Any]:
    """The chief figures, for a terminal and for the head of the page."""
    facts: dict[str, Any] = {"pages": study.pages}
    if study.overall is not None:
        facts |= {
            "pages seen": study.overall.pages,
            "changes come from": f"{study.source}.parquet",
            "a download is": study.download,
            "span (UTC)": _span(study),
            "downloads": study.overall.downloads,
            "changes": study.overall.changes,
            "probability of change": _interval(study.overall),
        }
    return facts | dict(_chief(study))


def _span(study: Analysis) -> str | None:
    return study.span and " to ".join(f"{t[:10]} {t[11:16]}" for t in study.span)


def _interval(share: ChangeShare) -> str:
    return f"{percent(share.probability)} ({percent(share.low)} to {percent(share.high)})"


def _chief(study: Analysis) -> Iterator[tuple[str, Any]]:
    if study.week and study.week.weekdays:
        yield "likeliest day", _most(study.week.weekdays)
        yield "likeliest hour (local)", _most(study.week.hours)
        if study.week.hours and study.week.unzoned:
            yield "pages without a time zone (UTC)", percent(study.week.unzoned)
    if study.intervals:
        yield "median interval", _hours(study.intervals.median_hours)
        yield "peaks at", ", ".join(charts.spoken(p.hours) for p in study.intervals.peaks) or None
    if study.rates:
        yield "changes a page and day", study.rates.mean and f"{study.rates.mean:.4g}"
        yield "pages that never change", percent(study.rates.never)
        yield "changes from the top 10 % of pages", percent(study.rates.top_10_percent)
        yield "changes undone within 2 days", percent(study.rates.undone)
    if study.demand.clicks is not None:
        yield "clicks", study.demand.clicks
        yield "clicks on the top 10 % of pages", percent(study.demand.top_10_percent)


def _most(shares: list[ChangeShare]) -> str | None:
    """The likeliest group; equal ones are settled by their order."""
    if not shares:
        return None
    best = max(shares, key=lambda s: s.probability or 0.0)
    return f"{best.name} ({percent(best.probability)})"


def _hours(hours: float | None) -> str | None:
    return None if hours is None else charts.spoken(hours)


# ------------------------------------------------------------------------------------- the page


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
    sheet.table(
        ("", ""), [(name, f"{v:,}" if isinstance(v, int) else v) for name, v in facts.items()]
    )
    sheet.remarks(study.notes).remarks(_provenance(study.log))
    if study.week is not None:
        _week(sheet, study.week)
    if study.intervals is not None:
        _intervals(sheet, study.intervals)
    for groups in (study.groups or {}).values():
        _groups(sheet, groups)
    if study.rates is not None:
        _rates(sheet, study.rates)
    _demand(sheet, study.demand)
    return sheet


def _provenance(log: dict[str, Any]) -> list[str]:
    """What `log.json` says in words."""
    texts = {k: v for k, v in log.items() if isinstance(v, str) and k not in _SAID}
    return [f"{key}: {text}" for key, text in texts.items()]


def _week(sheet: Sheet, week: WeekShares) -> None:
    sheet.heading("Days of the week and hours of the day")
    if week.weekdays:
        clock = "local time" if week.hours else "UTC date"
        sheet.chart(charts.week_bars(week.weekdays, f"day of the week ({clock})", 420))
    if week.hours:
        sheet.chart(charts.week_bars(week.hours, "hour of the day (local time)", WIDTH))
        sheet.chart(charts.week_map(week))
    sheet.remarks(week.notes)


def _intervals(sheet: Sheet, intervals: Intervals) -> None:
    sheet.heading("Time between two changes")
    if intervals.rows:
        found = ", ".join(f"{charts.spoken(p.hours)} ({percent(p.share)})" for p in intervals.peaks)
        sheet.words(
            f"Half of all changes come within {_hours(intervals.median_hours)} of the one before, "
            f"{percent(intervals.within_day)} within 24 h. Local peaks: {found or 'none'}."
        )
        sheet.chart(
            charts.interval_plot(intervals),
            "Blue: all intervals that occur. Orange: local peaks. Dashed: a day, two days, a week.",
        )
    sheet.remarks(intervals.notes)


def _groups(sheet: Sheet, groups: GroupShares) -> None:
    sheet.heading(f"By {groups.by}")
    if groups.groups == 1:
        only = groups.rows[0]
        sheet.words(f"There is one {groups.by} only: {only.name}, {_interval(only)}.")
    elif groups.rows:
        shown = groups.rows[:_BARS]
        most = f"the {_BARS} with most downloads of " if groups.groups > _BARS else ""
        caption = f"{most}{groups.groups:,} {_PLURALS[groups.by]}".capitalize()
        sheet.chart(charts.group_bars(shown, groups.by), caption)
    if groups.groups > _BARS:
        _extremes(sheet, groups)
    if groups.unknown is not None and groups.rows:
        sheet.words(f"Pages without a known {groups.by}: {_interval(groups.unknown)}.")
    sheet.remarks(groups.notes)


def _extremes(sheet: Sheet, groups: GroupShares) -> None:
    if not groups.highest:
        sheet.words(f"No {groups.by} has {ENOUGH:,} downloads, so none is named highest or lowest.")
        return
    header = (groups.by, "probability", "95 % from", "to", "changes", "downloads", "pages")
    for word, rows in (("Highest", groups.highest), ("Lowest", groups.lowest)):
        sheet.heading(f"{word}, of those with at least {ENOUGH:,} downloads", rank=3)
        sheet.table(header, map(_row, rows))


def _row(share: ChangeShare) -> tuple[Any, ...]:
    sure = (percent(share.probability), percent(share.low), percent(share.high))
    return share.name, *sure, share.changes, share.downloads, share.pages


def _rates(sheet: Sheet, rates: Rates) -> None:
    sheet.heading("Change rates")
    if rates.mean is not None:
        sheet.words(
            f"{rates.pages:,} pages were watched for {rates.page_days:,.0f} page-days. They change "
            f"{rates.mean:.4g} times a day on average; {percent(rates.never)} never change.",
        )
        if rates.top_1_percent is not None:
            sheet.words(
                f"The 1 % of pages that change most make {percent(rates.top_1_percent)} of all "
                f"changes, the top 10 % make {percent(rates.top_10_percent)}."
            )
        if rates.undone is not None:
            words = "of all changes bring back the value before the last one within two days"
            sheet.words(f"{percent(rates.undone)} {words} (flash sales).")
        names = [f"{100 * float(q):.0f} %" for q in rates.quantiles]
        sheet.table(("share of the pages", *names), [_quantiles(rates)])
    if rates.bins:
        never = f"Not drawn: the {percent(rates.never)} of pages that never change."
        sheet.chart(charts.rate_bars(rates), never if rates.never else "")
    sheet.remarks(rates.notes)


def _quantiles(rates: Rates) -> tuple[Any, ...]:
    return "changes a day, at most", *rates.quantiles.values()


def _demand(sheet: Sheet, demand: DemandSummary) -> None:
    sheet.heading("Demand")
    if demand.clicks:
        sheet.words(
            f"{demand.clicks:,} clicks. The 1 % of pages with most clicks hold "
            f"{percent(demand.top_1_percent)} of them, the top 10 % hold "
            f"{percent(demand.top_10_percent)}; the Gini coefficient is {demand.gini:.3f}."
        )
        sheet.chart(charts.lorenz_curve(demand))
    elif demand.clicks == 0:
        sheet.words("There are no clicks.")
    for name, share in (("click", demand.click_days), ("impression", demand.impression_days)):
        if share:
            sheet.words(
                f"{percent(share)} of page-days have at least one {name} (1 in {1 / share:.3g})."
            )
    if demand.deciles:
        sheet.chart(charts.decile_bars(demand))
        if demand.rank_correlation is not None:
            words = "Rank correlation (Spearman) of clicks a day and changes a day"
            sheet.words(f"{words}: {demand.rank_correlation:.3f}.")
    sheet.remarks(demand.notes)
