"""A replayed log: the world changes, then the crawler visits, then people read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import numpy as np

from salticus.exchange.truth import GONE, Truth
from salticus.lab.worlds.copies import NOTHING, UNBORN, SimulatedCopies
from salticus.testing import blank_pages
from salticus.types import (
    CHANGED,
    NEVER,
    UNCHANGED,
    UNKNOWN,
    Bools,
    Columns,
    Floats,
    Instant,
    Ints,
    Outcomes,
    Pages,
    Plan,
    Status,
    Tick,
    Times,
    instant,
)
from salticus.types.coins import coins
from salticus.types.state import rank_within

_NEXT = np.timedelta64(1, "us")

Asks = Callable[[Ints, Instant], Awaitable[Any]]


class DemandSource(Protocol):
    """What is known at a time of how much each page is read, per day."""

    def known(self, now: datetime, pages: int) -> tuple[Floats, Floats]:
        """Clicks and impressions a day of the first `pages` rows, from what came before `now`."""


class TickObserver(Protocol):
    """Someone who looks at the copies at the end of every tick."""

    def read(self, tick: Tick, copies: SimulatedCopies) -> None: ...


@dataclass(frozen=True, slots=True)
class Burden:
    """What a log does not tell of visits: the `cost` of one to each page, in visits, and the `room`
    that each host has for them in a tick."""

    cost: Floats
    room: float = np.inf


class Replay:
    """The pages of a log, on a virtual clock.

    A simulated tick is one step: all changes of [start, end) happen, the visits see the result,
    then the `readers` look at the copies. A page is known from its birth on; a share `failure` of
    the visits fails, by a hash of (seed, page, tick), and teaches nothing. Hosts take any number
    of visits, and each costs 1, unless there is a `burden`.

    Cost: linear in the visits and change points of a tick; nothing is done for the other pages.
    """

    def __init__(
        self,
        truth: Truth,
        demand: DemandSource,
        readers: Sequence[TickObserver] = (),
        *,
        seed: int = 0,
        burden: Burden | None = None,
    ) -> None:
        burden = burden or Burden(np.ones(len(truth)))
        self.truth = truth
        self.demand = demand
        self.readers = readers
        self.seed = seed
        self.copies = SimulatedCopies(len(truth), origin=truth.at[0])
        self.last_visit_: Times = np.full(len(truth), NEVER)
        self.last_answer_: Times = np.full(len(truth), NEVER)
        self._all = int(truth.ids[-1]) == len(truth) - 1  # ids are row numbers, not a sample's
        self._done = 0  # change points that have happened
        self.cost = burden.cost
        self._capacity = np.full(int(truth.host.max(initial=0)) + 1, burden.room)
        self._whole = replace(
            blank_pages(len(truth)),
            ids=truth.ids,
            host=truth.host,
            merchant=truth.merchant,
            category=truth.category,
            added=truth.born,
            last_visit=self.last_visit_,
            last_answer=self.last_answer_,
            cost=self.cost,
            capacity=self._capacity,
        )
        self._cut = self._whole

    def begin(self, start: datetime) -> None:
        """Let everything before `start` have happened."""
        self._change(instant(start))

    def sync(self, at: datetime) -> None:
        """Let every page that is born have been visited at that time, after the last change."""
        rows = np.flatnonzero(self.copies.true != UNBORN)
        self.hold(rows, self.copies.true[rows], np.full(len(rows), instant(at)))

    def hold(self, rows: Ints, values: Ints, at: Times) -> None:
        """Let the copies of these pages be what an answer at that time left."""
        self.copies.hold(rows, values)
        self.last_visit_[rows] = self.last_answer_[rows] = at

    def fails(self, rows: Ints, tick: Tick) -> Bools:
        """Whether a visit of each row fails in that tick."""
        chance = coins(self.seed, self.truth.ids[rows], tick.number)
        return np.asarray(chance < self.truth.failure[rows])

    def coming(self, when: Instant) -> Ints:
        """The true values as they will be at `when`."""
        true = self.copies.true.copy()
        soon = slice(self._done, self.truth.before(when))
        true[self.truth.page[soon]] = self.truth.value[soon]
        return true

    def there(self, tick: Tick) -> Pages:
        """The pages that are born by the start of a tick, whatever the demand for them."""
        n = int(np.searchsorted(self.truth.born, instant(tick.start), side="right"))
        if len(self._cut) != n:  # views of the first rows, so that they stay true
            columns = {name: getattr(self._whole, name)[:n] for name in Pages.columns()}
            self._cut = replace(self._whole, **columns)
        return replace(self._cut, tick=tick)

    # ------------------------------------------------------------------------------ the contract

    async def pages(self, tick: Tick) -> Pages:
        pages = self.there(tick)
        clicks, impressions = self.demand.known(tick.start, len(pages))
        return replace(pages, demand=clicks, impressions=impressions)

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        self._change(instant(plan.tick.end))
        yield self._outcomes(plan)
        for reader in self.readers:
            reader.read(plan.tick, self.copies)

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        for outcomes in list[Outcomes]():
            yield outcomes

    # ----------------------------------------------------------------------------------- inside

    def _change(self, until: Instant) -> None:
        stop = self.truth.before(until)
        now = slice(self._done, stop)
        self._done = max(self._done, stop)
        self.copies.change(self.truth.page[now], self.truth.value[now], self.truth.at[now])

    def _outcomes(self, plan: Plan) -> Outcomes:
        rows = self._rows(plan.page)
        at = np.fmax(plan.due, self.last_visit_[rows])  # after an urgent visit of the same tick
        failed = self.fails(rows, plan.tick)
        here = np.flatnonzero(~failed)
        held, true = self.copies.held[rows], self.copies.true[rows]
        comparable = ~failed & (held >= 0) & (true >= 0)
        told = np.where(held == true, UNCHANGED, CHANGED)
        ended = np.where(true == GONE, Status.GONE, Status.OK)
        outcomes = Outcomes.known(
            visit=plan.visit,
            page=plan.page,
            at=at,
            status=np.where(failed, Status.TIMEOUT, ended).astype(np.int8),
            changed=np.where(comparable, told, UNKNOWN).astype(np.int8),
            since=np.where(held == NOTHING, NEVER, self.last_answer_[rows]),
            purpose=plan.purpose,
            propensity=plan.propensity,
            chance=plan.chance,
        )
        self.hold(rows[here], true[here], at[here])
        self.last_visit_[rows] = at
        return outcomes

    def _rows(self, ids: Ints) -> Ints:
        return ids if self._all else np.searchsorted(self.truth.ids, ids)


@dataclass(frozen=True, slots=True)
class ClickStream(Columns):
    """Clicks in order of time: the `page`'s row, and the code of its `true` value at that time."""

    page: Ints
    at: Times
    true: Ints


