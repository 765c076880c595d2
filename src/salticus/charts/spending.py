"""Charts of where visits go: by change rate and by demand, of one policy or beside others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from salticus.charts.sheet import WIDTH, Sheet, colours, data, draw, lines, log_axis, percent, tip

_AXES = {
    "rate": "changes a day of the page",
    "demand": "demand of the page, × the mean",
}
_SHARE = "share of all visits"
_VISITS = "visits per page and day"
_COLUMNS = 3

Rows = Sequence[dict[str, Any]]


def spending_charts(sheet: Sheet, spending: Rows, colour: Any) -> None:
    """Add the charts of `Contest.report()["spending"]`, a set for each budget."""
    sheet.heading("Where the visits go")
    for budget, rows in _by_budget(spending).items():
        sheet.heading(f"Budget {budget}", rank=3)
        sheet.chart(_maps(rows), _MAPS)
        sheet.chart(_lines(rows, colour), _LINES)


_MAPS = (
    "A field holds the pages of one change rate and one demand; its colour is how often each was "
    "visited in the scored days, mean over the runs. The rate is the true one in these days, the "
    "demand what was known when they began. Grey: no visit. Empty: no page."
)
_LINES = (
    "The same, summed over the other of the two: how often a page of that kind is visited, and "
    "what part of the budget all pages of the kind take."
)


def _by_budget(spending: Rows) -> dict[str, list[dict[str, Any]]]:
    """The entries of each budget; what the log's own crawler did stands beside every one."""
    logged = [row for row in spending if row["budget"] == "logged"]
    budgets = dict.fromkeys(row["budget"] for row in spending if row["budget"] != "logged")
    found = {b: [r for r in spending if r["budget"] == b] for b in budgets}
    return {b: logged + rows for b, rows in found.items()} or {"logged": logged}


def _maps(rows: Rows) -> Any:
    """A heat map for each policy: demand over change rate, coloured by visits."""
    import altair as alt

    every = [field for row in rows for field in _fields(row)]
    axes = {
        "x": _ordinal(alt, alt.X, "rate", every),
        "y": _ordinal(alt, alt.Y, "demand", every),
    }
    maps = [_map(alt, row, axes) for row in rows]
    return alt.concat(*maps, columns=_COLUMNS).resolve_scale(color="shared")


def _map(alt: Any, row: dict[str, Any], axes: dict[str, Any]) -> Any:
    visited = "datum.visits_per_page_day > 0"
    base = alt.Chart(data(_fields(row))).encode(**axes, tooltip=_tips(alt))
    none = base.transform_filter(f"!({visited})").mark_rect(color="#d9d9d9")
    seen = base.transform_filter(visited).mark_rect().encode(color=_heat(alt))
    return alt.layer(none, seen).properties(title=row["policy"], width=184, height=220)


def _heat(alt: Any) -> Any:
    legend = alt.Legend(orient="bottom", gradientLength=300, format="~g", titleLimit=400)
    scale = alt.Scale(type="log", scheme="viridis")
    return alt.Color("visits_per_page_day:Q", title=_VISITS, scale=scale, legend=legend)


def _ordinal(alt: Any, channel: Any, name: str, fields: Rows) -> Any:
    """An axis of bins in their order, labelled by where they begin."""
    known = sorted({(field[name], field[f"{name}_bin"]) for field in fields})
    order = [words for _, words in known][:: 1 if channel is alt.X else -1]
    angle = {"axis": alt.Axis(labelAngle=-45)} if channel is alt.X else {}
    scale = alt.Scale(domain=order)
    return channel(f"{name}_bin:O", sort=order, scale=scale, title=_AXES[name], **angle)


