"""Price histories with every visit marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_WIDTH, _HEIGHT = 660, 90
_OUTCOMES = {True: "change found", False: "no change", None: "first visit or failed"}
_COLOURS = {"change found": "#d1495b", "no change": "#8d99ae", "first visit or failed": "#edae49"}


@dataclass(frozen=True)
class PriceHistory:
    """One page: its true prices from each time on, and its visits (time, price held, changed)."""

    title: str
    prices: Sequence[tuple[datetime, float]]
    visits: Sequence[tuple[datetime, float, bool | None]]
    end: datetime


def history_chart(history: PriceHistory) -> Any:
    """The true prices of a page as a line, its visits as dots."""
    import altair as alt

    last = [(history.end, history.prices[-1][1])]
    truth = [{"at": at.isoformat(), "price": p} for at, p in [*history.prices, *last]]
    visits = [
        {"at": at.isoformat(), "price": p, "outcome": _OUTCOMES[c]} for at, p, c in history.visits
    ]
    axis = alt.Axis(format="%d %b %H:%M", tickCount=8)
    time = alt.X("at:T", title="world time (UTC)", scale=alt.Scale(type="utc"), axis=axis)
    price = alt.Y("price:Q", title="price", scale=alt.Scale(zero=False, padding=8))
    line = (
        alt.Chart({"values": truth})
        .mark_line(interpolate="step-after", color="#30638e")
        .encode(x=time, y=price)
    )
    marks = (
        alt.Chart({"values": visits})
        .mark_point(filled=True, size=45, opacity=0.9)
        .encode(x=time, y=price, color=_colour(alt), tooltip=["at:T", "price:Q", "outcome:N"])
    )
    return (line + marks).properties(width=_WIDTH, height=_HEIGHT, title=history.title)


def _colour(alt: Any) -> Any:
    scale = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    return alt.Color("outcome:N", title="visit", scale=scale)