class ClickedReplay(Replay):
    """A replay whose clicks come one by one, before the planned visits of their tick.

    `asks` is told the page and the time of each click, and may answer with visits (`urge`), which
    are made at once: they see the page as it is then. `stale_` says of each click whether it found
    a copy that was out of date. A page visited both at once and by the plan has its planned visit
    after the other. Hosts serve urgent visits first; planned ones for which a host has no time left
    are dropped.
    """

    def let_click(self, clicks: ClickStream, asks: Asks) -> None:
        """Let these clicks come; to be called before the first visit."""
        self.clicks = clicks
        self.asks = asks
        self.stale_: Bools = np.zeros(len(clicks), dtype=np.bool_)
        self._clicked = 0  # clicks that have come
        self._served = np.zeros(len(self._capacity))  # visits of each host in this tick
        self._news: list[Outcomes] = []

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        self._served[:] = 0.0
        async for outcomes in self._click(plan.tick):
            yield outcomes
        fits = self._fit(plan)
        async for outcomes in super().visit(plan.take(fits)):
            yield outcomes
        if not fits.all():
            yield Outcomes.dropped(plan.take(~fits), instant(plan.tick.end))

    async def urge(self, plan: Plan) -> None:
        """Make visits now; their outcomes come with the rest."""
        fits = self._fit(plan)
        made, now = plan.take(fits), plan.due[0]
        self._change(now + _NEXT)
        self._served += np.bincount(self._hosts(made), minlength=len(self._served))
        self._news.append(self._outcomes(made))
        if not fits.all():
            self._news.append(Outcomes.dropped(plan.take(~fits), now))

    async def costs(self, pages: Ints) -> Floats:
        return np.asarray(self.cost[self._rows(pages)])

    async def _click(self, tick: Tick) -> AsyncIterator[Outcomes]:
        """Let the clicks of a tick come; the outcomes of what they brought."""
        clicks = self.clicks
        first, last = np.searchsorted(clicks.at, [instant(tick.start), instant(tick.end)])
        for k in range(max(self._clicked, int(first)), int(last)):
            row = clicks.page[k : k + 1]
            self.stale_[k] = self.copies.held[row[0]] != clicks.true[k]
            await self.asks(self.truth.ids[row], clicks.at[k])
            news, self._news = self._news, []
            for outcomes in news:
                yield outcomes
        self._clicked = int(last)

    def _fit(self, plan: Plan) -> Bools:
        """The visits for which their hosts have time left in this tick."""
        host = self._hosts(plan)
        return np.asarray(rank_within(host) + self._served[host] < np.ceil(self._capacity)[host])

    def _hosts(self, plan: Plan) -> Ints:
        return self.truth.host[self._rows(plan.page)]


