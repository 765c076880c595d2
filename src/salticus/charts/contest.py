"""The result of a simulation as a page: who was how fresh, on which budget, day by day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from salticus.charts.kit import Table, colours, data, each, percent, tip
from salticus.charts.sheet import WIDTH, Sheet
from salticus.charts.spending import spending_charts

_INCREASE = ("policy", "against", "budget", "median_increase", "p_value")
_MEASURES = {"click_freshness": "clicks that find a fresh copy", "page_freshness": "fresh pages"}


def write_contest(report: dict[str, Any], path: Path) -> None:
    """Write the page of `Contest.report()` to `path`."""
    import altair as alt

    log, rules, rows = report["log"], report["rules"], report["rows"]
    sheet = Sheet(f"Crawling {log['name']} on a budget")
    sheet.words(
        f"{log['pages']:,} pages, replayed from {rules['start'][:10]}: history {rules['history']}, "
        f"warm-up {rules['warmup']}, then {rules['days']} days scored; ticks of {rules['tick']}, "
        f"{rules['spacing']} spacing, demand {rules['demand']}, runs: {rules['runs']}."
    )
    sheet.remarks(report["notes"])
    for measure, words in _MEASURES.items():
        sheet.heading(f"Share of {words}")
        sheet.chart(_by_budget(alt, rows, measure), _caption(measure))
        sheet.chart(_by_day(alt, rows, measure), "Day by day, median over the runs.")
    if report["spending"]:
        spending_charts(sheet, report["spending"], _colour(alt, report["spending"]))
    _tables(sheet, report)
    sheet.write(path)


def _caption(measure: str) -> str:
    point = "each day's clicks" if measure == "click_freshness" else "the pages at each midnight"
    return f"Median over runs and days of {point}; bars hold the central 95 % of them."


def _by_budget(alt: Any, rows: list[dict[str, Any]], measure: str) -> Any:
    points = [
        {
            "policy": row["policy"],
            "budget": float(row["visits_per_page_day"]),
            **{k: row[measure][k] for k in ("median", "low", "high")},
        }
        for row in rows
        if row[measure]["median"] is not None
    ]
    base = alt.Chart(data(points)).encode(
        x=alt.X("budget:Q", title="visits made per page and day", scale=alt.Scale(type="log")),
        color=_colour(alt, rows),
    )
    share = {"scale": alt.Scale(zero=False), "axis": percent()}
    line = base.mark_line(point={"size": 50}).encode(
        y=alt.Y("median:Q", title=f"share of {_MEASURES[measure]}", **share),
        tooltip=["policy:N", tip("budget", ".4f"),
                 *(tip(k, ".4f") for k in ("median", "low", "high"))],
    )  # fmt: skip
    bars = base.mark_rule(opacity=0.45).encode(y=alt.Y("low:Q", **share), y2="high:Q")
    return (bars + line).properties(width=WIDTH, height=340)


def _by_day(alt: Any, rows: list[dict[str, Any]], measure: str) -> Any:
    points = [
        {"policy": row["policy"], "budget": f"budget {row['budget']}", "day": day, "share": share}
        for row in rows
        for day, share in zip(row["daily"]["day"], row["daily"][measure], strict=True)
        if share is not None
    ]
    axis = alt.Axis(format="%d %b", tickCount=10)
    chart = (
        alt.Chart(data(points))
        .mark_line()
        .encode(
            x=alt.X("day:T", title="day (UTC)", axis=axis),
            y=alt.Y(
                "share:Q",
                title="share fresh",
                scale=alt.Scale(zero=False),
                axis=percent(),
            ),
            color=_colour(alt, rows),
            tooltip=["policy:N", "day:T", tip("share", ".4f")],
        )
        .properties(width=WIDTH, height=150)
    )
    return chart.facet(row=alt.Row("budget:N", title=None, sort=_budgets(rows)))


def _budgets(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(f"budget {row['budget']}" for row in rows))


def _colour(alt: Any, rows: list[dict[str, Any]]) -> Any:
    legend = alt.Legend(orient="top", columns=4, labelLimit=200)
    return colours("policy", each(rows, "policy"), title="policy", legend=legend)


def table_of(report: dict[str, Any]) -> Table:
    """Header and rows of the league table: one line a policy and budget."""
    header = (
        "policy", "budget", "visits/page/day", "clicks fresh", "pages fresh", "age (days)",
        "caught", "missed",
    )  # fmt: skip
    clicked = "stale_clicks" in report["rows"][0]
    rows = [
        (
            row["policy"],
            row["budget"],
            row["visits_per_page_day"],
            row["click_freshness"]["median"],
            row["page_freshness"]["median"],
            row["staleness_age_days"],
            round(row["changes_caught"]),
            round(row["changes_missed"]),
            *(_clicked(row) if clicked else ()),
        )
        for row in report["rows"]
    ]
    return (*header, *(("clicks stale", "urgent visits") if clicked else ())), rows


def _clicked(row: dict[str, Any]) -> tuple[float | None, int]:
    """Clicks one by one that found a copy out of date, and the visits that they brought."""
    return row["stale_clicks"], round(row["visits_by_purpose"].get("insta", 0.0))


def _tables(sheet: Sheet, report: dict[str, Any]) -> None:
    sheet.heading("All figures").table(*table_of(report))
    sheet.remarks(
        [
            "Budget: visits per page and day that could be spent; medians over runs and days.",
            "Age: days for which a copy has been stale, mean over all pages.",
            "Caught: changes that a visit found; missed: changes that were over before any visit.",
        ]
    )
    if report["increases"]:
        sheet.heading("Against the first policy", rank=3).table(
            ("policy", "against", "budget", "median increase of clicks fresh", "Wilcoxon p"),
            [tuple(row[name] for name in _INCREASE) for row in report["increases"]],
        )
    known = [row for row in report["savings"] if row["saving"] is not None]
    if known:
        sheet.heading("Visits saved at equal freshness", rank=3).table(
            ("policy", "against", "at its budget", "clicks fresh", "saved", "95 % from", "to"),
            [tuple(row.values()) for row in known],
        )
