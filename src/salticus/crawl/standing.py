"""Where a crawl stands, by what its store tells, and what it will do if nothing new is learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

import numpy as np

from salticus.allocate.base import Priced
from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.finders import make_census
from salticus.crawl.parts import Lessons, Parts, make_parts, make_policy
from salticus.crawl.plan import advance, decide, keep, meet
from salticus.crawl.snapshot import Snapshot, no_plan, recover
from salticus.store.base import Store
from salticus.types import Bools, Ints, Outcomes, Pages, Plan, Purpose, Tick, instant
from salticus.types.state import places

if TYPE_CHECKING:
    from salticus.fetch.gate import Hosts


HORIZON = timedelta(days=30)  # how far ahead visits are foreseen

Room = Callable[[str, Tick], float]
"""What a host, by name, can take in a tick."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit that is foreseen; `planned` if its tick has been planned already."""

    tick: Tick
    due: np.datetime64
    purpose: Purpose
    planned: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """The next visits of some pages, by page, and all visits of the coming tick."""

    visits: dict[int, Visit]
    coming: Plan | None


@dataclass(frozen=True, slots=True)
class Standing:
    """A crawl for commands that do not crawl: its parts, all its pages, what hosts can take, the
    visits that are planned and not made yet, the next tick to plan, and the time. `lessons` are
    what visits taught since the last plan; they wait to be studied, as they do in the crawl."""

    parts: Parts
    census: Census
    room: Room
    open: Plan
    coming: Tick
    now: datetime
    config: Config
    hosts: Hosts
    lessons: Lessons

    def study(self) -> None:
        """Let the parts learn what the crawl will learn when it plans next, and meet its pages."""
        self.lessons.teach(*self.parts.learners)
        self.census.foretell(self.coming.start)
        meet(self.parts, self.pages(self.coming))

    def pages(self, tick: Tick) -> Pages:
        """The pages that may be visited in a tick, as they are now."""
        return self.census.pages(tick, lambda host: self.room(host, tick))

    def everyone(self, tick: Tick) -> Pages:
        return self.census.everyone(tick, lambda host: self.room(host, tick))

    def planned(self, ids: Ints) -> dict[int, Visit]:
        """The visits to these pages that are planned and not made yet, by page."""
        found: dict[int, Visit] = {}
        if self.now < self.open.tick.end:
            _note(found, self.open, ids, planned=True)
        return found

    def plan(self) -> Plan:
        """All visits of the coming tick."""
        return self._ahead()._decided(self.coming)

    def next_visits(self, ids: Ints) -> Forecast:
        """The next visit of each of these pages, if it comes within 30 days.

        The crawl plans tick after tick. Visits are answered when they are due, and nothing is
        learnt from them.
        """
        ahead, found = self._ahead(), self.planned(ids)
        tick, last = self.coming, self.coming.start + HORIZON
        wanted = ids[self._ever(ids, replace(tick, start=last, end=last + HORIZON))]
        coming: Plan | None = None
        while tick.start < last and not found.keys() >= set(wanted.tolist()):
            plan = ahead._decided(tick)
            coming = plan if coming is None else coming
            _note(found, plan, ids, planned=False)
            ahead._pass(without_news(plan))
            tick = Tick(tick.number + 1, tick.end, tick.end + (tick.end - tick.start))
        return Forecast(found, coming)

    def _ahead(self) -> Self:
        """A copy to plan ahead with, its open visits made, or dropped if their tick is over."""
        ahead = replace(self, parts=self.parts.forked(), census=self.census.forked())
        over = self.now >= self.open.tick.end
        dropped = Outcomes.dropped(self.open, instant(self.now))
        ahead._pass(dropped if over else without_news(self.open))
        return ahead

    def _decided(self, tick: Tick) -> Plan:
        decision = decide(self.parts, self.parts.panel.veil(self.pages(tick)))
        keep(self.parts, decision)
        advance(self.parts, decision)
        return decision.plan

    def _pass(self, outcomes: Outcomes) -> None:
        """Let visits have ended so."""
        self.census.learn(outcomes)
        for part in (self.parts.ledger, self.parts.spacing, self.parts.panel):
            part.learn(outcomes)

    def _ever(self, ids: Ints, later: Tick) -> Bools:
        """Which pages will not rest for good."""
        rows, _ = places(self.everyone(later).ids, ids)
        return self.census.up(later)[rows]


def without_news(plan: Plan) -> Outcomes:
    """The visits of a plan, answered when they are due, with nothing known of what they found."""
    drawn = {"purpose": plan.purpose, "propensity": plan.propensity, "chance": plan.chance}
    return Outcomes.known(visit=plan.visit, page=plan.page, at=plan.due, **drawn)


def _note(found: dict[int, Visit], plan: Plan, ids: Ints, *, planned: bool) -> None:
    for row in np.flatnonzero(np.isin(plan.page, ids)):
        purpose = Purpose(int(plan.purpose[row]))
        visit = Visit(plan.tick, plan.due[row], purpose, planned)
        found.setdefault(int(plan.page[row]), visit)


async def recalled(config: Config, store: Store, clock: Clock) -> Standing:
    """The crawl's parts as they are now, or would be if it went on now. Only reads the store, and
    needs no lock: a crawl may be running."""
    from salticus.fetch.gate import Hosts

    now, wall = clock.now(), clock.wall()
    parts = make_parts(config, clock, store)
    parts.make_read_only()
    hosts = Hosts(config, clock)
    hosts.restore(await store.hosts())
    census = make_census(config, store, parts.policy)
    census.serve(parts.followed, parts.clicks, parts.impressions)
    lessons = Lessons()
    snapshot = Snapshot({**parts.named(), "demand": census.demand, "scout": census.scout}, store)

    def learn(outcomes: Outcomes) -> None:
        for part in (*parts.accounts, lessons):
            part.learn(outcomes)

    plan = await recover(snapshot, parts, learn, census.costs)
    await census.refresh()
    await census.heed()
    await parts.panel.refresh()
    plan = no_plan(now) if plan is None else plan
    start = now if await store.holder() is None else max(now, plan.tick.end)
    coming = Tick(parts.ticks.number_, start, start + config.tick)

    def room(host: str, tick: Tick) -> float:
        ahead, length = tick.start - now, tick.end - tick.start
        start = wall + ahead.total_seconds() / clock.speed
        return hosts.capacity(host, start, length.total_seconds() / clock.speed)

    return Standing(parts, census, room, plan, coming, now, config, hosts, lessons)


async def visit_price(config: Config, store: Store) -> float | None:
    """The visit price of the last plan; None if the policy has none, or has not planned yet."""
    policy = make_policy(config)
    await Snapshot({"policy": policy}, store).recall()
    price = policy.price_ if isinstance(policy, Priced) else np.nan
    return None if np.isnan(price) else price
