"""How often offers change, and how often they are clicked and shown: shares of hours and days."""

from __future__ import annotations

import numpy as np

from salticus.features.history import ChangeHistory
from salticus.lab.studies.calibration.market import CLICK, UNIFORM, MarketHistory
from salticus.types import Bools, Ints
from salticus.types.dates import HOUR_US

WEEK = 7  # days


def change_within(history: ChangeHistory, hours: int, low: int, high: int) -> float:
    """Probability that a page changes in the `hours` from a prediction time on.

    Exact over all prediction times: every whole hour in [low, high) of every page's life. A change
    and a change back are two changes, hence a positive.
    """
    page, hour = history.page, history.hour
    first = np.maximum(hour - hours + 1, np.maximum(history.born[page], low))
    same = np.diff(page, prepend=-1) == 0
    before = np.where(same, np.roll(hour, 1), -1)
    first = np.maximum(first, before + 1)  # earlier times are counted for the change before
    last = np.minimum(np.minimum(hour, history.gone[page] - 1), high - 1)
    positive = np.maximum(0, last - first + 1).sum()
    return float(positive / lived(history, low, high).sum())


def lived(history: ChangeHistory, low: int, high: int) -> Ints:
    """Hours of each page's life in [low, high)."""
    last: Ints = np.minimum(history.gone, high)
    return np.maximum(0, last - np.maximum(history.born, low))


def daily_shares(market: MarketHistory) -> dict[str, float]:
    """Shares of offer-days with a change, a click, an impression, by stratum.

    An offer-day is a whole UTC day at whose start the offer lives (Han 2020, Fig. 2).
    """
    uniform, clicked = market.stratum(UNIFORM), market.stratum(CLICK)
    change = _days(market, market.full.page, market.full.hour // 24)
    click, shown = _demand_days(market, "clicks"), _demand_days(market, "impressions")
    return {
        "change_1d": _share(market, change, uniform),
        "click_1d": _share(market, click, uniform),
        "impression_1d": _share(market, shown, uniform),
        "click_1d_clicked": _share(market, click, clicked),
        "impression_1d_clicked": _share(market, shown, clicked),
    }


def returning(market: MarketHistory) -> float:
    """Share of the offers clicked on a day that were also clicked in the week before it.

    One count an offer and day, over both strata, from the second week on.
    """
    page, day = np.divmod(_demand_days(market, "clicks"), _stride(market))
    gap = np.diff(day, prepend=-WEEK - 1)
    again = (np.diff(page, prepend=-1) == 0) & (gap <= WEEK)
    late = day >= -(-market.start // 24) + WEEK
    return float(again[late].mean()) if late.any() else float("nan")


def _demand_days(market: MarketHistory, column: str) -> Ints:
    import polars as pl

    rows = market.pages.lazy().select("page_id").with_row_index("row")
    found = (
        market.log.scan("demand", column)
        .filter(pl.col(column) > 0)
        .join(rows, on="page_id")
        .select("row", hour=pl.col("at").dt.epoch("us") // HOUR_US)
        .collect()
    )
    row, hour = (found[name].to_numpy().astype(np.int64) for name in ("row", "hour"))
    return _days(market, row, hour // 24)


def _days(market: MarketHistory, page: Ints, day: Ints) -> Ints:
    """Distinct (page, day) as one number each, of the whole days at whose start the page lives."""
    first, last = _whole_days(market)
    midnight = day * 24
    lives = (market.full.born[page] <= midnight) & (midnight < market.full.gone[page])
    fine = lives & (first <= day) & (day < last)
    return np.unique(page[fine] * _stride(market) + day[fine])


def _share(market: MarketHistory, days: Ints, chosen: Bools) -> float:
    first, last = _whole_days(market)
    born = np.maximum(-(-market.full.born // 24), first)
    gone = np.minimum(-(-market.full.gone // 24), last)
    total = int(np.maximum(0, gone - born)[chosen].sum())
    hit = int(chosen[days // _stride(market)].sum())
    return hit / total if total else float("nan")


def _whole_days(market: MarketHistory) -> tuple[int, int]:
    return -(-market.start // 24), market.end // 24


def _stride(market: MarketHistory) -> int:
    return market.end // 24 + 2
