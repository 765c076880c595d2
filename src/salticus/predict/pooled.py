"""The Gamma filter with priors pooled over pages of the same kind, and a memory that fades."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime

import numpy as np

from salticus.predict.base import Evidence
from salticus.predict.gamma import GammaSurvival, posterior
from salticus.predict.roster import Roster
from salticus.predict.spans import Spans, answered
from salticus.types import Floats, Ints, Outcomes, Pages, Survival, distinct, instant
from salticus.types.dates import DAY_US
from salticus.types.state import State, places

_UNMET = np.int32(-2)
_PAGES = 10.0  # pages that it takes to believe a group more than what it is part of
_CHANGES = 0.5  # what a group is given of its parent's, so that no mean is 0
_SHAPES = (0.05, 5.0)


class Pooled:
    """Each page's change rate as a Gamma posterior whose prior is learnt from pages like it.

    As `Gamma`, with two differences. The prior is that of the page's category at its merchant,
    drawn to the merchant's, drawn to that of all pages (empirical Bayes): a page without history
    starts where its kind stands. And evidence fades over `memory_days`, from one visit to the next,
    so that a page that has changed its ways is found out. Priors are worked out again once a day.

    Cost: linear in the visits of a tick; once a day linear in pages.
    """

    def __init__(self, *, memory_days: float = 50.0) -> None:
        self.memory_days = memory_days
        self.pages_ = Roster(
            a=0.5, b=2.0, a0=0.5, b0=2.0, changes=0.0, days=0.0, merchant=_UNMET, category=_UNMET
        )
        self.fitted_: float = -np.inf  # when the priors were worked out, days since 1970
        self._groups = {"merchant": 0, "category": 0}  # how many there are

    def meet(self, pages: Pages, now: datetime) -> None:
        """Have a row with its groups for each page; once a day, work the priors out again."""
        rows = self.pages_.rows(pages.ids)
        if (self.pages_["merchant"][rows] == _UNMET).any():
            category = pages.category.astype(np.int64)
            for name, codes in (("merchant", pages.merchant), ("category", category)):
                self.pages_[name][rows] = self._numbers(name, codes, self.pages_[name][rows])
            self.fitted_ = -np.inf
        day = float(instant(now).astype(np.int64)) / DAY_US
        if day >= self.fitted_ + 1.0:
            self._fit()
            self.fitted_ = day

    def survival(self, pages: Pages, now: datetime) -> Survival:
        rows = self._known(pages.ids)
        if rows is None:
            other = deepcopy(self)  # to be asked about strangers must not change us
            other.meet(pages, now)
            return other.survival(pages, now)
        return self._curves(rows, pages, now)

    def _known(self, ids: Ints) -> Ints | slice | None:
        """The rows of these pages; None if some of them, or their groups, were never met."""
        rows: Ints | slice = slice(None)
        if not self.pages_.holds(ids):
            rows, met = places(self.pages_.ids, ids)
            if not met.all():
                return None
        return None if (self.pages_["merchant"][rows] == _UNMET).any() else rows

    def rates(self, ids: Ints) -> Floats:
        """Mean change rate of each page, changes a day."""
        rows = self.pages_.rows(ids)
        return np.asarray(self.pages_["a"][rows] / self.pages_["b"][rows])

    def evidence(self, ids: Ints) -> Evidence:
        rows = self.pages_.rows(ids)
        return Evidence(*(self.pages_[name][rows] for name in ("a", "b", "a0", "b0")))

    def learn(self, outcomes: Outcomes) -> None:
        for spans in answered(outcomes).rounds():
            self._update(self.pages_.rows(spans.page), spans)

    def _curves(self, rows: Ints | slice, pages: Pages, now: datetime) -> Survival:
        return GammaSurvival(self.pages_["a"][rows], self.pages_["b"][rows])

    def _own_time(self, rows: Ints, spans: Spans) -> Floats:
        """The length of the spans, days, on the clock by which the page changes evenly."""
        return spans.days

    def _update(self, rows: Ints, spans: Spans) -> None:
        """Posterior after the spans (ALGORITHMS §5), older evidence faded by e^(−days/memory).

        The days of a span without change fade while they pass, so that one long span says the same
        as the short ones that it is made of (in own time, where it runs evenly).
        """
        page, own = self.pages_, self._own_time(rows, spans)
        kept = np.exp(-spans.days / self.memory_days)
        lasting = own * (1.0 - kept) * self.memory_days / spans.days
        told = np.where(spans.changed, own, lasting)
        a, b = posterior(*self._faded(rows, kept), told, spans.changed)
        page["a"][rows], page["b"][rows] = np.maximum(a, 1e-6), np.maximum(b, 1e-6)
        events = np.where(spans.changed, at_least_one(page["a"][rows] / page["b"][rows] * own), 0)
        for name, more in (("changes", events), ("days", told)):
            page[name][rows] = kept * page[name][rows] + more
        self._note(rows, spans, events)

    def _faded(self, rows: Ints, kept: Floats) -> tuple[Floats, Floats]:
        a, b, a0, b0 = (self.pages_[name][rows] for name in ("a", "b", "a0", "b0"))
        return a0 + kept * (a - a0), np.maximum(b0 + kept * (b - b0), 1e-3 * b0)

    def _note(self, rows: Ints, spans: Spans, events: Floats) -> None:
        """For subclasses that learn more from the same spans."""

    def _numbers(self, name: str, codes: Ints, before: Floats) -> Floats:
        """Groups by numbers of our own: those of the pages may be others after a restart."""
        ours = np.full(int(codes.max(initial=-1)) + 2, -1.0)
        fresh = distinct(codes[codes >= 0])
        known = (before >= 0) & (codes >= 0)
        ours[codes[known]] = before[known]
        fresh = fresh[ours[fresh] < 0]
        ours[fresh] = self._groups[name] + np.arange(len(fresh))
        self._groups[name] += len(fresh)
        return ours[codes]

    def _fit(self) -> None:
        """Work the priors out again; what was learnt of each page stays on top of them."""
        page = self.pages_
        groups = (np.maximum(page[name], -1).astype(np.int64) for name in ("merchant", "category"))
        a0, b0 = np.full(len(page), 0.5), np.full(len(page), 2.0)
        if np.any(page["days"] > 0):
            a0, b0 = pooled_priors(page["changes"], page["days"], *groups)
        page.columns["a"] = np.maximum(page["a"] + a0 - page["a0"], 1e-6)
        page.columns["b"] = np.maximum(page["b"] + b0 - page["b0"], 1e-3 * b0)
        page.columns["a0"], page.columns["b0"] = a0, b0

    def state(self) -> State:
        groups = np.array(list(self._groups.values()))
        return {**self.pages_.state(), "groups": groups, "fitted": np.array(self.fitted_)}

    def restore(self, state: State) -> None:
        self.pages_.restore(state)
        self._groups = dict(zip(self._groups, state["groups"].tolist(), strict=True))
        self.fitted_ = float(state["fitted"])


def at_least_one(expected: Floats) -> Floats:
    """How many changes a span holds on average that holds one, if so many were expected."""
    x = np.maximum(expected, 1e-9)
    return np.asarray(x / -np.expm1(-x))


def pooled_priors(
    changes: Floats, days: Floats, merchant: Ints, category: Ints, *, rate: float = 0.25
) -> tuple[Floats, Floats]:
    """A Gamma(a, b) for every page: its category at its merchant, drawn to the merchant, drawn to
    all (empirical Bayes, ALGORITHMS §5).

    `changes` are those supposed to have happened in the `days` watched. Mean and spread of the
    rates by moments: with X changes in T days of a page E[X]/T = m and E[X(X − 1)]/T² = m² + v, so
    that a = m²/v and b = m/v. -1 is a group of its own kind: unknown. All together are drawn to the
    given rate. Cost: linear.
    """
    n = len(merchant)
    everything = np.zeros(n, dtype=np.int64)
    cell = (merchant + 1) * (int(category.max(initial=-1)) + 2) + category + 1
    mean, shape = np.full(n, rate), np.full(n, 0.5)
    for group in (everything, merchant + 1, cell):
        mean, shape = _draw((changes, days), group, mean, shape)
    return shape, shape / mean


def _draw(
    known: tuple[Floats, Floats], group: Ints, rate: Floats, shape: Floats
) -> tuple[Floats, Floats]:
    """Mean and shape of each page's group, drawn to those of its parent by the pages watched."""
    own_changes, own_days = known
    pairs_of = np.maximum(own_changes * (own_changes - 1.0), 0.0)
    number, at = np.unique(group, return_inverse=True)
    k = len(number)
    pages, changes, days, pairs, squares = (
        np.bincount(at, weights=weight, minlength=k)
        for weight in (own_days > 0, own_changes, own_days, pairs_of, own_days**2)
    )
    trust = (pages / (pages + _PAGES))[at]
    mean = changes / np.maximum(days, 1e-12)
    spread = np.maximum(pairs / np.maximum(squares, 1e-12) - mean**2, 1e-9 * mean**2 + 1e-300)
    found = np.clip(mean**2 / spread, *_SHAPES)[at]
    own = np.maximum((changes[at] + _CHANGES) / (days[at] + _CHANGES / rate), 1e-9)
    return _mixed(own, rate, trust), _mixed(found, shape, trust)


def _mixed(own: Floats, parent: Floats, trust: Floats) -> Floats:
    """Between the two on a scale of ratios, as rates of pages are."""
    return np.exp(trust * np.log(own) + (1.0 - trust) * np.log(parent))
