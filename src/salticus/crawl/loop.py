"""The loop: every stage once a tick. Live crawling and simulation run this same code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from salticus.crawl.parts import Learner, Lessons, Parts
from salticus.crawl.plan import Decision, apply, decide, hurry, keep, meet
from salticus.crawl.snapshot import Snapshot, T, recover, tidily
from salticus.crawl.world import UrgentWorld, World, costs_of
from salticus.freshness.note import Gauging
from salticus.schedule.ticks import FOREVER
from salticus.types import Outcomes, Pages, Plan, Tick


@dataclass
class Loop:
    """Predict, allocate, space, visit, learn; and again. If `threaded`, what takes long runs in a
    thread; what was learnt meanwhile, and urgent visits, wait until it is done."""

    world: World
    parts: Parts
    snapshot: Snapshot = field(default_factory=lambda: Snapshot({}))
    gauge: Gauging = field(default_factory=Gauging)
    watchers: list[Learner] = field(default_factory=list)
    threaded: bool = False
    lessons: Lessons = field(default_factory=Lessons)
    door: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, until: datetime = FOREVER, *, once: bool = False) -> None:
        """Crawl until world time `until`, until stopped, or for one tick."""
        await self.resume()
        async for tick in self.parts.ticks.until(until):
            with self.parts.ticks.clock.paused():
                plan = await self.plan(tick)
                await self.snapshot.save(plan)
            await self.make(plan)
            if once:
                break
        async for outcomes in self.world.finish():
            self.learn(outcomes)
        self.study()
        await self.snapshot.save(None)

    async def plan(self, tick: Tick) -> Plan:
        """The visits of a tick."""
        async with self.door:
            await self.aside(self.study)  # which models of demand look at
            pages = await self.world.pages(tick)
            await self.parts.panel.refresh()
            met = await self.aside(lambda: meet(self.parts, pages))
            decision = await self.aside(lambda: self.decide(met))
            apply(self.parts, decision)
        await self.gauge.note(decision.gauge)
        return decision.plan

    def decide(self, pages: Pages) -> Decision:
        """Decide what the tick of pages that were met is to do."""
        decision = decide(self.parts, pages, gauged=self.gauge.keeper is not None)
        keep(self.parts, decision)
        return decision

    async def make(self, plan: Plan) -> None:
        """Make the visits, learning as their outcomes come."""
        async for outcomes in self.world.visit(plan):
            self.learn(outcomes)

    async def urge(self, propose: Callable[[], tuple[T, Plan]]) -> tuple[T, Plan]:
        """Decide on visits that cannot wait, pay for, remember and begin them: only here."""
        async with self.door:
            said, plan = propose()
            if len(plan) and self.parts.planned and isinstance(self.world, UrgentWorld):
                hurry(self.parts, plan, await self.world.costs(plan.page))
                self.snapshot.opened(plan)
                await self.world.urge(plan)
        return said, plan

    def learn(self, outcomes: Outcomes) -> None:
        """Keep account of outcomes as they come; what they teach is learnt tick by tick."""
        for part in (*self.parts.accounts, self.snapshot, self.lessons, *self.watchers):
            part.learn(outcomes)

    def study(self) -> None:
        """Learn what the visits since the last tick have taught."""
        self.lessons.teach(*self.parts.learners)

    async def resume(self) -> None:
        """Take up where the last run stopped: learn what it stored, make what it left open."""
        if (plan := await self.recover()) is not None:
            await self.make(plan)

    async def recover(self) -> Plan | None:
        """Learn what the last run stored; the visits that it left open."""
        return await recover(self.snapshot, self.parts, self.learn, costs_of(self.world))

    async def aside(self, work: Callable[[], T]) -> T:
        """Do work that takes long, in a thread if there is to be one."""
        return await asyncio.to_thread(tidily, work) if self.threaded else work()

    def stop(self) -> None:
        """Start no more visits; those in flight end, and the run with them."""
        self.parts.ticks.stop()
        self.world.stop()
