"""The loop: every stage once a tick. Live crawling and simulation run this same code."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from salticus.allocate.base import Policy
from salticus.allocate.capacity import less, within_capacity
from salticus.allocate.explore import Explore
from salticus.allocate.insta import Insta
from salticus.allocate.limits import forced
from salticus.allocate.panel import Panel
from salticus.allocate.pins import with_pins
from salticus.crawl.lessons import Learner, Lessons
from salticus.crawl.snapshot import Memory, recover
from salticus.crawl.world import World
from salticus.freshness.note import Gauging
from salticus.predict.base import Predictor
from salticus.schedule.base import Spacing
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import FOREVER, Ticks
from salticus.types import Draw, Outcomes, Plan, Purpose, Tick


@dataclass
class Loop:
    """Predict, allocate, space, visit, learn; and again."""

    world: World
    ticks: Ticks
    predictor: Predictor
    policy: Policy
    spacing: Spacing
    ledger: Ledger
    planner: Planner
    memory: Memory
    explore: Explore = field(default_factory=Explore)
    insta: Insta = field(default_factory=Insta)
    gauge: Gauging = field(default_factory=Gauging)
    panel: Panel = field(default_factory=Panel)
    watchers: list[Learner] = field(default_factory=list)
    lessons: Lessons = field(default_factory=Lessons)

    async def run(self, until: datetime = FOREVER, *, once: bool = False) -> None:
        """Crawl until world time `until`, until stopped, or for one tick."""
        await self.resume()
        async for tick in self.ticks.until(until):
            with self.ticks.clock.paused():
                plan = await self.plan(tick)
                await self.memory.save(plan)
            await self.make(plan)
            if once:
                break
        async for outcomes in self.world.finish():
            self.learn(outcomes)
        self.study()
        await self.memory.save()

    async def plan(self, tick: Tick) -> Plan:
        """The visits of a tick: politeness > budget > limits > pins > exploration > policy."""
        self.study()
        pages = await self.panel.veil(await self.world.pages(tick))
        pages = replace(pages, survival=self.predictor.survival(pages, tick.start))
        grant, purse = self.ledger.grant(pages, tick).less(self.insta.share)
        self.insta.open(pages, purse)
        limits = forced(pages, grant.visits, grant.per_tick, tick)
        limits = with_pins(pages, limits, grant.visits, tick)
        explored = self.explore.draw(pages, limits, grant.visits, tick)
        taken = np.union1d(limits, explored.rows)
        rest, visits = less(pages, taken), grant.visits - int(pages.cost[taken].sum())
        expected = within_capacity(self.policy, rest, visits, taken)
        draws = {
            Purpose.LIMIT: Draw(limits, np.ones(len(limits))),
            Purpose.EXPLORE: explored,
            Purpose.POLICY: self.spacing.draw(rest, expected, visits, tick),
        }
        plan = self.planner.plan(pages, draws, tick, grant)
        self.ledger.spend(plan, pages.cost[pages.rows(plan.page)])
        plan = self.planner.with_panel(plan, pages, self.panel.rows, self.panel.due)
        return await self.gauge.foretell(pages, plan, self.panel.pages_)

    async def make(self, plan: Plan) -> None:
        """Make the visits, learning as their outcomes come."""
        async for outcomes in self.world.visit(plan):
            self.learn(outcomes)

    def learn(self, outcomes: Outcomes) -> None:
        """Keep account of outcomes as they come; what they teach is learnt tick by tick."""
        parts: tuple[Learner, ...] = (self.ledger, self.insta, self.memory, self.lessons)
        for part in (*parts, *self.watchers):
            part.learn(outcomes)

    def study(self) -> None:
        """Learn what the visits since the last tick have taught."""
        self.lessons.teach(self.spacing, self.predictor, self.policy, self.panel)

    async def resume(self) -> None:
        """Take up where the last run stopped: learn what it stored, make what it left open."""
        if (plan := await recover(self)) is not None:
            await self.make(plan)

    def stop(self) -> None:
        """Start no more visits; those in flight end, and the run with them."""
        self.ticks.stop()
        self.world.stop()
