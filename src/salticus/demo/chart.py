"""The demo's page: a few offers, their true prices, and when they were visited."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np

from salticus.demo.copies import Copies
from salticus.report.histories import History, write_histories
from salticus.types import Times, instant, moment
from salticus.worlds.mall.stock import Stock

SHOWN = 6


def write_chart(stock: Stock, copies: Copies, span: tuple[datetime, datetime], path: Path) -> None:
    """The offers that changed often, seldom and in between."""
    start, end = (instant(t) for t in span)
    inside = (stock.times > start) & (stock.times < end)
    changes = np.add.reduceat(inside.astype(np.int64), stock.offsets[:-1])
    lively = np.flatnonzero(changes)
    ranked = lively[np.argsort(-changes[lively], kind="stable")]
    rows = ranked[np.linspace(0, len(ranked) - 1, min(SHOWN, len(ranked))).astype(np.int64)]
    histories = [_history(stock, copies, int(row), span) for row in rows]
    write_histories(histories, path, "True prices (line) and visits (dots)")


def _history(stock: Stock, copies: Copies, row: int, span: tuple[datetime, datetime]) -> History:
    page = stock.pages[row]
    prices = [(max(at, span[0]), _price(v)) for at, v in stock.history(row) if v and at < span[1]]
    before = max(k for k, (at, _) in enumerate(prices) if at <= span[0])
    mine = np.flatnonzero(copies.visited_rows == row)
    held = _held(copies, row, copies.visited_at[mine])
    visits = [
        (moment(copies.visited_at[k]), price, copies.visited_changed[k])
        for k, price in zip(mine, held, strict=True)
    ]
    return History(f"{page.title} ({page.currency})", prices[before:], visits, span[1])


def _held(copies: Copies, row: int, times: Times) -> list[float]:
    """The price held after each visit."""
    mine = np.flatnonzero(copies.rows == row)
    latest = np.searchsorted(copies.at[mine], times, side="right") - 1
    return [_price(copies.values[mine[k]]) for k in latest]


def _price(value: str) -> float:
    return float(value.split(" ", 1)[0])
