"""Demand: how often readers want each page, from clicks and impressions as they are counted."""

from __future__ import annotations

import numpy as np

from salticus.types import NEVER, Counts, Floats, Instant, Ints, Times, days_between, distinct
from salticus.types.state import State, places

_CLICKING = 0.3  # shape of the Gamma of clicks an impression; a standard deviation of 1.8 means
_SHOWING = 0.1  # shape of the Gamma of impressions; most pages are hardly ever shown
_FEW, _TIMES, _OFTEN = 10.0, 100.0, 0.99  # counts beyond 100 × the 99th percentile are cut
_SHORTEST = 1 / 24  # days that a page counts as watched at least

UNSAID = 1.0
"""The demand of a page of which nobody has said anything."""


class Demand:
    """Clicks and impressions a day of each page; both fade over `memory_days`.

    A page's clicks are Poisson with a Gamma rate. Its prior mean is what its impressions make one
    expect (they come many times as often as clicks), or the mean of all pages if none are counted;
    a demand given by hand takes its place. So a page that nobody clicked has little demand, not
    none: (c + a)/(T + a/m) with c clicks in T days and a prior of shape a and mean m.

    Until anything is counted, demand is what was given by hand, else 1 for every page. If only
    impressions are counted, they are the demand.

    No single page can run away with the budget: a count that exceeds 100 times the 99th percentile
    of all that are not zero (10 at least) counts as that (winsorised), before anything else is
    worked out.

    >>> demand = Demand()
    >>> day = np.array(["2026-01-01"], dtype="M8[us]")
    >>> demand.learn(Counts(np.array([7]), day, np.array([30]), np.array([0]), 1))
    >>> added = np.repeat(day, 2)
    >>> later = day[0] + np.timedelta64(10, "D")
    >>> clicks, _ = demand.rates(np.array([7, 8]), added, np.ones(2), later)
    >>> clicks.round(2)
    array([2.49, 0.03])
    """

    def __init__(self, *, memory_days: float = 30.0) -> None:
        self.memory_days = memory_days
        self.mark_ = 0  # number of the last row that was counted
        self._ids: Ints = np.empty(0, dtype=np.int64)
        self._sums: Floats = np.empty((2, 0))  # clicks and impressions, faded until `_until`
        self._until: Instant = NEVER
        self._since: Instant = NEVER

    def learn(self, counts: Counts) -> None:
        """Take what was counted since the last time."""
        self.mark_ = max(self.mark_, counts.last)
        if not len(counts):
            return
        first, last = counts.at.min(), counts.at.max()
        self._since = first if np.isnat(self._since) else min(self._since, first)
        self._fade(last if np.isnat(self._until) else max(self._until, last))
        rows = self._rows(counts.page)
        kept = np.exp(-days_between(counts.at, self._until) / self.memory_days)
        for sums, more in zip(self._sums, (counts.clicks, counts.impressions), strict=True):
            np.add.at(sums, rows, more * kept)

    def rates(self, ids: Ints, added: Times, given: Floats, now: Instant) -> tuple[Floats, Floats]:
        """Clicks and impressions a day of pages (ids ascending) that were added then.

        `given` is the demand by hand, 1 where nothing was given.
        """
        clicks, shown = (_cut(sums) for sums in self.counted(ids, now))
        if not clicks.any() and not shown.any():
            return given.copy(), np.zeros(len(ids))
        days = self._watched(added, now)
        showing = _posterior(shown, days, shown.sum() / days.sum(), _SHOWING)
        if not clicks.any():
            return showing, showing
        usual = clicks.sum() / days.sum()
        if shown.any():
            usual = showing * (clicks.sum() / shown.sum())
        usual = np.where(given != UNSAID, given, usual)
        return _posterior(clicks, days, usual, _CLICKING), showing

    def counted(self, ids: Ints, now: Instant) -> Floats:
        """Clicks and impressions of these pages (ids ascending), faded until now."""
        rows, here = places(ids, self._ids)  # most pages have none
        counted = np.zeros((2, len(ids)))
        if here.any():
            aged = max(0.0, float(days_between(self._until, now))) / self.memory_days
            counted[:, rows[here]] = self._sums[:, here] * np.exp(-aged)
        return counted

    def _watched(self, added: Times, now: Instant) -> Floats:
        """Days in which the clicks of each page were counted, faded likewise."""
        days = days_between(np.maximum(added, self._since), now)
        return self.memory_days * -np.expm1(-np.maximum(days, _SHORTEST) / self.memory_days)

    def _fade(self, until: Instant) -> None:
        if not np.isnat(self._until) and until > self._until:
            self._sums *= np.exp(-float(days_between(self._until, until)) / self.memory_days)
        self._until = until

    def _rows(self, pages: Ints) -> Ints:
        """Where each page is kept; pages not met before get a place."""
        every = distinct(np.append(self._ids, pages))
        if len(every) > len(self._ids):
            sums = np.zeros((2, len(every)))
            sums[:, np.searchsorted(every, self._ids)] = self._sums
            self._ids, self._sums = every, sums
        return np.searchsorted(self._ids, pages)

    def state(self) -> State:
        times = np.array([self._since, self._until])
        return {"ids": self._ids, "sums": self._sums, "times": times, "mark": np.array(self.mark_)}

    def restore(self, state: State) -> None:
        self._ids, self._sums = state["ids"].copy(), state["sums"].copy()
        self._since, self._until = state["times"].astype("M8[us]")
        self.mark_ = int(state["mark"])


def _cut(counts: Floats) -> Floats:
    """The counts, winsorised.

    >>> _cut(np.array([0.0, 1.0, 2.0, 5e6])).max() < 5e6
    np.True_
    """
    some = counts[counts > 0]
    if not len(some):
        return counts
    usual = np.quantile(some, _OFTEN, method="lower")
    return np.minimum(counts, max(_FEW, _TIMES * float(usual)))


def _posterior(count: Floats, days: Floats, mean: Floats | float, shape: float) -> Floats:
    """Mean of a Gamma rate whose prior has that mean and shape, after `count` in so many days."""
    return np.asarray((count + shape) / (days + shape / np.maximum(mean, 1e-12)))
