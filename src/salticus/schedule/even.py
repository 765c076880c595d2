"""Even spacing: a rate becomes a regular interval."""

from __future__ import annotations

import math

import numpy as np

from salticus.types import Bools, Draw, Floats, Ints, Outcomes, Pages, Purpose, Tick
from salticus.types.coins import coins
from salticus.types.state import Keyed, State, covered, rank_within


class Even:
    """Every page saves up its expected visits; those with the most credit are visited.

    Visits that follow a rate at even intervals keep a page fresher than coins of the same rate:
    (ρ/Δ)(1 − e^(−Δ/ρ)) against ρ/(ρ + Δ) (Cho and Garcia-Molina 2003). They are deterministic, so
    their propensity is 1 and must not be used as a weight. A page of which a whole visit is
    expected in this tick gets it. A page never visited starts with a whole visit of credit and so
    comes first; a hash of (seed, page) breaks the step of equals.

    >>> from salticus.testing import a_tick, blank_pages
    >>> even, pages = Even(seed=1), blank_pages(4)
    >>> first = even.draw(pages, np.full(4, 0.5), 2, a_tick())
    >>> even.keep(pages, first)
    >>> second = even.draw(pages, np.full(4, 0.5), 2, a_tick(1))
    >>> sorted([*first.rows.tolist(), *second.rows.tolist()])
    [0, 1, 2, 3]
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.credit_ = Keyed()
        self._cut = -math.inf  # the lowest credit that was visited in the last tick

    def draw(self, pages: Pages, expected: Floats, visits: int, tick: Tick) -> Draw:
        score = self._credit(pages)
        score += expected
        score[expected >= 1.0 - 1e-9] += 1e9  # those of which a whole visit is expected come first
        total = float(expected.sum())
        wanted = min(visits, math.ceil(total - 1e-9))
        near = self._cut - total / max(1, len(pages))
        rows = paid(score, highest(score, expected > 0, wanted, pages, near=near), visits, pages)
        return Draw(rows, np.ones(len(rows)), expected=expected)

    def keep(self, pages: Pages, draw: Draw) -> None:
        """All pages have saved up what was expected of them, and those drawn have spent a visit."""
        credit = self._credit(pages)
        credit += draw.expected
        self._cut = float(credit[draw.rows].min(initial=math.inf))
        credit[draw.rows] -= 1.0
        self.credit_.put(pages.ids, credit)

    def _credit(self, pages: Pages) -> Floats:
        """What each page has saved up before this tick."""
        if self.credit_.holds(pages.ids):
            return self.credit_.values.copy()
        start = coins(self.seed, pages.ids, 0) + np.isnat(pages.last_visit)
        return self.credit_.get(pages.ids, start)

    def learn(self, outcomes: Outcomes) -> None:
        """A dropped visit gets its credit back, if it was paid for with credit."""
        if not outcomes.made.all():
            paid_back = ~outcomes.made & (outcomes.purpose == Purpose.POLICY)
            rows, known = self.credit_.rows(outcomes.page[paid_back])
            np.add.at(self.credit_.values, rows[known], 1.0)

    def state(self) -> State:
        return {"ids": self.credit_.ids, "credit": self.credit_.values}

    def restore(self, state: State) -> None:
        self.credit_.put(state["ids"], state["credit"])


def highest(
    score: Floats, allowed: Bools, visits: int, pages: Pages, *, near: float = -math.inf
) -> Ints:
    """The `visits` allowed rows with the highest score that their hosts have room for.

    Linear in the number of pages as long as no host is full. `near` is a guess of a score that
    enough rows reach: if it is right, only they are put in order.
    """
    rows = np.flatnonzero(allowed & (score >= near))
    if len(rows) < visits:
        rows = np.flatnonzero(allowed)
    room = np.ceil(pages.capacity)
    top = rows if len(rows) <= visits else rows[_top(score[rows], visits)]
    if not np.any(np.bincount(pages.host[top], minlength=len(room)) > room):
        return top
    rows = np.flatnonzero(allowed)
    order = rows[np.argsort(-score[rows], kind="stable")]
    fits = rank_within(pages.host[order]) < room[pages.host[order]]
    return order[fits][:visits]


def paid(score: Floats, rows: Ints, visits: int, pages: Pages) -> Ints:
    """Those of the rows with the highest score whose cost `visits` cover together."""
    cost = pages.cost[rows]
    if float(cost.sum()) <= visits:
        return rows
    order = np.argsort(-score[rows], kind="stable")
    return rows[order[: covered(cost[order], visits)]]


def _top(score: Floats, n: int) -> Ints:
    if n <= 0:
        return np.empty(0, dtype=np.int64)
    return np.argpartition(score, len(score) - n)[len(score) - n :]
