"""Estimates of freshness over time, with their intervals, as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from salticus.charts.kit import colours, data
from salticus.charts.sheet import WIDTH, Sheet, draw

_CAPTION = (
    "Freshness by pages and by clicks, each dot over the time up to it. The bars are intervals "
    "that hold in 95 % of the cases."
)


def write_chart(estimates: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw what `freshness_over_time` tells to an HTML, SVG or PNG file, by its suffix."""
    draw(_chart(estimates), path, Sheet("Freshness"), _CAPTION)


def _chart(estimates: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    values = [
        {"at": told["to"], "by": name, **told[name]}
        for told in estimates
        for name in ("pages", "clicks")
        if told[name]["half_width"] is not None
    ]
    base = alt.Chart(data(values)).encode(
        x=alt.X("at:T", title="until (UTC)", scale=alt.Scale(type="utc")),
        color=colours("by", ["pages", "clicks"]),
    )
    share = alt.Y("freshness:Q", title="freshness", scale=alt.Scale(zero=False))
    bars = base.mark_rule(opacity=0.6).encode(y=alt.Y("low:Q", title="freshness"), y2="high:Q")
    dots = base.mark_line(point=True).encode(y=share, tooltip=["at:T", "by:N", "freshness:Q"])
    return (bars + dots).properties(width=WIDTH, height=260)
