"""Estimates of freshness over time, with their intervals, as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from salticus.charts.policies import checked, picture
from salticus.charts.sheet import BLUE, ORANGE, WIDTH, Sheet
from salticus.exchange.place import in_place

_CAPTION = (
    "Freshness by pages and by clicks, each dot over the time up to it. The bars are intervals "
    "that hold in 95 % of the cases."
)


def write_chart(estimates: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw what `freshness_over_time` tells to an HTML, SVG or PNG file, by its suffix."""
    kind, chart = checked(path).suffix.lower(), _chart(estimates)
    if kind == ".html":
        Sheet("Freshness").chart(chart, _CAPTION).write(path)
        return
    with in_place(path) as part:
        part.write_bytes(picture(chart, kind))


def _chart(estimates: Sequence[dict[str, Any]]) -> Any:
    import altair

    alt: Any = altair
    values = [
        {"at": told["to"], "by": name, **told[name]}
        for told in estimates
        for name in ("pages", "clicks")
        if told[name]["half_width"] is not None
    ]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("at:T", title="until (UTC)", scale=alt.Scale(type="utc")),
        color=alt.Color("by:N", scale=alt.Scale(domain=["pages", "clicks"], range=[BLUE, ORANGE])),
    )
    share = alt.Y("freshness:Q", title="freshness", scale=alt.Scale(zero=False))
    bars = base.mark_rule(opacity=0.6).encode(y=alt.Y("low:Q", title="freshness"), y2="high:Q")
    dots = base.mark_line(point=True).encode(y=share, tooltip=["at:T", "by:N", "freshness:Q"])
    return (bars + dots).properties(width=WIDTH, height=260)
