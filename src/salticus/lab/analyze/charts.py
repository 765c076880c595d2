"""The charts of the study: Altair, one function a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import log10
from typing import Any

from salticus.charts.kit import BLUE, GREY, ORANGE, colours, data, log_axis, tip
from salticus.charts.sheet import WIDTH
from salticus.lab.analyze.demand import DemandSummary
from salticus.lab.analyze.intervals import Interval, Intervals
from salticus.lab.analyze.rates import Rates
from salticus.lab.analyze.shares import ChangeShare
from salticus.lab.analyze.week import HOURS, WEEKDAYS, WeekShares

PERCENT = ".3~%"
PROBABILITY = "probability of change per download"
MARKS = (24.0, 48.0, 168.0)  # hours
_TICKS = {
    "hours": (1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 720, 2160, 8760),
    "days": (1, 2, 3, 7, 14, 30, 60, 120, 240, 365, 730),
}


def _share_tips(alt: Any, name: str) -> list[Any]:
    """What a share tells when pointed at."""
    return [
        alt.Tooltip("name:N", title=name),
        tip("probability", ".4~%"),
        tip("low", ".4~%", "95 % from"),
        tip("high", ".4~%", "to"),
        tip("changes", ","),
        tip("downloads", ","),
    ]


# ------------------------------------------------------------------------------------------- week


def week_bars(shares: Sequence[ChangeShare], name: str, width: int) -> Any:
    """Bars with whiskers, in the order given."""
    import altair as alt

    scale = alt.Scale(domain=[share.name for share in shares])
    x = alt.X("name:O", scale=scale, title=name, axis=alt.Axis(labelAngle=0))
    axis = alt.Axis(format=PERCENT, tickCount=6)
    base = alt.Chart(data([s for s in shares if s.downloads])).encode(
        x=x, tooltip=_share_tips(alt, name)
    )
    bars = base.mark_bar(color=BLUE).encode(y=alt.Y("probability:Q", title=PROBABILITY, axis=axis))
    whiskers = base.mark_rule(color="#000").encode(y="low:Q", y2="high:Q")
    return (bars + whiskers).properties(width=width, height=240)


def week_map(week: WeekShares) -> Any:
    """Weekday × hour, as a heat map; hours without downloads are left blank."""
    import altair as alt

    cells = [
        {**asdict(share), "weekday": share.name[:3], "hour": share.name[4:]}
        for share in week.cells
        if share.downloads
    ]
    colour = alt.Color(
        "probability:Q",
        title="probability of change",
        scale=alt.Scale(scheme="viridis", nice=True),
        legend=alt.Legend(format=PERCENT, gradientLength=180, tickCount=5),
    )
    return (
        alt.Chart(data(cells))
        .mark_rect()
        .encode(
            x=alt.X(
                "hour:O",
                title="hour of the day (local time)",
                scale=alt.Scale(domain=HOURS),
                axis=alt.Axis(labelAngle=0),
            ),
            y=alt.Y("weekday:O", title=None, scale=alt.Scale(domain=WEEKDAYS)),
            color=colour,
            tooltip=_share_tips(alt, "when"),
        )
        .properties(width=WIDTH - 60, height=196)
    )


# -------------------------------------------------------------------------------------- intervals


def interval_plot(intervals: Intervals) -> Any:
    """Share of changes by interval, both axes logarithmic, with its peaks and days marked."""
    import altair as alt

    unit, per = ("hours", 1.0) if intervals.unit_hours < 24 else ("days", 24.0)
    longest = intervals.rows[-1].hours
    ticks = [t for t in _TICKS[unit] if t * per <= longest * 1.05]
    x = alt.X(
        "x:Q",
        title=f"time since the change before, or since the first observation ({unit}, log scale)",
        scale=alt.Scale(type="log", domain=_range(intervals, per), nice=False),
        axis=alt.Axis(values=ticks, format="~g"),
    )
    y = alt.Y(
        "share:Q",
        title="share of all changes (log scale)",
        scale=alt.Scale(type="log"),
        axis=log_axis((-11, 1), form="~%"),
    )
    tips = [
        alt.Tooltip("label:N", title="interval"),
        tip("share", ".4~%"),
        tip("changes", ","),
    ]
    dots = alt.Chart(data(_points(intervals.rows, per))).encode(x=x, y=y, tooltip=tips)
    tops = alt.Chart(data(_named(intervals, per))).encode(x=x, y=y, tooltip=tips)
    layers = [
        *_days(alt, per, longest),
        dots.mark_line(color=BLUE, opacity=0.35, strokeWidth=1),
        dots.mark_point(color=BLUE, filled=True, size=22, opacity=0.8),
        tops.mark_point(color=ORANGE, filled=True, size=60, opacity=1),
        tops.mark_text(dy=-11, fontSize=11, color=ORANGE).encode(text="name:N"),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=380)


def _range(intervals: Intervals, per: float) -> list[float]:
    """From the shortest interval to the longest, with a little room on both sides."""
    ends = intervals.rows[0].hours / per, intervals.rows[-1].hours / per
    room = (ends[1] / ends[0]) ** 0.02 * 1.05
    return [ends[0] / room, ends[1] * room]


def _points(rows: Sequence[Interval], per: float) -> list[dict[str, Any]]:
    return [{**asdict(row), "x": row.hours / per, "label": spoken(row.hours)} for row in rows]


def _named(intervals: Intervals, per: float) -> list[dict[str, Any]]:
    """The peaks, with names on those that have room for one: the highest first."""
    room = 0.035 * log10(intervals.rows[-1].hours / intervals.rows[0].hours)
    points = _points(intervals.peaks, per)
    named: list[float] = []
    for point in sorted(points, key=lambda p: -p["share"]):
        free = all(abs(log10(point["x"] / x)) > room for x in named)
        point["name"] = point["label"] if free else ""
        named += [point["x"]] * free
    return points


def spoken(hours: float) -> str:
    """An interval in the unit that people would use.

    >>> spoken(24.0), spoken(36.0), spoken(96.0), spoken(50.0)
    ('24 h', '36 h', '4 d', '50 h')
    """
    whole_days = hours > 48 and hours % 24 == 0
    return f"{hours / 24:g} d" if whole_days else f"{hours:g} h"


def _days(alt: Any, per: float, longest: float) -> list[Any]:
    """Dashed lines at a day, two days and a week."""
    marks = [{"x": h / per, "label": spoken(h)} for h in MARKS if h <= longest]
    if not marks:
        return []
    base = alt.Chart(data(marks)).encode(x="x:Q")
    lines = base.mark_rule(color=GREY, strokeDash=[4, 4])
    words = base.mark_text(color=GREY, dy=-8, fontSize=12).encode(text="label:N", y=alt.value(0))
    return [lines, words]


# ----------------------------------------------------------------------------------------- groups


def group_bars(shares: Sequence[ChangeShare], name: str) -> Any:
    """Horizontal bars with whiskers, highest first."""
    import altair as alt

    ranked = sorted(shares, key=lambda s: (-(s.probability or 0.0), s.name))
    y = alt.Y("name:N", sort=[s.name for s in ranked], title=None)
    tips = [*_share_tips(alt, name), tip("pages", ",")]
    base = alt.Chart(data(ranked)).encode(y=y, tooltip=tips)
    axis = alt.Axis(format=PERCENT, tickCount=7)
    bars = base.mark_bar(color=BLUE).encode(x=alt.X("probability:Q", title=PROBABILITY, axis=axis))
    whiskers = base.mark_rule(color="#000").encode(x="low:Q", x2="high:Q")
    return (bars + whiskers).properties(width=WIDTH - 100, height=alt.Step(20))


# ---------------------------------------------------------------------------------- rates, demand


def rate_bars(rates: Rates) -> Any:
    """Histogram of the rates of pages that change, on a log axis."""
    import altair as alt

    x = alt.X(
        "low:Q",
        title="changes per page and day (log scale)",
        scale=alt.Scale(type="log", nice=False),
        axis=log_axis((-7, 4), (1, 2, 5)),
    )
    tips = [
        tip("low", ".3~g", "changes a day from"),
        tip("high", ".3~g", "to below"),
        tip("pages", ","),
        tip("share", ".3~%", "of all pages"),
    ]
    y = alt.Y("share:Q", title="share of all pages", axis=alt.Axis(format=PERCENT))
    zero = alt.datum(0)
    return (
        alt.Chart(data(rates.bins))
        .mark_bar(color=BLUE, stroke="#fff", strokeWidth=1)
        .encode(x=x, x2="high:Q", y=y, y2=zero, tooltip=tips)
        .properties(width=WIDTH, height=240)
    )


def lorenz_curve(demand: DemandSummary) -> Any:
    """Share of clicks against share of pages; the diagonal is what equal pages would give."""
    import altair as alt

    pages = "share of pages, least clicked first"
    curves = [
        {"pages": x, "clicks": y, "curve": curve}
        for curve, points in (("clicks", demand.lorenz), ("equal pages", [(0, 0), (1, 1)]))
        for x, y in points
    ]
    names = ["clicks", "equal pages"]
    return (
        alt.Chart(data(curves))
        .mark_line()
        .encode(
            x=alt.X("pages:Q", title=pages, axis=alt.Axis(format="~%")),
            y=alt.Y("clicks:Q", title="share of clicks", axis=alt.Axis(format="~%")),
            color=colours("curve", names, (BLUE, GREY), title=None),
            strokeDash=alt.StrokeDash(
                "curve:N", title=None, scale=alt.Scale(domain=names, range=[[1, 0], [5, 4]])
            ),
            tooltip=[
                tip("pages", ".2~%", pages),
                tip("clicks", ".2~%", "share of clicks"),
            ],
        )
        .properties(width=380, height=320)
    )


def decile_bars(demand: DemandSummary) -> Any:
    """Change rate by decile of clicks."""
    import altair as alt

    rows = [{**asdict(d), "name": str(d.decile or "none")} for d in demand.deciles]
    x = alt.X(
        "name:O",
        scale=alt.Scale(domain=["none", *map(str, range(1, 11))]),
        title="clicks a day: none, then tenths of the clicked pages (10 = most clicked)",
        axis=alt.Axis(labelAngle=0),
    )
    tips = [
        alt.Tooltip("name:N", title="tenth"),
        tip("rate", ".4~g", "changes a day"),
        tip("pages", ","),
        tip("clicks", ","),
        tip("changes", ","),
    ]
    y = alt.Y("rate:Q", title="changes per page and day", axis=alt.Axis(format="~g"))
    chart = alt.Chart(data(rows)).mark_bar(color=BLUE).encode(x=x, y=y, tooltip=tips)
    return chart.properties(width=560, height=240)