def fully_observed(
    truth: Truth, start: datetime, end: datetime, step: timedelta
) -> Iterator[Outcomes]:
    """What someone who visited every page at every `step` from `start` to `end` would have learnt.

    A run of visits that saw no change is told as one, of the whole run: it says the same to any
    likelihood. So the cost is linear in change points and pages, not in visits.
    """
    first, gap = instant(start), np.timedelta64(step)
    here = slice(truth.before(first), truth.before(instant(end)))
    page, number = truth.page[here], (truth.at[here] - first) // gap
    birth = np.maximum((truth.born - first) // gap, 0)
    seen = birth.copy()  # the step of each page's last visit so far
    for some in np.split(np.arange(len(page)), np.flatnonzero(np.diff(number)) + 1):
        now = number[some[0]] if len(some) else 0
        rows = np.unique(page[some])
        rows = rows[birth[rows] < now]
        quiet = rows[seen[rows] < now - 1]
        before = first + (now - 1) * gap
        yield told_of(truth, quiet, first + seen[quiet] * gap, before, UNCHANGED)
        yield told_of(truth, rows, np.full(len(rows), before), before + gap, CHANGED)
        seen[rows] = now
    last = (instant(end) - first) // gap - 1
    rest = np.flatnonzero(seen < last)
    yield told_of(truth, rest, first + seen[rest] * gap, first + last * gap, UNCHANGED)


def visit_by_visit(
    truth: Truth, start: datetime, end: datetime, step: timedelta
) -> Iterator[Outcomes]:
    """The same without taking visits together, for those that count them. Cost: all visits."""
    first, gap = instant(start), np.timedelta64(step)
    here = slice(truth.before(first), truth.before(instant(end)))
    page, number = truth.page[here], (truth.at[here] - first) // gap
    birth = np.maximum((truth.born - first) // gap, 0)
    cuts = np.searchsorted(number, np.arange((instant(end) - first) // gap + 1))
    for now in range(1, len(cuts) - 1):
        moved = np.zeros(len(truth), dtype=np.bool_)
        moved[page[cuts[now] : cuts[now + 1]]] = True
        rows = np.flatnonzero(birth < now)
        since = np.full(len(rows), first + (now - 1) * gap)
        changed = np.where(moved[rows], CHANGED, UNCHANGED)
        yield told_of(truth, rows, since, first + now * gap, changed)


def told_of(truth: Truth, rows: Ints, since: Times, now: Instant, changed: int | Ints) -> Outcomes:
    """Answered visits to pages by their rows, since when each tells, and what all of them found."""
    return Outcomes.known(page=truth.ids[rows], at=now, changed=changed, since=since)
