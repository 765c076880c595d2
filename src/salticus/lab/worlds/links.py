"""A replayed log of links: sources show new pages, and people want these for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import numpy as np

from salticus.crawl.world import Asks
from salticus.exchange.linked import LinkTruth
from salticus.lab.worlds.sight import UNSEEN, blind, look
from salticus.predict.finder import Finder
from salticus.predict.harvest import HeldPages
from salticus.testing import blank_pages
from salticus.types import (
    CHANGED,
    KINDS,
    NEVER,
    UNCHANGED,
    Bools,
    Floats,
    Ints,
    Outcomes,
    Pages,
    Plan,
    Prospects,
    Tick,
    instant,
)

_OLD = -2  # of pages: there before the crawl began
_KEPT = 14.0  # days for which a found page may wait
_QUEUE = 20_000  # pages that may wait; of more those found last

RESOLVE, PUSH = timedelta(minutes=30), timedelta(hours=1)  # as in Lefortier et al. 2013, §5.3


class LinkReplay:
    """The sources of a log, and the pages that visits to them find.

    A tick is one step of the log: all links of [start, end) have appeared, those whose last step it
    is still stand; the visits see them; pages found in it may be visited at once (`asks`); then
    people click on the pages that are held. Every source was visited before the first tick: what it
    showed then is old. Sources have the first ids, then come the pages. A page that was visited
    once is done with. What was learnt is worked out anew every `resolve`; clicks reach the finder
    every `push`. A page on several sources counts for the first that shows it, or, `shared`, for
    all of them.

    Cost: linear in the visits of a tick, the links they find, and the pages that wait or are held
    and young.
    """

    def __init__(
        self,
        truth: LinkTruth,
        finder: Finder,
        *,
        resolve: timedelta = RESOLVE,
        push: timedelta = PUSH,
        shared: bool = False,
    ) -> None:
        self.truth = truth
        self.finder = finder
        self.shared = shared
        self.fetched_: Ints = np.full(truth.pages, UNSEEN)  # the step of each page's visit
        self.sight_ = blind(truth)
        self._resolve, self._push = (max(round(span / truth.step), 1) for span in (resolve, push))
        self._day = truth.step / timedelta(days=1)
        self._left: Ints = np.zeros(truth.pages, dtype=np.int64)  # when links stood last, at visits
        self._standing: Ints = np.zeros(truth.pages, dtype=np.int64)  # for how long, as a class
        self._clicks: list[HeldPages] = []  # not told to the finder yet
        self._waiting = np.empty(0, dtype=np.int64)
        self._held = np.empty(0, dtype=np.int64)
        self._news: list[Outcomes] = []
        self.asks: Asks | None = None
        every = np.arange(truth.sources)
        _, old = look(self.sight_, truth, every, 0)
        self.fetched_[old] = _OLD
        shown = np.concatenate([[0.0], np.cumsum(self.sight_.shown)])
        finder.met(every, np.diff(shown[truth.first]))

    def step(self, tick: Tick) -> int:
        """The number of a tick's step in the log."""
        return (tick.start - self.truth.start) // self.truth.step

    # ------------------------------------------------------------------------------ the contract

    async def pages(self, tick: Tick) -> Pages:
        truth, waiting, day = self.truth, self._waiting, self._day
        many, step, start = truth.sources, self.step(tick), instant(tick.start)
        if step % self._resolve == 0:
            self.finder.solve()
        n = many + len(waiting)
        seen = start - (step - self.sight_.seen[waiting]) * np.timedelta64(truth.step)
        visited = start - (step - self.sight_.last) * np.timedelta64(truth.step)
        last = np.concatenate([visited, np.full(len(waiting), NEVER)])
        kind = np.full(n, KINDS.index("article"), dtype=np.int8)
        kind[:many] = KINDS.index("source")
        links, interest, none = self.finder.links_, self.finder.interest_, np.zeros(len(waiting))
        remaining = self._remaining(waiting, step)
        prospects = Prospects(
            rate=np.concatenate([links.rate, none]),
            profit=np.concatenate([interest.profit, none]),
            decay=np.concatenate([interest.decay, none]),
            remaining=np.concatenate([np.full(many, np.nan), remaining]),
            entries=np.concatenate([self.sight_.entries, none]),
            span=np.concatenate([self.sight_.span * day, none]),
            usual=np.concatenate([truth.usual, none]),
            looks=np.concatenate([self.finder.looks(), none]),
            row=np.concatenate([np.arange(many), np.full(len(waiting), -1)]),
            harvest=replace(self.finder.harvest_, until=instant(tick.end)),
        )
        return replace(
            blank_pages(n),
            tick=tick,
            ids=np.concatenate([np.arange(many), many + waiting]),
            kind=kind,
            added=np.concatenate([np.full(many, instant(truth.start)), seen]),
            last_visit=last,
            last_answer=last,
            demand=np.zeros(n),
            impressions=np.zeros(n),
            found=np.arange(n) >= many,
            prospects=prospects,
        )

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        step, source = self.step(plan.tick), plan.page < self.truth.sources
        told, found = look(self.sight_, self.truth, plan.page[source], step, shared=self.shared)
        self.finder.visited(told, np.full(len(told), instant(plan.tick.end)))
        yield self._outcomes(plan, source, told.new > 0)
        self._waiting = np.sort(np.concatenate([self._waiting, found]))
        await self._ask(found, step, plan.tick)
        for outcomes in self._news:
            yield outcomes
        self._news = []
        self._watch(step)

    async def urge(self, plan: Plan) -> None:
        """Visit pages now; the outcomes come with the rest."""
        none = np.zeros(len(plan), dtype=np.bool_)
        self._news.append(self._outcomes(plan, none, none[:0]))

    async def costs(self, pages: Ints) -> Floats:
        return np.ones(len(pages))

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        for outcomes in list[Outcomes]():
            yield outcomes

    # ----------------------------------------------------------------------------------- inside

    async def _ask(self, found: Ints, step: int, tick: Tick) -> None:
        """Ask for visits to pages found now, and then, if any are left, to those that wait."""
        for pages in (found, self._waiting):
            pages = pages[self.fetched_[pages] == UNSEEN]
            if self.asks is not None and len(pages):
                worth = self._remaining(pages, step)
                await self.asks(self.truth.sources + pages, worth, instant(tick.end) - 1)

    def _remaining(self, pages: Ints, step: int) -> Floats:
        """Clicks that found pages will get yet."""
        since = np.asarray((step - self.sight_.stands[pages]) * self._day)
        return self.finder.remaining(self.sight_.via[pages], self._stood(pages), since)

    def _stood(self, pages: Ints) -> Floats:
        """Days for which the links of found pages stood, until they were last seen."""
        return np.asarray((self._age(pages, 0) + self.sight_.stands[pages]) * self._day)

    def _outcomes(self, plan: Plan, source: Bools, new: Bools) -> Outcomes:
        """Every visit is answered; a source has changed if it shows new links."""
        pages = plan.page[~source] - self.truth.sources
        self.fetched_[pages] = self.step(plan.tick)
        self._left[pages] = self.sight_.stands[pages]
        self._standing[pages] = self.finder.yields.standing(self._stood(pages))
        self._held = np.concatenate([self._held, pages])
        self._waiting = self._waiting[self.fetched_[self._waiting] == UNSEEN]
        changed = np.full(len(plan), CHANGED)
        changed[source] = np.where(new, CHANGED, UNCHANGED)
        drawn = {"purpose": plan.purpose, "propensity": plan.propensity, "chance": plan.chance}
        return Outcomes.known(
            visit=plan.visit, page=plan.page, at=plan.due, changed=changed, **drawn
        )

    def _age(self, pages: Ints, step: int) -> Floats:
        """Steps since the links of found pages appeared, as far as that is known."""
        return np.asarray(step - self.sight_.seen[pages] + 0.5 * self.sight_.gap[pages])

    def _watch(self, step: int) -> None:
        """People click on the pages that are held; those that waited too long are given up."""
        held, day = self._held, self._day
        clicks, age = self.truth.attention.during(step, held), self._age(held, step) * day
        since = np.asarray((step - self._left[held] + 0.5) * day)
        told = HeldPages(self.sight_.via[held], age, self._standing[held], since, clicks)
        self._clicks.append(told)
        if (step + 1) % self._push == 0:
            for pages in self._clicks:
                self.finder.watch(pages, day)
            self._clicks = []
        self._held = held[since < self.finder.yields.edges[-1]]
        seen = self.sight_.seen[self._waiting]
        late = seen <= step - _KEPT / day
        if len(seen) > _QUEUE:
            late |= seen < np.partition(seen, -_QUEUE)[-_QUEUE]
        self._waiting = self._waiting[~late]
