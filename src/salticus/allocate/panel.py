"""The panel: a sample of pages that is visited often, on a budget of its own.

After Han et al. 2019, §3.1: half drawn evenly from all pages, half by clicks, all watched at short
intervals, so that what happens between the crawl's own visits is known for some pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from salticus.allocate.capacity import fitting, less
from salticus.allocate.share import in_proportion
from salticus.types import Draw, Grant, Member, Outcomes, Pages, Purpose, Tick
from salticus.types.arrays import Bools, Floats, Ints, Times, instant
from salticus.types.coins import coins
from salticus.types.state import State, later, places

_OTHERS = 31 << 32  # others flip coins of the same seed and page


@dataclass(frozen=True, slots=True)
class Terms:
    """How often the pages of a panel are visited (days), from when until when (µs)."""

    every: float
    since: int
    until: int | None = None


def choose(pages: Pages, count: int, terms: Terms, *, seed: int = 0) -> list[Member]:
    """Draw a panel of `count` pages: half evenly, half by demand, from small and large hosts.

    In the uniform strata each host size gets its share of the pages. Those drawn by demand have a
    chance in proportion to it (sequential Poisson sampling, Ohlsson 1998). A page's weight is one
    over its chance. No page is in two strata.
    """
    names = np.where(_large(pages.host), "large hosts", "small hosts")
    free = np.ones(len(pages), dtype=np.bool_)
    found: list[Member] = []
    strata = (("uniform", np.ones(len(pages))), ("click", pages.demand))
    for number, (kind, weight) in enumerate(strata):
        coin = coins(seed + _OTHERS, pages.ids, number)
        half = min(count // 2 if kind == "click" else -(-count // 2), int(free.sum()))
        rows, chance = _drawn(np.where(free, weight, 0.0), coin, half)
        free[rows] = False
        for row, p in zip(rows.tolist(), chance.tolist(), strict=True):
            page, stratum = int(pages.ids[row]), f"{kind}, {names[row]}"
            found.append(Member(page, stratum, 1.0 / p, terms.every, terms.since, terms.until))
    return sorted(found, key=lambda member: member.page)


def _large(host: Ints) -> Bools:
    """Pages of hosts that have more pages than the host of the median page, or as many."""
    size = np.bincount(host)[host]
    return np.asarray(size >= np.median(size)) if len(host) else np.zeros(0, dtype=np.bool_)


def _drawn(weight: Floats, coin: Floats, count: int) -> tuple[Ints, Floats]:
    """So many rows in proportion to weight, and the chance of each."""
    count = min(count, int(np.count_nonzero(weight)))
    if not count:
        return np.empty(0, dtype=np.int64), np.empty(0)
    chance = in_proportion(weight, count)
    order = np.argsort(coin / np.maximum(chance, 1e-300), kind="stable")[:count]
    return order, chance[order]


class PanelSource(Protocol):
    """Where the panel is kept; every store is one."""

    async def panel(self) -> list[Member]: ...


class Panel:
    """Visits its pages at their intervals, beside the crawl and unknown to it.

    To policy and predictor a page of the panel was last visited by the crawl's own last visit, so
    that these go on as if there were no panel; what the panel finds still teaches predictors.
    """

    purpose = Purpose.PANEL

    def __init__(self, store: PanelSource | None = None) -> None:
        self.store = store
        self.members: Sequence[Member] = ()
        self.pages_: Ints = np.empty(0, dtype=np.int64)
        self.last_ = np.empty(0, dtype="M8[us]")  # the crawl's own last visits
        self.answer_ = np.empty(0, dtype="M8[us]")  # and those of them that were answered
        self._due: Times = np.empty(0, dtype="M8[us]")  # of `pages_`

    async def refresh(self) -> None:
        """Read who belongs to the panel now."""
        self.members = () if self.store is None else await self.store.panel()

    def forked(self) -> Panel:
        """The same panel, to look ahead with."""
        other = copy(self)
        other.last_, other.answer_ = self.last_.copy(), self.answer_.copy()
        return other

    def veil(self, pages: Pages) -> Pages:
        """The pages of a tick as they would be without the panel; note when its own are due."""
        now = int(instant(pages.tick.start).astype(np.int64))
        members = [m for m in self.members if m.since <= now and (m.until is None or now < m.until)]
        ids = np.array([member.page for member in members], dtype=np.int64)
        every = np.array([member.every for member in members], dtype=np.float64)
        rows, here = places(pages.ids, ids)
        rows, every = rows[here], every[here]
        self._meet(pages, rows)
        self._due = later(pages.last_visit[rows], every)
        if not len(rows):
            return pages
        last, answer = pages.last_visit.copy(), pages.last_answer.copy()
        last[rows], answer[rows] = self.last_, self.answer_
        return replace(pages, last_visit=last, last_answer=answer)

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        rows = pages.rows(self.pages_)
        soon = ~(self._due >= instant(tick.end)) & pages.open[rows]
        cost = int(pages.cost[rows[soon]].sum())  # it has a budget of its own
        chosen = fitting(less(pages, grant.taken), rows[soon], cost, rows[:0])
        return replace(Draw.sure(chosen), due=self._due[np.isin(rows, chosen)])

    def _meet(self, pages: Pages, rows: Ints) -> None:
        """Keep the last own visits of exactly these pages; of new ones what is known."""
        known, old = places(self.pages_, pages.ids[rows])
        last, answer = pages.last_visit[rows].copy(), pages.last_answer[rows].copy()
        last[old], answer[old] = self.last_[known[old]], self.answer_[known[old]]
        self.pages_, self.last_, self.answer_ = pages.ids[rows], last, answer

    def learn(self, outcomes: Outcomes) -> None:
        """The crawl's own visits to pages of the panel."""
        place, here = places(self.pages_, outcomes.page)
        own = here & outcomes.made & (outcomes.purpose != Purpose.PANEL)
        for column, some in ((self.last_, own), (self.answer_, own & outcomes.answered)):
            at = outcomes.at[some].astype("M8[us]").view(np.int64)
            np.maximum.at(column.view(np.int64), place[some], at)

    def state(self) -> State:
        return {"pages": self.pages_, "last": self.last_, "answer": self.answer_}

    def restore(self, state: State) -> None:
        self.pages_, self.last_ = state["pages"], state["last"].copy()
        self.answer_ = state.get("answer", state["last"]).copy()  # older states have none
