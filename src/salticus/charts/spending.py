"""Charts of where visits go: by change rate and by demand, of one policy or beside others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from salticus.charts import kit
from salticus.charts.sheet import Sheet, draw

_AXES = {"rate": "changes a day of the page", "demand": "demand of the page, × the mean"}
_SHARE = "share of all visits"
_VISITS = "visits per page and day"

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
    found: dict[str, list[dict[str, Any]]] = {}
    for row in spending:
        found.setdefault(row["budget"], []).append(row)
    logged = found.pop("logged", [])
    return {b: logged + rows for b, rows in found.items()} or {"logged": logged}


def _maps(rows: Rows) -> Any:
    """A heat map for each policy: demand over change rate, coloured by visits."""
    import altair as alt

    every = [field for row in rows for field in _fields(row)]
    x, y = _across("rate", every), _bins("demand", every, -1)
    legend = {"orient": "bottom", "gradientLength": 300, "format": "~g", "titleLimit": 400}
    scale = {**kit.LOG, "scheme": "viridis"}
    heat = kit.by("visits_per_page_day:Q", title=_VISITS, scale=scale, legend=legend)
    visited, maps = "datum.visits_per_page_day > 0", []
    for row in rows:
        base = kit.plot(_fields(row), x=x, y=y, tooltip=_tips(*_AXES))
        none = base.transform_filter(f"!({visited})").mark_rect(color="#d9d9d9")
        seen = base.transform_filter(visited).mark_rect().encode(color=heat)
        maps.append((none + seen).properties(title=row["policy"], width=184, height=220))
    return alt.concat(*maps, columns=3).resolve_scale(color="shared")


def _bins(name: str, fields: Rows, step: int = 1) -> dict[str, Any]:
    """An axis of bins in their order, labelled by where they begin."""
    known = sorted({(field[name], field[f"{name}_bin"]) for field in fields})
    order = [words for _, words in known][::step]
    return kit.by(f"{name}_bin:O", sort=order, scale={"domain": order}, title=_AXES[name])


def _across(name: str, fields: Rows) -> dict[str, Any]:
    return {**_bins(name, fields), "axis": {"labelAngle": -45}}


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
        _panel(rows, name, measure, colour)
        for measure in ("visits_per_page_day", "share")
        for name in _AXES
    ]
    pairs = [alt.hconcat(*panels[:2], spacing=30), alt.hconcat(*panels[2:], spacing=30)]
    return alt.vconcat(*pairs)


def _panel(rows: Rows, name: str, measure: str, colour: Any) -> Any:
    points = [point for row in rows for point in margin(row, name)]
    y = kit.by("share:Q", title=_SHARE, axis=kit.PERCENT)
    if measure != "share":
        points = [point for point in points if point[measure] > 0]
        axis = kit.log_axis((-6, 3), (1, 3))
        y = kit.by(f"{measure}:Q", title=_VISITS, scale=kit.LOG, axis=axis)
    x = _across(name, points)
    chart = kit.lines(points, dots=40, x=x, y=y, color=colour, tooltip=_tips(name))
    return chart.properties(width=kit.WIDTH // 2 - 50, height=220)


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


def _tips(*names: str) -> list[Any]:
    return [
        "policy:N",
        *(kit.by(f"{name}_bin:N", title=_AXES[name]) for name in names),
        kit.tip("pages", ",.4~r"),
        kit.tip("visits_per_page_day", ".3~g", _VISITS),
        kit.tip("share", ".2~%", _SHARE),
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
    shown = [_named(demand) for demand in dict.fromkeys(one["demand"] for one in habits)]
    rows = [{**one, "shown": _named(one["demand"])} for one in habits]
    floor, ceiling = _ends([one["visits"] for one in rows], _RANGE, 1.3)
    ends = _ends([one["rate"] for one in rows], (np.inf, 0.0), 1.3)
    base = {
        "x": _axis("rate", "changes of a page a day (log scale)", ends),
        "y": _axis("visits", "visits to it a day (log scale)", (floor, ceiling)),
        "color": kit.colours("shown", shown, _COLOURS, title="demand", legend={"symbolSize": 80}),
    }
    tips = ["shown:N", *(kit.tip(n, ".3~g") for n in ("rate", "visits"))]
    some = kit.plot((one for one in rows if one["visits"] > 0), **base)
    size = kit.by("shown:N", scale={"domain": shown, "range": list(_SIZES)}, legend=None)
    dots = some.mark_circle(opacity=1).encode(size=size, tooltip=tips)
    none = [
        {**one, "visits": floor * 1.35 ** shown.index(one["shown"])}
        for one in rows
        if one["visits"] <= 0
    ]
    triangle = {"shape": "triangle-down", "filled": True, "opacity": 1, "size": 40, "yOffset": -5}
    marks = kit.plot(none, **base).mark_point(**triangle)
    layers = kit.layered(some.mark_line(strokeWidth=1.5), dots, marks)
    return layers.properties(width=460, height=280, title=title)


def _ends(values: Sequence[float], usual: tuple[float, float], room: float) -> tuple[float, float]:
    """From the least value above 0 to the highest with some room, or further if that is usual."""
    some = [value for value in values if value > 0]
    low, high = min(some, default=usual[0]) / room, max(some, default=usual[1]) * room
    return min(low, usual[0]), max(high, usual[1])


def _axis(name: str, title: str, ends: tuple[float, float]) -> dict[str, Any]:
    scale = {**kit.LOG, "domain": list(ends), "nice": False}
    return kit.by(f"{name}:Q", title=title, scale=scale, axis=kit.log_axis((-6, 3)))


def _named(demand: float) -> str:
    return f"{demand:g} × mean" if demand != 1 else "the mean"
