"""How often pages change: rates, concentration, and changes that are soon undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.lab.analyze.record import Downloads
from salticus.lab.analyze.shares import PERCENT, percent
from salticus.types import Floats, Ints
from salticus.types.dates import DAY_US

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
_PER_DECADE = 5


@dataclass(frozen=True, slots=True)
class RateBin:
    """Pages whose changes a day lie in [low, high)."""

    low: float
    high: float
    pages: int
    share: float


@dataclass(frozen=True, slots=True)
class Rates:
    """Changes a day and page, over the days for which each page was watched.

    `mean` is all changes over all page-days. `quantiles` are of the pages' rates. `top_1_percent`
    is the share of all changes that comes from the 1 % of pages with most of them. `undone` is the
    share of changes that bring back the value before the last change within two days.
    """

    pages: int
    page_days: float
    mean: float | None
    never: float | None
    quantiles: dict[str, float]
    bins: list[RateBin]
    top_1_percent: float | None
    top_10_percent: float | None
    undone: float | None
    notes: list[str]


def rates_of(record: Downloads) -> Rates:
    """Rates of all pages that were watched for a while."""
    watched = record.pages.filter(pl.col("watched") > 0)
    changes, days = watched["changes"].to_numpy(), watched["watched"].to_numpy() / DAY_US
    notes = []
    if once := len(record.pages) - len(watched):
        notes.append(f"{once:,} pages were downloaded only once and have no rate")
    if not record.valued:
        notes.append("changes that are undone: visits.parquet has no column `value`")
    undone = record.changes["back"].mean() if record.valued else None
    if not len(watched):
        return Rates(0, 0.0, None, None, {}, [], None, None, None, [*notes, "no page was watched"])
    rates = changes / days
    return Rates(
        pages=len(rates),
        page_days=float(days.sum()),
        mean=float(changes.sum() / days.sum()),
        never=float(np.mean(changes == 0)),
        quantiles={f"{q:g}": float(np.quantile(rates, q)) for q in _QUANTILES},
        bins=_bins(rates),
        top_1_percent=top(changes, 0.01),
        top_10_percent=top(changes, 0.1),
        undone=None if undone is None else float(undone),  # type: ignore[arg-type]
        notes=notes,
    )


def top(counts: Ints | Floats, share: float) -> float | None:
    """What part of the total the given share of members with the largest counts holds.

    >>> top(np.array([6, 1, 1, 1, 1, 0, 0, 0, 0, 0]), 0.1)
    0.6
    """
    total = counts.sum()
    if not total:
        return None
    few = max(1, round(share * len(counts)))
    return float(np.sort(counts)[-few:].sum() / total)


def _bins(rates: Floats) -> list[RateBin]:
    """Five bins a decade, over the pages that change at all; shares are of all pages."""
    some = rates[rates > 0]
    if not len(some):
        return []
    # rates at an edge must not fall to either side by rounding
    place = np.floor(np.log10(some) * _PER_DECADE + 1e-9).astype(np.int64)
    first = int(place.min())
    counts = np.bincount(place - first)
    edges = 10.0 ** ((first + np.arange(len(counts) + 1)) / _PER_DECADE)
    return [
        RateBin(float(edges[k]), float(edges[k + 1]), int(n), int(n) / len(rates))
        for k, n in enumerate(counts)
    ]


# ----------------------------------------------------------------------------------------- the page


def draw_rates(sheet: Sheet, rates: Rates) -> None:
    """The section on change rates."""
    sheet.heading("Change rates")
    if rates.mean is not None:
        sheet.words(
            f"{rates.pages:,} pages were watched for {rates.page_days:,.0f} page-days. They change "
            f"{rates.mean:.4g} times a day on average; {percent(rates.never)} never change.",
        )
        if rates.top_1_percent is not None:
            sheet.words(
                f"The 1 % of pages that change most make {percent(rates.top_1_percent)} of all "
                f"changes, the top 10 % make {percent(rates.top_10_percent)}."
            )
        if rates.undone is not None:
            words = "of all changes bring back the value before the last one within two days"
            sheet.words(f"{percent(rates.undone)} {words} (flash sales).")
        names = [f"{100 * float(q):.0f} %" for q in rates.quantiles]
        figures = ("changes a day, at most", *rates.quantiles.values())
        sheet.table(("share of the pages", *names), [figures])
    if rates.bins:
        never = f"Not drawn: the {percent(rates.never)} of pages that never change."
        sheet.chart(_bars_of(rates), never if rates.never else "")
    sheet.remarks(rates.notes)


def _bars_of(rates: Rates) -> Any:
    """Histogram of the rates of pages that change, on a log axis."""
    scale, axis = {**kit.LOG, "nice": False}, kit.log_axis((-7, 4), (1, 2, 5))
    chart = kit.plot(
        rates.bins,
        x=kit.by("low:Q", title="changes per page and day (log scale)", scale=scale, axis=axis),
        x2="high:Q",
        y=kit.by("share:Q", title="share of all pages", axis={"format": PERCENT}),
        y2={"datum": 0},
        tooltip=[
            kit.tip("low", ".3~g", "changes a day from"),
            kit.tip("high", ".3~g", "to below"),
            kit.tip("pages", ","),
            kit.tip("share", ".3~%", "of all pages"),
        ],
    )
    bars = chart.mark_bar(color=kit.BLUE, stroke="#fff", strokeWidth=1)
    return bars.properties(width=kit.WIDTH, height=240)
