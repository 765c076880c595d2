"""A replayed log of links: sources show new pages, and people want these for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np

from salticus.exchange.linked import LinkTruth
from salticus.predict.finder import Finder
from salticus.predict.harvest import HeldPages
from salticus.predict.links import SourceVisits
from salticus.testing import blank_pages
from salticus.types import (
    CHANGED,
    KINDS,
    NEVER,
    UNCHANGED,
    Bools,
    Floats,
    Instant,
    Ints,
    Outcomes,
    Pages,
    Plan,
    Prospects,
    Tick,
    distinct,
    instant,
)

_UNSEEN, _OLD = -1, -2  # of pages: not fetched; there before the crawl began
_WEEK = 7.0
_KEPT = 14.0  # days for which a found page may wait

Asks = Callable[[Ints, Floats, Instant], Awaitable[None]]


class LinkReplay:
    """The sources of a log, and the pages that visits to them find.

    A tick is one step of the log: all links of [start, end) have appeared, those whose last step it
    is still stand; the visits see them; pages found in it may be visited at once (`asks`); then
    people click on the pages that are held. Every source was visited before the first tick: what it
    showed then is old. Sources have the first ids, then come the pages. A page that was visited
    once is done with.

    Cost: linear in the visits of a tick, the links they find, and the pages that wait or are held
    and young.
    """

    def __init__(self, truth: LinkTruth, finder: Finder) -> None:
        self.truth = truth
        self.finder = finder
        self._day = truth.step / timedelta(days=1)
        self.fetched_: Ints = np.full(truth.pages, _UNSEEN)  # the step of each page's visit
        self.seen_: Ints = np.full(truth.pages, _UNSEEN)  # the step in which it was found
        self.via_: Ints = np.full(truth.pages, -1)
        self.visits_: Ints = np.zeros(truth.sources, dtype=np.int64)  # to each source
        self.looked_: Bools = np.zeros(len(truth.page), dtype=np.bool_)  # links that were seen
        self._stands = np.full(truth.pages, _UNSEEN)  # the step in which its link was last seen
        self._gap = np.zeros(truth.pages)  # steps in which the link of each may have appeared
        self._left = np.zeros(truth.pages, dtype=np.int64)  # the same at its visit
        self._standing = np.zeros(truth.pages, dtype=np.int64)  # and the class of its standing
        self._last = np.full(truth.sources, -1)  # the step of each source's last visit
        self._next = truth.first[:-1].copy()  # the first link of each that has not been looked at
        self._shown = [np.empty(0, dtype=np.int64)] * truth.sources  # links seen at the last visit
        self._entries, self._span = np.zeros(truth.sources), np.zeros(truth.sources)
        self._waits: Bools = np.zeros(truth.pages, dtype=np.bool_)
        self._holds: Bools = np.zeros(truth.pages, dtype=np.bool_)
        self._news: list[Outcomes] = []
        self.asks: Asks | None = None
        shown = np.zeros(truth.sources)
        for source in range(truth.sources):
            _, old = self._look(source, 0)
            self.fetched_[old], shown[source] = _OLD, len(self._shown[source])
        finder.met(np.arange(truth.sources), shown)

    def step(self, tick: Tick) -> int:
        """The number of a tick's step in the log."""
        return (tick.start - self.truth.start) // self.truth.step

    # ------------------------------------------------------------------------------ the contract

    async def pages(self, tick: Tick) -> Pages:
        truth, waiting, day = self.truth, np.flatnonzero(self._waits), self._day
        self.finder.solve()
        many, step, start = truth.sources, self.step(tick), instant(tick.start)
        n = many + len(waiting)
        seen = start - (step - self.seen_[waiting]) * np.timedelta64(truth.step)
        visited = start - (step - self._last) * np.timedelta64(truth.step)
        last = np.concatenate([visited, np.full(len(waiting), NEVER)])
        kind = np.full(n, KINDS.index("article"), dtype=np.int8)
        kind[:many] = KINDS.index("source")
        links, interest, none = self.finder.links_, self.finder.interest_, np.zeros(len(waiting))
        remaining = self._remaining(waiting, step)
        prospects = Prospects(
            rate=np.concatenate([links.rate, none]),
            profit=np.concatenate([interest.profit, none]),
            decay=np.concatenate([interest.decay, none]),
            vanish=np.concatenate([links.vanish, none]),
            remaining=np.concatenate([np.full(many, np.nan), remaining]),
            entries=np.concatenate([self._entries, none]),
            span=np.concatenate([self._span * day, none]),
            usual=np.concatenate([np.full(many, 0.5), none]),
            row=np.concatenate([np.arange(many), np.full(len(waiting), -1)]),
            harvest=self.finder.harvest_,
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
        new = [self._look(int(page), step) for page in plan.page[source]]
        told = [visits for visits, _ in new]
        if told:
            columns = (np.array(column) for column in zip(*told, strict=True))
            self.finder.visited(SourceVisits(plan.page[source], *columns))
        yield self._outcomes(plan, source, np.array([found[1] > 0 for found in told], dtype=bool))
        found = distinct(np.concatenate([np.empty(0, dtype=np.int64), *(p for _, p in new)]))
        self._waits[found] = True
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
        if self.asks is not None and len(found):
            worth = self._remaining(found, step)
            await self.asks(self.truth.sources + found, worth, instant(tick.end) - 1)

    def _remaining(self, pages: Ints, step: int) -> Floats:
        """Clicks that found pages will get yet."""
        since = (step - self._stands[pages]) * self._day
        return self.finder.yields.remaining(self.via_[pages], self._stood(pages), since)

    def _stood(self, pages: Ints) -> Floats:
        """Days for which the links of found pages stood, until they were last seen."""
        stood = self._age(pages, 0) + self._stands[pages]
        return np.asarray(stood * self._day)

    def _outcomes(self, plan: Plan, source: Bools, new: Bools) -> Outcomes:
        """Every visit is answered; a source has changed if it shows new links."""
        pages = plan.page[~source] - self.truth.sources
        self.fetched_[pages] = self.step(plan.tick)
        self._left[pages] = self._stands[pages]
        self._standing[pages] = self.finder.yields.standing(self._stood(pages))
        self._holds[pages], self._waits[pages] = True, False
        changed = np.full(len(plan), CHANGED)
        changed[source] = np.where(new, CHANGED, UNCHANGED)
        drawn = {"purpose": plan.purpose, "propensity": plan.propensity, "chance": plan.chance}
        return Outcomes.known(
            visit=plan.visit, page=plan.page, at=plan.due, changed=changed, **drawn
        )

    def _look(self, source: int, step: int) -> tuple[tuple[float, ...], Ints]:
        """Visit a source: what that tells of its links, and the pages that nobody saw before."""
        truth, day = self.truth, self._day
        mine = truth.appeared[self._next[source] : truth.first[source + 1]]
        fresh = self._next[source] + np.arange(np.searchsorted(mine, step, side="right"))
        before, gap = self._shown[source], step - self._last[source]
        kept, new = (link[truth.vanished[link] >= step] for link in (before, fresh))
        self._next[source] += len(fresh)
        self._shown[source], self._last[source] = np.concatenate([kept, new]), step
        self.visits_[source] += 1
        self.looked_[new] = True
        self._stands[truth.page[self._shown[source]]] = step
        recent = truth.appeared[self._shown[source]]
        recent = recent[recent > step - _WEEK / day]
        self._entries[source] = len(recent)
        self._span[source] = np.ptp(recent) if len(recent) else 0.0
        pages = distinct(truth.page[new])
        found = pages[self.seen_[pages] == _UNSEEN]
        self.seen_[found], self.via_[found], self._gap[found] = step, source, gap
        told = (gap * day, len(found), len(kept), len(before) - len(kept))
        return tuple(float(x) for x in told), found

    def _age(self, pages: Ints, step: int) -> Floats:
        """Steps since the links of found pages appeared, as far as that is known."""
        return np.asarray(step - self.seen_[pages] + 0.5 * self._gap[pages])

    def _watch(self, step: int) -> None:
        """People click on the pages that are held; those that waited too long are given up."""
        held, waiting, day = np.flatnonzero(self._holds), np.flatnonzero(self._waits), self._day
        clicks = self.truth.attention.during(step, held)
        age = self._age(held, step) * day
        since = np.asarray((step - self._left[held] + 0.5) * day)
        watched = HeldPages(self.via_[held], age, self._standing[held], since, clicks)
        self.finder.watch(watched, day)
        self._holds[held[since >= self.finder.yields.edges[-1]]] = False
        self._waits[waiting[(step - self.seen_[waiting]) * day >= _KEPT]] = False
