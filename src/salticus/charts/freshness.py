"""How fresh the copy is, or would have been: estimates, simulations and studies as pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from salticus.charts import kit
from salticus.charts.arms import arms_chart
from salticus.charts.sheet import Sheet, Table, draw, each, table_of
from salticus.charts.spending import spending_charts

Row = dict[str, Any]

_ESTIMATES = (
    "Freshness by pages and by clicks, each dot over the time up to it. The bars are intervals "
    "that hold in 95 % of the cases."
)


def write_chart(estimates: Sequence[Row], path: Path) -> None:
    """Draw what `freshness_over_time` tells to an HTML, SVG or PNG file, by its suffix."""
    values = [
        {"at": told["to"], "by": name, **told[name]}
        for told in estimates
        for name in ("pages", "clicks")
        if told[name]["half_width"] is not None
    ]
    until = kit.by("at:T", title="until (UTC)", scale={"type": "utc"})
    base = kit.plot(values, x=until, color=kit.colours("by", ["pages", "clicks"]))
    share = kit.by("freshness:Q", title="freshness", scale=kit.FREE)
    bars = base.mark_rule(opacity=0.6).encode(y=kit.by("low:Q", title="freshness"), y2="high:Q")
    dots = base.mark_line(point=True).encode(y=share, tooltip=["at:T", "by:N", "freshness:Q"])
    chart = (bars + dots).properties(width=kit.WIDTH, height=260)
    draw(chart, path, Sheet("Freshness"), _ESTIMATES)


def _replayed(title: str, report: Row, rest: str) -> Sheet:
    """A page about a log that was replayed, with how."""
    log, rules = report["log"], report["rules"]
    sheet = Sheet(title.format(log["name"])).words(
        f"{log['pages']:,} pages, replayed from {rules['start'][:10]}: history {rules['history']}, "
        f"warm-up {rules['warmup']}, then {rules['days']} days scored; "
        f"{rest.format(**rules)}, runs: {rules['runs']}."
    )
    return sheet.remarks(report["notes"])


_FRESH = {"scale": kit.FREE, "axis": kit.PERCENT}


def _savings(sheet: Sheet, report: Row, title: str, header: tuple[str, ...]) -> None:
    known = [row for row in report["savings"] if row["saving"] is not None]
    if known:
        rows = [tuple(row.values()) for row in known]
        sheet.heading(title, rank=3).table((*header, "saved", "95 % from", "to"), rows)


# ------------------------------------------------------------------------------------- simulations

_MEASURES = {
    "click_freshness": ("clicks that find a fresh copy", "each day's clicks"),
    "page_freshness": ("fresh pages", "the pages at each midnight"),
}
_INCREASES = {
    "policy": "policy", "against": "against", "budget": "budget",
    "median increase of clicks fresh": "median_increase", "Wilcoxon p": "p_value",
}  # fmt: skip
_ARMS = (
    "Probability with which each arm is drawn (or: the share of the visits due to it), mean over "
    "the runs; a step is a tick of the crawl, warm-up included."
)
_FIGURES = (
    "Budget: visits per page and day that could be spent; medians over runs and days.",
    "Age: days for which a copy has been stale, mean over all pages.",
    "Caught: changes that a visit found; missed: changes that were over before any visit.",
)


def write_contest(report: Row, path: Path) -> None:
    """Write the page of `Contest.report()`: who was how fresh, on which budget, day by day."""
    how = "ticks of {tick}, {spacing} spacing, demand {demand}"
    sheet, rows = _replayed("Crawling {} on a budget", report, how), report["rows"]
    for measure, (words, points) in _MEASURES.items():
        sheet.heading(f"Share of {words}")
        which = f"Median over runs and days of {points}"
        sheet.chart(_by_budget(rows, measure), f"{which}; bars hold the central 95 % of them.")
        sheet.chart(_by_day(rows, measure), "Day by day, median over the runs.")
    if report["spending"]:
        spending_charts(sheet, report["spending"], _policies(report["spending"]))
    if any("arms" in row for row in rows):
        sheet.heading("Arms of the bandits").chart(arms_chart(rows), _ARMS)
    sheet.heading("All figures").table(*contest_table(report)).remarks(_FIGURES)
    if report["increases"]:
        sheet.heading("Against the first policy", rank=3)
        sheet.table(*table_of(report["increases"], _INCREASES))
    header = ("policy", "against", "at its budget", "clicks fresh")
    _savings(sheet, report, "Visits saved at equal freshness", header)
    sheet.write(path)


def _by_budget(rows: list[Row], measure: str) -> Any:
    spread = ("median", "low", "high")
    points = [
        {"policy": row["policy"], "budget": float(row["visits_per_page_day"])}
        | {name: row[measure][name] for name in spread}
        for row in rows
        if row[measure]["median"] is not None
    ]
    made = kit.by("budget:Q", title="visits made per page and day", scale=kit.LOG)
    base = kit.plot(points, x=made, color=_policies(rows))
    share = kit.by("median:Q", title=f"share of {_MEASURES[measure][0]}", **_FRESH)
    tips = ["policy:N", *(kit.tip(k, ".4f") for k in ("budget", *spread))]
    line = base.mark_line(point={"size": 50}).encode(y=share, tooltip=tips)
    bars = base.mark_rule(opacity=0.45).encode(y=kit.by("low:Q", **_FRESH), y2="high:Q")
    return (bars + line).properties(width=kit.WIDTH, height=340)


def _by_day(rows: list[Row], measure: str) -> Any:
    points = [
        {"policy": row["policy"], "budget": f"budget {row['budget']}", "day": day, "share": share}
        for row in rows
        for day, share in zip(row["daily"]["day"], row["daily"][measure], strict=True)
        if share is not None
    ]
    chart = kit.lines(
        points,
        x=kit.by("day:T", title="day (UTC)", axis={"format": "%d %b", "tickCount": 10}),
        y=kit.by("share:Q", title="share fresh", **_FRESH),
        color=_policies(rows),
        tooltip=["policy:N", "day:T", kit.tip("share", ".4f")],
    ).properties(width=kit.WIDTH, height=150)
    order = [f"budget {budget}" for budget in each(rows, "budget")]
    return kit.stacked(chart, "budget", order)


def _policies(rows: list[Row]) -> Any:
    legend = {"orient": "top", "columns": 4, "labelLimit": 200}
    return kit.colours("policy", each(rows, "policy"), title="policy", legend=legend)


def contest_table(report: Row) -> Table:
    """Header and rows of the league table: one line a policy and budget.

    With InstaCrawl also the share of clicks, one by one, that found a copy out of date, and the
    visits that they brought.
    """
    columns: dict[str, Any] = {
        "policy": "policy",
        "budget": "budget",
        "visits/page/day": "visits_per_page_day",
        "clicks fresh": lambda row: row["click_freshness"]["median"],
        "pages fresh": lambda row: row["page_freshness"]["median"],
        "age (days)": "staleness_age_days",
        "caught": lambda row: round(row["changes_caught"]),
        "missed": lambda row: round(row["changes_missed"]),
    }
    if "stale_clicks" in report["rows"][0]:
        columns["clicks stale"] = "stale_clicks"
        columns["urgent visits"] = lambda row: round(row["visits_by_purpose"].get("insta", 0.0))
    return table_of(report["rows"], columns)


# ---------------------------------------------------------------------------- InstaCrawl requests

_FOUND = "requests that find a fresh copy"


def requests_table(report: Row) -> Table:
    """Header and rows of a replay of requests: one line a gate and share.

    The last column is the share of the requests that the gate saves at the freshness of the
    uniform one's line of that share.
    """
    every = [row for row in report["savings"] if row["group"] == "all"]
    saved = {(row["gate"], row["at_budget"]): row["saving"] for row in every}
    columns: dict[str, Any] = {
        "gate": "gate",
        "share to send": "budget",
        "sent / requests": "resource",
        "requests": "requests",
        "requests that found fresh": lambda row: row["freshness"]["mean"],
        "visits that found a change": lambda row: round(row["found"]),
        "saved at equal freshness": lambda row: saved.get((row["gate"], row["budget"])),
    }
    return table_of(report["rows"], columns)


def write_requests(report: Row, path: Path) -> None:
    """Write the page of `replay_requests` to `path`: freshness against the share, and in time."""
    rows = report["rows"]
    sheet = _replayed("InstaCrawl requests of {}", report, "predictor {predictor}")
    sheet.heading("Freshness against the share sent")
    sheet.chart(_by_share(rows), "Mean of windows of 6 hours, after the warm-up.")
    sheet.heading("Freshness in time")
    sheet.chart(_in_time(rows), "Windows of 6 hours, median over the runs; a line a share.")
    sheet.heading("All figures").table(*requests_table(report))
    header = ("gate", "against", "at its share", "offers", "freshness")
    _savings(sheet, report, "Requests saved at equal freshness", header)
    sheet.write(path)


def _by_share(rows: list[Row]) -> Any:
    points = [
        {"gate": row["gate"], "share": row["resource"], "fresh": row["freshness"]["mean"]}
        for row in rows
        if row["freshness"]["mean"] is not None
    ]
    return kit.lines(
        points,
        dots=50,
        x=kit.by("share:Q", title="requests sent", axis=kit.PERCENT),
        y=kit.by("fresh:Q", title=_FOUND, **_FRESH),
        color=kit.colours("gate", each(rows, "gate"), title="gate", legend={"orient": "top"}),
        tooltip=["gate:N", *(kit.tip(k, ".4f") for k in ("share", "fresh"))],
    ).properties(width=kit.WIDTH, height=340)


def _in_time(rows: list[Row]) -> Any:
    points = [
        {"gate": row["gate"], "share": row["budget"], "day": k / 4, "fresh": fresh}
        for row in rows
        for k, fresh in enumerate(row["windows"])
        if fresh is not None
    ]
    chart = kit.lines(
        points,
        x=kit.by("day:Q", title="days since all copies were fresh"),
        y=kit.by("fresh:Q", title=_FOUND, **_FRESH),
        color=kit.by("share:O", title="share sent", scale={"scheme": "viridis"}),
        tooltip=["gate:N", "share:O", "day:Q", kit.tip("fresh", ".4f")],
    ).properties(width=kit.WIDTH, height=240)
    return kit.stacked(chart, "gate", each(rows, "gate"))


# ------------------------------------------------------------------------------ the study of traces

_COLOURS = {
    "leap": "#D55E00",
    "lambdacrawl": "#0072B2",
    "lambdacrawl@coin": "#56B4E9",
    "kab5": "#CC79A7",
    "stormcrawler": "#8C510A",
    "uniform": "#009E73",
    "clairvoyant": "#000000",
}
_OTHERS = "others"
_TRACES = {
    "budget": "budget", "policy": "policy", "staleness": "staleness",
    "clicks fresh": "click_freshness", "pages fresh": "page_freshness",
    "visits/page/day": "visits_per_page_day", "interval (days)": "interval_days",
    "pages visited": "pages_visited",
}  # fmt: skip
_COMPARED = (
    "Staleness: share of the clicks that find a stale copy; ratio: ours to theirs, of the medians.",
    "Paired ratio: the median of the ratios of the single runs; worst run: the highest of them.",
    "Gap closed: of the way from theirs to the staleness of the clairvoyant, how much ours goes.",
)
_STALENESS = (
    "Clicks that find a stale copy, against the visits really spent; both axes are logarithmic. "
    "Lower is better. Policies without a colour of their own are grey; point at them to see which. "
    "One without a stale click is not drawn."
)


def traces_table(rows: Sequence[Row]) -> Table:
    """Header and rows of all policies and budgets on one trace, the freshest first."""
    return table_of(sorted(rows, key=lambda row: (row["budget"], row["staleness"])), _TRACES)


def comparison_table(rows: Sequence[Row]) -> Table:
    """Header and rows of our policy against its rivals."""
    header = (
        "trace", "budget", "policy", "against", "staleness", "theirs", "ratio",
        "paired ratio", "worst run", "gap closed",
    )  # fmt: skip
    return header, [tuple(row.values()) for row in rows]


def write_traces(report: Row, path: Path) -> None:
    """Write the page of `studies.traces.study()` to `path`."""
    rules = report["protocol"]
    sheet = Sheet("Policies on real traces").words(
        f"Ticks of {rules['tick']}; {rules['history']} of fully observed history, "
        f"{rules['warmup']} warm-up, {rules['days']} days measured; demand {rules['demand']}, "
        "drawn anew in each of "
        f"{rules['runs']} runs; estimates ({rules['predictor']}) from the history and from the "
        "policy's own visits. Figures are medians over the runs of means over the days."
    )
    if report["comparisons"]:
        sheet.heading("Against LambdaCrawl").table(*comparison_table(report["comparisons"]))
        sheet.remarks(_COMPARED)
    for trace in report["traces"]:
        rows = [row for row in report["rows"] if row["trace"] == trace["name"]]
        sheet.heading(f"{trace['name']}: {trace['pages']:,} pages from {trace['start']}")
        sheet.chart(_staleness(rows), _STALENESS).table(*traces_table(rows))
    sheet.write(path)


def _staleness(rows: Sequence[Row]) -> Any:
    """Staleness against visits spent, a line a policy."""
    points = [
        {**row, "shown": row["policy"] if row["policy"] in _COLOURS else _OTHERS}
        for row in rows
        if row["staleness"] and row["visits_per_page_day"]
    ]
    known = [name for name in (*_COLOURS, _OTHERS) if name in {p["shown"] for p in points}]
    shades = [_COLOURS.get(name, "#c4c4c4") for name in known]
    scale = {"type": "log", "nice": False, "padding": 12}
    legend = {"orient": "right", "symbolOpacity": 1}
    spent, stale = "visits made per page and day", "share of clicks that find a stale copy"
    axes = kit.log_axis((-4, 2), (1, 2, 5)), kit.log_axis((-6, 1), (1, 2, 5), "~%")
    base = kit.plot(
        points,
        x=kit.by("visits_per_page_day:Q", title=f"{spent} (log scale)", scale=scale, axis=axes[0]),
        y=kit.by("staleness:Q", title=f"{stale} (log scale)", scale=scale, axis=axes[1]),
        detail="policy:N",
        color=kit.colours("shown", known, shades, title="policy", legend=legend),
        tooltip=[
            "policy:N",
            kit.tip("visits_per_page_day", ".4~g", "visits per page and day"),
            kit.tip("staleness", ".4~%"),
        ],
    )
    grey = base.transform_filter(f"datum.shown == '{_OTHERS}'").mark_line(point=True, opacity=0.6)
    named = base.transform_filter(f"datum.shown != '{_OTHERS}'")
    lines = grey + named.mark_line(point={"size": 45})
    return lines.properties(width=kit.WIDTH - 120, height=420)
