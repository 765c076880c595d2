"""InstaCrawl in a running crawl: clicks ask one by one, a gate decides, a purse pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np

from salticus.allocate.gate.base import Decisions, Gate
from salticus.allocate.gate.uniform import UniformGate
from salticus.types import (
    Draw,
    Grant,
    Outcomes,
    Pages,
    Plan,
    Purpose,
    Request,
    Tick,
    changing,
    unplanned,
)
from salticus.types.arrays import Bools, Floats, Instant, Ints, Times, days_between, moment
from salticus.types.coins import coins
from salticus.types.state import Remembers, State, part_of, places

_OTHERS = 23 << 32  # planner and spacing flip coins of the same seed


class Insta:
    """Lets clicks on pages that are likely out of date bring a visit at once.

    Of the visits of every tick a `share` is set aside (Han 2019, §6: one budget, two schedulers).
    A click's score is the chance that the copy is out of date and that the page will answer
    (`Pages.outdated`, `Pages.answering`); with a `horizon` it is that of a change within so long
    (Han 2019, §6.1.2). The gate sees all scores in the order in which the clicks come. What is not
    spent by the end of the tick goes back into the budget, and so to the pages that the policy
    prefers.

    Laws: the purse is never overdrawn; restored from its state, and told of the requests that were
    stored since, it decides alike.
    """

    purpose = Purpose.INSTA

    def __init__(
        self,
        gate: Gate | None = None,
        *,
        share: float = 0.0,
        horizon: timedelta | None = None,
        seed: int = 0,
    ) -> None:
        self.gate = UniformGate(share=0.0) if gate is None else gate
        self.share = share
        self.horizon = horizon
        self.seed = seed
        self.number_ = 0  # of the last request
        self.latest_ = 0  # number of the last visit that was sent
        self._purse: Times = np.empty(0, dtype="M8[us]")
        self.pages_: Pages | None = None  # of the tick, as they are by now

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        """Nothing yet: a share of the visits, for clicks that may come."""
        return replace(Draw.sure(np.empty(0, dtype=np.int64)), reserve=self.share)

    def open(self, pages: Pages, purse: Times) -> None:
        """Begin a tick with these pages and visits: when each may start, in order. What readers
        want of pages is not kept: whoever clicks has told."""
        last, answer = pages.last_visit.copy(), pages.last_answer.copy()
        unasked = np.broadcast_to(np.nan, len(pages))
        pages = replace(pages, last_visit=last, last_answer=answer)
        self.pages_ = replace(pages, demand=unasked, impressions=unasked)
        self._purse = purse

    def ask(self, clicked: Ints, now: Instant) -> tuple[list[Request], Plan]:
        """What becomes of clicks on pages, in the order in which they came; the visits to make.

        A click on a page that is not known, or not to be visited, is no request.
        """
        if (pages := self.pages_) is None:  # nothing was planned yet
            no_tick = Tick(0, moment(now), moment(now))
            return [], self._plan(clicked[:0], no_tick, now, np.empty(0))
        rows, known = places(pages.ids, clicked)
        rows, clicked, first = rows[known], clicked[known], self.number_ + 1
        stale = pages.outdated(now, rows)
        stale[np.isnan(stale)] = 1.0  # where nothing is known
        scores = self._scores(pages, rows, stale, now)
        decided, at = self._sent(scores), int(now.astype(np.int64))
        chosen = self._paid(pages, rows, decided.sent, now)
        plan = self._plan(clicked[chosen], pages.tick, now, decided.propensity[chosen])
        plan = replace(plan, chance=stale[chosen])
        visit = dict(zip(chosen.tolist(), plan.visit.tolist(), strict=True))
        columns = zip(clicked, scores, decided.propensity, decided.sent, strict=True)
        return [
            Request(first + k, int(page), at, float(score), float(chance), bool(sent), visit.get(k))
            for k, (page, score, chance, sent) in enumerate(columns)
        ], plan

    def outdated(self, pages: Ints, answered: Times, now: Instant) -> Floats:
        """The chance that copies are out of date which were answered at these times, by the curves
        of this tick; NaN for pages that are not in it."""
        chance = np.where(np.isnat(answered), 1.0, np.nan)
        if self.pages_ is not None:
            rows, known = places(self.pages_.ids, pages)
            here = replace(self.pages_.take(rows[known]), last_answer=answered[known])
            chance[known] = here.outdated(now)
        return chance

    def learn(self, outcomes: Outcomes) -> None:
        """The pages that were visited meanwhile are as new, if they answered."""
        if self.pages_ is not None:
            rows, known = places(self.pages_.ids, outcomes.page)
            made, answered = known & outcomes.made, known & outcomes.answered
            self.pages_.last_visit[rows[made]] = outcomes.at[made]
            self.pages_.last_answer[rows[answered]] = outcomes.at[answered]

    def made(self, visits: Ints) -> None:
        """Visits with these numbers were sent, by whomever; those to come get higher ones."""
        self.latest_ = int(visits.max(initial=self.latest_))

    def heard(self, requests: Sequence[Request]) -> None:
        """These requests were stored after the state was kept."""
        if requests:
            self._sent(np.array([request.score for request in requests]))
            self.number_ = requests[-1].number

    def _scores(self, pages: Pages, rows: Ints, stale: Floats, now: Instant) -> Floats:
        """What clicks on pages are worth to the gate, given how likely their copies are stale."""
        if self.horizon is None:
            return stale * pages.answering(now, rows)
        if pages.survival is None:
            return np.ones(len(rows))
        curve, days = pages.survival.take(rows), self.horizon / timedelta(days=1)
        return changing(curve, pages.last_answer[rows], now, days)

    def _sent(self, scores: Floats) -> Decisions:
        """Ask the gate; the coin of a request is a hash of its number."""
        numbers = np.arange(self.number_ + 1, self.number_ + 1 + len(scores))
        self.number_ += len(scores)
        chances = coins(self.seed + _OTHERS, numbers, 0)
        return self.gate.send(scores, chances)

    def _paid(self, pages: Pages, rows: Ints, sent: Bools, now: Instant) -> Ints:
        """Which of the requests are visits: those for which the purse pays, each page once, if it
        is open and its minimum interval is over."""
        soon = days_between(pages.last_visit[rows], now) < pages.min_interval[rows]
        chosen: dict[int, int] = {}
        for k in np.flatnonzero(sent & pages.open[rows] & ~soon).tolist():
            row = int(rows[k])
            if row not in chosen:
                cost = int(pages.cost[row])
                if len(self._purse) >= cost and self._purse[cost - 1] <= now:
                    self._purse, chosen[row] = self._purse[cost:], k
        return np.array(list(chosen.values()), dtype=np.int64)

    def _plan(self, pages: Ints, tick: Tick, now: Instant, propensity: Floats) -> Plan:
        visits = unplanned(now, len(pages), self.latest_)
        self.latest_ = int(visits.max(initial=self.latest_))
        return Plan(
            visit=visits,
            page=pages,
            due=np.full(len(pages), now),
            purpose=np.full(len(pages), Purpose.INSTA, dtype=np.int8),
            propensity=propensity,
            tick=tick,
        )

    def state(self) -> State:
        gate = self.gate.state() if isinstance(self.gate, Remembers) else {}
        numbers = np.array([self.number_, self.latest_], dtype=np.int64)
        return {"numbers": numbers, **{f"gate_{name}": column for name, column in gate.items()}}

    def restore(self, state: State) -> None:
        self.number_, self.latest_ = state["numbers"].tolist()
        kept = part_of(state, "gate_")
        if isinstance(self.gate, Remembers) and kept:
            self.gate.restore(kept)
