"""Was the crawl's own estimate of its freshness right? Asked of the mall, day by day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np

from salticus.config import Config
from salticus.lab.worlds.mall.audit import AnsweredVisits, fresh_at, freshness_over
from salticus.lab.worlds.mall.shoppers import Shopping
from salticus.lab.worlds.mall.stock import Stock
from salticus.views.freshness import freshness_over_time

DAY = timedelta(days=1)


async def promise(
    config: Config, stock: Stock, held: AnsweredVisits, clicked: Shopping
) -> dict[str, dict[str, Any]]:
    """By pages and by clicks: days that were estimated, days whose interval held the truth, and the
    median half-width.

    Only whole days count. The first is left out: every page is new in it.
    """
    told = [day for day in await freshness_over_time(config, DAY) if day["ticks"] >= 12][1:]
    spans = [(_time(day["from"]), _time(day["to"])) for day in told]
    truths = {
        "pages": [freshness_over(stock, held, *span) for span in spans],
        "clicks": [_by_clicks(stock, held, clicked.between(*span)) for span in spans],
    }
    return {name: _kept([day[name] for day in told], truth) for name, truth in truths.items()}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _by_clicks(stock: Stock, held: AnsweredVisits, clicked: Shopping) -> float:
    """Share of clicks that met a copy in step with the truth."""
    if not len(clicked):
        return float("nan")
    fresh = fresh_at(stock, held, clicked.row, clicked.at)
    return float(np.average(fresh, weights=clicked.clicks))


def _kept(told: list[dict[str, Any]], truth: list[float]) -> dict[str, Any]:
    known = [
        (day, true)
        for day, true in zip(told, truth, strict=True)
        if day["half_width"] is not None and not np.isnan(true)
    ]
    widths = [day["half_width"] for day, _ in known]
    off = [day["freshness"] - true for day, true in known]
    return {
        "days": len(known),
        "held": sum(day["low"] <= true <= day["high"] for day, true in known),
        "half_width": float(np.median(widths)) if widths else None,
        "bias": float(np.mean(off)) if off else None,
    }