def _fields(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for cell in row["cells"]:
        bins = {f"{name}_bin": label(cell[name], cell[f"{name}_to"]) for name in _AXES}
        yield {"policy": row["policy"], **cell, **bins}


def label(low: float, high: float | None) -> str:
    """A bin in words.

    >>> label(0.0, 0.0), label(0.03, 0.1), label(100.0, None)
    ('none', '0.03–0.1', '100+')
    """
    if high is None:
        return f"{low:g}+"
    return f"{low:g}–{high:g}" if high > 0 else "none"


def _lines(rows: Rows, colour: Any) -> Any:
    """Visits a page, and share of all visits, against change rate and against demand."""
    import altair as alt

    panels = [
        _panel(alt, rows, name, measure, colour)
        for measure in ("visits_per_page_day", "share")
        for name in _AXES
    ]
    pairs = [alt.hconcat(*panels[:2], spacing=30), alt.hconcat(*panels[2:], spacing=30)]
    return alt.vconcat(*pairs)


def _panel(alt: Any, rows: Rows, name: str, measure: str, colour: Any) -> Any:
    points = [point for row in rows for point in margin(row, name)]
    if measure == "share":
        y = alt.Y("share:Q", title=_SHARE, axis=percent())
    else:
        points = [point for point in points if point["visits_per_page_day"] > 0]
        scale = alt.Scale(type="log")
        y = alt.Y(f"{measure}:Q", title=_VISITS, scale=scale, axis=log_axis((-6, 3), (1, 3)))
    x = _ordinal(alt, alt.X, name, points)
    chart = lines(points, dots=40, x=x, y=y, color=colour, tooltip=_tips(alt, name))
    return chart.properties(width=WIDTH // 2 - 50, height=220)


def margin(row: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The cells of an entry summed over all bins but those of `name`."""
    sums: dict[tuple[float, float | None], dict[str, Any]] = {}
    for cell in row["cells"]:
        where = (cell[name], cell[f"{name}_to"])
        one = sums.setdefault(where, {"pages": 0.0, "visits": 0.0, "share": 0.0, "page_days": 0.0})
        for key in one:
            one[key] += cell[key]
    return [
        {
            "policy": row["policy"],
            name: where[0],
            f"{name}_bin": label(*where),
            **one,
            "visits_per_page_day": one["visits"] / one["page_days"],
        }
        for where, one in sorted(sums.items(), key=lambda item: item[0][0])
    ]


def _tips(alt: Any, *names: str) -> list[Any]:
    return [
        "policy:N",
        *(alt.Tooltip(f"{name}_bin:N", title=_AXES[name]) for name in names or _AXES),
        tip("pages", ",.4~r"),
        tip("visits_per_page_day", ".3~g", _VISITS),
        tip("share", ".2~%", _SHARE),
    ]


_COLOURS = ("#56B4E9", "#0072B2", "#D55E00")
_SIZES = (110, 50, 14)  # of dots: those that lie upon one another are all seen
_RANGE = (0.001, 6.0)  # visits a day: the same for all policies, unless it does not suffice
_CAPTION = (
    "3,240 pages, of which 3,000 have lognormal change rates (median 0.1 a day) and Zipf demand; a "
    "budget of 10 %, ticks of six hours, true rates known; visits counted over 360 days. A "
    "triangle at the bottom means that pages of that kind got none."
)


def write_habits(about: Mapping[str, str], habits: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw `habits` (rate, demand, visits) to an HTML, SVG or PNG file, by its suffix."""
    chart = habits_chart(habits, title=about["name"])
    draw(chart, path, Sheet(about["name"]).words(about["summary"]), _CAPTION)


def habits_chart(habits: Sequence[Mapping[str, Any]], title: str = "") -> Any:
    """Visits a day against changes a day, both logarithmic, a line for each demand."""
    import altair as alt

    shown = [_named(demand) for demand in dict.fromkeys(one["demand"] for one in habits)]
    rows = [{**one, "shown": _named(one["demand"])} for one in habits]
    floor, ceiling = _ends([one["visits"] for one in rows], _RANGE, 1.3)
    ends = _ends([one["rate"] for one in rows], (np.inf, 0.0), 1.3)
    legend = alt.Legend(symbolSize=80)
    base = {
        "x": _axis(alt.X, "rate", "changes of a page a day (log scale)", ends),
        "y": _axis(alt.Y, "visits", "visits to it a day (log scale)", (floor, ceiling)),
        "color": colours("shown", shown, _COLOURS, title="demand", legend=legend),
    }
    tips = ["shown:N", *(alt.Tooltip(f"{n}:Q", format=".3~g") for n in ("rate", "visits"))]
    some = data(one for one in rows if one["visits"] > 0)
    none = data(
        {**one, "visits": floor * 1.35 ** shown.index(one["shown"])}
        for one in rows
        if one["visits"] <= 0
    )
    size = alt.Size("shown:N", scale=alt.Scale(domain=shown, range=list(_SIZES)), legend=None)
    lines = alt.Chart(some).mark_line(strokeWidth=1.5)
    dots = alt.Chart(some).mark_circle(opacity=1).encode(size=size, tooltip=tips)
    marks = alt.Chart(none).mark_point(
        shape="triangle-down", filled=True, opacity=1, size=40, yOffset=-5
    )
    layers = [layer.encode(**base) for layer in (lines, dots, marks)]
    return alt.layer(*layers).properties(width=460, height=280, title=title)


def _ends(values: Sequence[float], usual: tuple[float, float], room: float) -> tuple[float, float]:
    """From the least value above 0 to the highest with some room, or further if that is usual."""
    some = [value for value in values if value > 0]
    low, high = min(some, default=usual[0]) / room, max(some, default=usual[1]) * room
    return min(low, usual[0]), max(high, usual[1])


def _axis(channel: Any, name: str, title: str, ends: tuple[float, float]) -> Any:
    import altair as alt

    scale = alt.Scale(type="log", domain=list(ends), nice=False)
    return channel(f"{name}:Q", title=title, scale=scale, axis=log_axis((-6, 3)))


def _named(demand: float) -> str:
    return f"{demand:g} × mean" if demand != 1 else "the mean"
