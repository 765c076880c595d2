"""The demo's page: staleness over time, and a few offers with their true prices and visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from salticus.charts.kit import BLUE, GREY, ORANGE, colours, data, tip
from salticus.charts.sheet import WIDTH, Sheet
from salticus.lab.demo.copies import CopyHistory
from salticus.lab.worlds.mall.stock import Stock
from salticus.types import Times, instant, moment

_WIDTH, _HEIGHT = 660, 90
_OUTCOMES = {True: "change found", False: "no change", None: "first visit or failed"}
_COLOURS = {"change found": "#d1495b", "no change": "#8d99ae", "first visit or failed": "#edae49"}

SHOWN = 6


Scene = tuple[Stock, CopyHistory, tuple[datetime, datetime]]


def write_charts(path: Path, curves: Mapping[str, list[dict[str, Any]]], scene: Scene) -> None:
    """How stale the copy was that people clicked on, and what the last policy saw of offers."""
    sheet = Sheet("Two crawls of one mall")
    sheet.chart(
        _staleness(curves),
        "Share of clicks that met a copy out of date, by half days of world time. Both crawls "
        "begin with nothing; both spend the same budget.",
    )
    sheet.heading("True prices, and visits")
    for history in _histories(*scene):
        sheet.chart(history_chart(history))
    sheet.write(path)


def _staleness(curves: Mapping[str, list[dict[str, Any]]]) -> Any:
    import altair as alt

    points = [{"policy": policy, **point} for policy, curve in curves.items() for point in curve]
    return (
        alt.Chart(data(points), width=WIDTH, height=300)
        .mark_line(point=True)
        .encode(
            x=alt.X("at:T", title="world time (UTC)", scale=alt.Scale(type="utc")),
            y=alt.Y(
                "stale:Q",
                title="clicks on a stale copy (square-root scale)",
                axis=alt.Axis(format="%", values=[0, 0.01, 0.05, 0.1, 0.25, 0.5, 1]),
                scale=alt.Scale(type="sqrt"),
            ),
            color=colours("policy", list(curves), (GREY, BLUE, ORANGE), title=None),
            tooltip=["policy:N", "at:T", tip("stale", ".1%")],
        )
    )


def _histories(
    stock: Stock, copies: CopyHistory, span: tuple[datetime, datetime]
) -> list[PriceHistory]:
    """The offers that changed often, seldom and in between, of those there and visited."""
    start, end = (instant(t) for t in span)
    inside = (stock.times > start) & (stock.times < end)
    changes = np.add.reduceat(inside.astype(np.int64), stock.offsets[:-1])
    there = stock.times[stock.offsets[:-1]] <= start
    changes[~(there & np.isin(np.arange(len(stock)), copies.rows))] = 0
    lively = np.flatnonzero(changes)
    ranked = lively[np.argsort(-changes[lively], kind="stable")]
    rows = ranked[np.linspace(0, len(ranked) - 1, min(SHOWN, len(ranked))).astype(np.int64)]
    return [_history(stock, copies, int(row), span) for row in rows]


def _history(
    stock: Stock, copies: CopyHistory, row: int, span: tuple[datetime, datetime]
) -> PriceHistory:
    page = stock.pages[row]
    prices = [(max(at, span[0]), _price(v)) for at, v in stock.history(row) if v and at < span[1]]
    before = max(k for k, (at, _) in enumerate(prices) if at <= span[0])
    mine = np.flatnonzero(copies.visited_rows == row)
    held = _held(copies, row, copies.visited_at[mine])
    visits = [
        (moment(copies.visited_at[k]), price, copies.visited_changed[k])
        for k, price in zip(mine, held, strict=True)
    ]
    return PriceHistory(f"{page.title} ({page.currency})", prices[before:], visits, span[1])


def _held(copies: CopyHistory, row: int, times: Times) -> list[float]:
    """The price held after each visit."""
    mine = np.flatnonzero(copies.rows == row)
    latest = np.searchsorted(copies.at[mine], times, side="right") - 1
    return [_price(copies.values[mine[max(k, 0)]]) for k in latest]


def _price(value: str) -> float:
    return float(value.split(" ", 1)[0])


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
    outcome = colours("outcome", list(_COLOURS), list(_COLOURS.values()), title="visit")
    line = (
        alt.Chart(data(truth))
        .mark_line(interpolate="step-after", color="#30638e")
        .encode(x=time, y=price)
    )
    marks = (
        alt.Chart(data(visits))
        .mark_point(filled=True, size=45, opacity=0.9)
        .encode(x=time, y=price, color=outcome, tooltip=["at:T", "price:Q", "outcome:N"])
    )
    return (line + marks).properties(width=_WIDTH, height=_HEIGHT, title=history.title)
