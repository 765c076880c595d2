"""What a log shows of the published statistics: single features, shares, requests, patterns."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.features.events import EventKind, Events, make_events
from salticus.features.groups import Groups
from salticus.features.names import WINDOWS
from salticus.features.past import FeatureStream
from salticus.features.truths import NEVER_GONE, rowed
from salticus.lab.analyze.groups import GroupShares, groups_of
from salticus.lab.analyze.intervals import Intervals, intervals_of
from salticus.lab.analyze.pages import known_pages
from salticus.lab.analyze.shares import ChangeShare
from salticus.lab.analyze.sources import values_record
from salticus.lab.analyze.week import week_of
from salticus.lab.simulate.clicking import WINDOW, by_window, read_requests, true_values
from salticus.lab.studies.calibration.market import CLICK, UNIFORM, ChangeHistory, MarketHistory
from salticus.lab.studies.calibration.published import Measured
from salticus.models.linear import HAN2019
from salticus.models.training.metrics import subset_aucs
from salticus.types import Bools, Floats, Ints, moment
from salticus.types.coins import coins
from salticus.types.dates import HOUR_US
from salticus.types.state import rank_within

HORIZON = 6  # hours
DAYS = 45  # 1 August to the middle of September
SETTLED = 5  # days; "the impact from initialization fades away" on 5 August
WEEK = 7  # days


# ---------------------------------------------------------------------------------- single features


def feature_aucs(
    market: MarketHistory, *, points: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of every feature's AUC over 20 subsets, for both histories.

    Prediction times are uniform over the hours of the last days of the log that follow at least 30
    days of a page's life; the label is a change within 6 h.
    """
    page, hour = prediction_points(market, points, seed=seed)
    positive = changes_within(market.full, page, hour)
    found = {}
    for seen, history in (("partial", market.partial), ("full", market.full)):
        for name, column in frequencies(history, page, hour).items():
            scores = -column if name.endswith("recent") else column
            found[f"auc_{seen}_{name}"] = subset_aucs(scores, positive, seed=seed)
    return found


def frequencies(history: ChangeHistory, page: Ints, hour: Ints) -> dict[str, Floats]:
    """The eight frequencies of Han 2019, Table 1, of pages at hours; 0 where nothing was watched.

    A page without a history counts as unchanged since the start of the log.
    """
    none = np.full(len(history), -1, dtype=np.int64)
    categories = Groups(history.group, none, none, none, none, none, (), ())
    past = FeatureStream(categories, full=True, demand=False)
    past.learn(_events(history))
    order = np.argsort(hour, kind="stable")
    inputs = past.read(page[order], hour[order])
    found = {}
    for name in HAN2019:
        column = np.empty(len(page))
        column[order] = inputs.column(name)
        unknown = hour - history.start if name.endswith("recent") else 0.0
        found[name] = np.where(np.isnan(column), unknown, column)
    return found


def _events(history: ChangeHistory) -> Events:
    left = np.flatnonzero(history.gone < NEVER_GONE)
    born = make_events(EventKind.BORN, history.born, np.arange(len(history)))
    moved = make_events(EventKind.CHANGE, history.hour, history.page)
    return born.join(moved).join(make_events(EventKind.GONE, history.gone[left], left)).ordered()


def prediction_points(market: MarketHistory, points: int, *, seed: int) -> tuple[Ints, Ints]:
    """So many (page, hour) in order, uniform over all pages' hours in the test window."""
    month = WINDOWS["month"]
    window = max(market.end - month, market.start + month)  # the last 30 days, or what is left
    low = np.maximum(market.full.born + month, window)
    high = np.minimum(market.full.gone, market.end - HORIZON)
    hours = np.cumsum(np.maximum(0, high - low))
    drawn = np.sort(np.random.default_rng(seed).integers(0, hours[-1], points))
    page = np.searchsorted(hours, drawn, side="right")
    return page, high[page] - (hours[page] - drawn)


def changes_within(history: ChangeHistory, page: Ints, hour: Ints, horizon: int = HORIZON) -> Bools:
    """Whether each page changes in the `horizon` hours from each hour on."""
    span = int(max(history.hour.max(initial=0), hour.max(initial=0))) + horizon + 1
    at = history.page * span + history.hour
    start = page * span + hour
    return np.searchsorted(at, start + horizon) > np.searchsorted(at, start)


# ------------------------------------------------------------------------- shares of hours and days


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
    some = market.log.scan("demand", column).filter(pl.col(column) > 0)
    hours = pl.col("at").dt.epoch("us") // HOUR_US
    found = rowed(market.pages, some).select("row", hour=hours).collect()
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


# ----------------------------------------------------------------------------------------- requests


def request_lifts(market: MarketHistory, *, seed: int) -> dict[str, float]:
    """Mean freshness gained from sending none to 10 % of requests, and from 10 % to all.

    All copies are in sync 45 days before the end of the log (or in its middle, if it is shorter
    than 90 days); the mean is over windows of 6 h from the sixth day on.
    """
    days = min(DAYS, (market.end - market.start) // 48)
    end = moment(np.datetime64(market.end, "h"))
    start = end - timedelta(days=days)
    settled = min(SETTLED, days // 2) * timedelta(days=1) // WINDOW
    truth = read_truth(market.log)
    page, at = read_requests(market.log, truth, start, end)
    true, first = true_values(truth, page, at, start)
    number = truth.ids[page] * (1 << 24) + rank_within(page)
    fails = coins(seed, number, 1) < truth.failure[page]

    def freshness(share: float) -> float:
        brought = (coins(seed, number, 0) < share) & ~fails
        fresh = found_fresh(page, true, first[page], brought)
        windows = by_window(at, fresh, start, end)[settled:]
        return float(windows[np.isfinite(windows)].mean())

    none, some, every = map(freshness, (0.0, 0.1, 1.0))
    return {"lift_first": some - none, "lift_rest": every - some}


def found_fresh(page: Ints, true: Ints, first: Ints, brought: Bools) -> Bools:
    """Whether each request found a fresh copy (Han 2019, eq. 2), if these brought an answer.

    Requests are by page and time; `true` is the value at each, `first` the one that its page's copy
    began with. A copy is what the last request brought, so a running maximum tells it. Laws: what
    was sent later does not matter; with nothing sent the copies stay what they were.
    """
    number = np.arange(len(page))
    before = np.maximum.accumulate(np.concatenate([[-1], np.where(brought, number, -1)]))[:-1]
    opening = np.searchsorted(page, page)  # the page's first request
    held = np.where(before >= opening, true[before], first)
    return np.equal(held, true)


# ----------------------------------------------------------------------------------------- patterns


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
