"""The study of traces as tables, and as a page with charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from salticus.charts.kit import Table, colours, data, log_axis, tip
from salticus.charts.sheet import WIDTH, Sheet

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


def figures_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Header and rows of all policies and budgets on one trace, the freshest first."""
    header = (
        "budget", "policy", "staleness", "clicks fresh", "pages fresh", "visits/page/day",
        "interval (days)", "pages visited",
    )  # fmt: skip
    names = (
        "budget", "policy", "staleness", "click_freshness", "page_freshness",
        "visits_per_page_day", "interval_days", "pages_visited",
    )  # fmt: skip
    ranked = sorted(rows, key=lambda row: (row["budget"], row["staleness"]))
    return header, [tuple(row[name] for name in names) for row in ranked]


def comparison_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Header and rows of our policy against its rivals."""
    header = (
        "trace", "budget", "policy", "against", "staleness", "theirs", "ratio",
        "paired ratio", "worst run", "gap closed",
    )  # fmt: skip
    return header, [tuple(row.values()) for row in rows]


def write_traces(report: dict[str, Any], path: Path) -> None:
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
        sheet.remarks(_REMARKS)
    for trace in report["traces"]:
        rows = [row for row in report["rows"] if row["trace"] == trace["name"]]
        sheet.heading(f"{trace['name']}: {trace['pages']:,} pages from {trace['start']}")
        sheet.chart(staleness_chart(rows), _CAPTION).table(*figures_table(rows))
    sheet.write(path)


_REMARKS = (
    "Staleness: share of the clicks that find a stale copy; ratio: ours to theirs, of the medians.",
    "Paired ratio: the median of the ratios of the single runs; worst run: the highest of them.",
    "Gap closed: of the way from theirs to the staleness of the clairvoyant, how much ours goes.",
)
_CAPTION = (
    "Clicks that find a stale copy, against the visits really spent; both axes are logarithmic. "
    "Lower is better. Policies without a colour of their own are grey; point at them to see which. "
    "One without a stale click is not drawn."
)


def staleness_chart(rows: Sequence[dict[str, Any]]) -> Any:
    """Staleness against visits spent, a line a policy."""
    import altair as alt

    points = [
        {**row, "shown": row["policy"] if row["policy"] in _COLOURS else _OTHERS}
        for row in rows
        if row["staleness"] and row["visits_per_page_day"]
    ]
    known = [name for name in (*_COLOURS, _OTHERS) if name in {p["shown"] for p in points}]
    shades = [_COLOURS.get(name, "#c4c4c4") for name in known]
    base = alt.Chart(data(points)).encode(
        x=alt.X(
            "visits_per_page_day:Q",
            title="visits made per page and day (log scale)",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=log_axis((-4, 2), (1, 2, 5)),
        ),
        y=alt.Y(
            "staleness:Q",
            title="share of clicks that find a stale copy (log scale)",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=log_axis((-6, 1), (1, 2, 5), "~%"),
        ),
        detail="policy:N",
        color=colours(
            "shown",
            known,
            shades,
            title="policy",
            legend=alt.Legend(orient="right", symbolOpacity=1),
        ),
        tooltip=[
            "policy:N",
            tip("visits_per_page_day", ".4~g", "visits per page and day"),
            tip("staleness", ".4~%"),
        ],
    )
    grey = base.transform_filter(f"datum.shown == '{_OTHERS}'").mark_line(point=True, opacity=0.6)
    named = base.transform_filter(f"datum.shown != '{_OTHERS}'")
    return (grey + named.mark_line(point={"size": 45})).properties(width=WIDTH - 120, height=420)
