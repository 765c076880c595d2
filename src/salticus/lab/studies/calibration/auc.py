"""How well a single frequency feature foretells a change (Han 2019, Table 2, first eight rows)."""

from __future__ import annotations

import numpy as np

from salticus.features.events import EventKind, Events, make_events
from salticus.features.groups import Groups
from salticus.features.names import WINDOWS
from salticus.features.past import FeatureStream
from salticus.features.truths import NEVER_GONE
from salticus.lab.studies.calibration.market import ChangeHistory, MarketHistory
from salticus.models.linear import HAN2019
from salticus.models.training.metrics import subset_aucs
from salticus.types import Bools, Floats, Ints

HORIZON = 6  # hours


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
    past = FeatureStream(_groups(history), full=True, demand=False)
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


def _groups(history: ChangeHistory) -> Groups:
    """The categories alone."""
    none = np.full(len(history), -1, dtype=np.int64)
    return Groups(history.group, none, none, none, none, none, (), ())


def _events(history: ChangeHistory) -> Events:
    left = np.flatnonzero(history.gone < NEVER_GONE)
    born = make_events(EventKind.BORN, history.born, np.arange(len(history)))
    moved = make_events(EventKind.CHANGE, history.hour, history.page)
    return born.join(moved).join(make_events(EventKind.GONE, history.gone[left], left)).ordered()


def prediction_points(market: MarketHistory, points: int, *, seed: int) -> tuple[Ints, Ints]:
    """So many (page, hour) in order, uniform over all pages' hours in the test window."""
    low = np.maximum(market.full.born + WINDOWS["month"], window_start(market))
    high = np.minimum(market.full.gone, market.end - HORIZON)
    hours = np.cumsum(np.maximum(0, high - low))
    drawn = np.sort(np.random.default_rng(seed).integers(0, hours[-1], points))
    page = np.searchsorted(hours, drawn, side="right")
    return page, high[page] - (hours[page] - drawn)


def window_start(market: MarketHistory) -> int:
    """The first hour of the test window: the last 30 days, or what 30 days of history leave."""
    return max(market.end - WINDOWS["month"], market.start + WINDOWS["month"])


def changes_within(history: ChangeHistory, page: Ints, hour: Ints, horizon: int = HORIZON) -> Bools:
    """Whether each page changes in the `horizon` hours from each hour on."""
    span = int(max(history.hour.max(initial=0), hour.max(initial=0))) + horizon + 1
    at = history.page * span + history.hour
    start = page * span + hour
    return np.searchsorted(at, start + horizon) > np.searchsorted(at, start)
