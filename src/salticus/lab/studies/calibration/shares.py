"""How often offers change, and how often they are clicked and shown: shares of hours and days."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.lab.analyze.groups import GroupShares, groups_of
from salticus.lab.analyze.intervals import Intervals, intervals_of
from salticus.lab.analyze.pages import known_pages
from salticus.lab.analyze.shares import ChangeShare
from salticus.lab.analyze.sources import values_record
from salticus.lab.analyze.week import week_of
from salticus.lab.simulate.requests import WINDOW, read_requests, replay_uniform
from salticus.lab.studies.calibration.market import CLICK, UNIFORM, ChangeHistory, MarketHistory
from salticus.lab.studies.calibration.published import Measured
from salticus.types import Bools, Floats, Ints, moment
from salticus.types.dates import HOUR_US

DAYS = 45  # 1 August to the middle of September
SETTLED = 5  # days; "the impact from initialization fades away" on 5 August

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


def request_lifts(market: MarketHistory, *, seed: int) -> dict[str, float]:
    """Mean freshness gained from sending none to 10 % of requests, and from 10 % to all.

    All copies are in sync 45 days before the end of the log (or in its middle, if it is shorter
    than 90 days); the mean is over windows of 6 h from the sixth day on.
    """
    days = min(DAYS, (market.end - market.start) // 48)
    end = moment(np.datetime64(market.end, "h"))
    start = end - timedelta(days=days)
    requests = read_requests(market.log, read_truth(market.log), start, end, seed=seed)
    settled = min(SETTLED, days // 2) * timedelta(days=1) // WINDOW
    none, some, every = (
        np.mean([f for f in row["windows"][settled:] if f is not None])
        for row in replay_uniform(requests, (0.0, 0.1, 1.0), start, end)
    )
    return {"lift_first": float(some - none), "lift_rest": float(every - some)}


def patterns(log: Log) -> dict[str, Measured]:
    """Countries and categories that change most and least, and the shape of day, week, intervals.

    A probability is downloads with a change over downloads, every offer being downloaded every hour
    (Han 2019, Fig. 2); hours and weekdays are the merchant's.
    """
    known = known_pages(log)
    record = values_record(log, known)
    groups = groups_of(record, known)
    week = week_of(record, known)
    hours, weekdays = _probabilities(week.hours), _probabilities(week.weekdays)
    gaps = hourly(intervals_of(record))
    countries, categories = ranked(groups["country"]), ranked(groups["category"])
    return {
        "countries_high": countries[:3],
        "countries_low": countries[:-4:-1],
        "category_first": categories[:1],
        "categories_next": categories[1:3],
        "categories_low": categories[:-3:-1],
        "midnight": over(hours[0], hours[1:].max()),
        "midnight_mean": over(hours[0], hours.mean()),
        "weekday": over(weekdays[:5].mean(), weekdays[5:].mean()),
        "interval_24h": peak(gaps, 24),
        "interval_48h": peak(gaps, 48),
    }


def ranked(groups: GroupShares) -> tuple[str, ...]:
    """The names of the groups, the one that changes most first."""
    rows = sorted(groups.rows, key=lambda share: -(share.probability or 0.0))
    return tuple(share.name for share in rows)


def _probabilities(shares: list[ChangeShare]) -> Floats:
    return np.array([share.probability or 0.0 for share in shares])


def hourly(intervals: Intervals) -> Ints:
    """Changes by whole hours since the change before, from 0 to 59."""
    counts = np.zeros(60, dtype=np.int64)
    for row in intervals.rows:
        if row.hours < len(counts):
            counts[int(row.hours)] += row.changes
    return counts


def peak(counts: Ints, hours: int) -> float:
    """How far a count stands above its four neighbours: over 1 at a local maximum.

    >>> peak(np.array([3, 4, 9, 6, 5]), 2)
    1.5
    """
    around = counts[[hours - 2, hours - 1, hours + 1, hours + 2]]
    return over(counts[hours], around.max())


def over(part: float, whole: float) -> float:
    """A ratio; infinite over nothing, and not a number if both are nothing.

    >>> over(3.0, 2.0), over(3.0, 0.0)
    (1.5, inf)
    """
    if whole:
        return float(part / whole)
    return float("inf") if part else float("nan")
