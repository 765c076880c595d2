"""What a policy is and does: its description, and its visits against change rate and demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from salticus.charts.kit import colours, data, log_axis
from salticus.charts.sheet import Sheet, draw

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
