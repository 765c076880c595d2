"""The loop's own laws: it resumes, it stops, it can be watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import numpy as np

from salticus.allocate.uniform import Uniform
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.crawl.loop import Loop
from salticus.crawl.snapshot import Memory
from salticus.predict.gamma import Gamma
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.testing import START, StillWorld, blank_pages
from salticus.types import Ints, Outcomes, Plan, Request, instant

HOURS = timedelta(hours=2)


class Notebook:
    """Keeps snapshots and outcomes as a store does."""

    def __init__(self) -> None:
        self.blob: bytes | None = None
        self.known: list[Outcomes] = []

    async def remember(self, state: bytes) -> None:
        self.blob = state

    async def recall(self) -> bytes | None:
        return self.blob

    async def outcomes(self, visits: Ints) -> Outcomes:
        every = self.known[0]
        for more in self.known[1:]:
            every = every.join(more)
        return every.take(np.isin(every.visit, visits))

    async def outcomes_after(self, visit: int) -> Outcomes:
        return (await self.outcomes(np.empty(0, dtype=np.int64))).take(np.empty(0, dtype=np.int64))

    async def asked(self, after: int = 0) -> list[Request]:
        return []


class CrashError(Exception):
    """The process died here."""


class Frail(StillWorld):
    """A still world whose crawler dies in the middle of a plan, with half of it stored."""

    def __init__(self, notebook: Notebook, *, dies_at: int | None = None) -> None:
        pages = blank_pages(60, hosts=3)
        super().__init__(replace(pages, added=np.full(60, instant(START))), drop=0.1)
        self.notebook = notebook
        self.dies_at = dies_at
        self.plans: list[Plan] = []

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        self.plans.append(plan)
        if plan.tick.number == self.dies_at:
            half = plan.take(np.arange(len(plan) // 2))
            async for outcomes in super().visit(half):
                self.notebook.known.append(outcomes)
            raise CrashError
        async for outcomes in super().visit(plan):
            self.notebook.known.append(outcomes)
            yield outcomes


def loop_on(world: Frail, clock: VirtualClock) -> Loop:
    ticks = Ticks(clock, HOURS)
    parts = {
        "predictor": Gamma(),
        "policy": Uniform(),
        "spacing": Even(seed=3),
        "ledger": Ledger(Budget.parse(200)),
        "planner": Planner(seed=3),
    }
    memory = Memory({"ticks": ticks, **parts}, world.notebook)
    return Loop(world=world, ticks=ticks, memory=memory, **parts)  # type: ignore[arg-type]


def test_a_killed_loop_plans_what_it_would_have_planned() -> None:
    async def unharmed() -> list[Plan]:
        world = Frail(Notebook())
        await loop_on(world, VirtualClock(START)).run(START + 12 * HOURS)
        return world.plans

    async def killed() -> list[Plan]:
        world, clock = Frail(Notebook(), dies_at=5), VirtualClock(START)
        try:
            await loop_on(world, clock).run(START + 12 * HOURS)
        except CrashError:
            world.dies_at = None
        resumed = loop_on(world, clock)
        await resumed.resume()
        await clock.until(START + 6 * HOURS)
        resumed.memory.keeper = None  # what it remembers now is not what is tested
        async for tick in resumed.ticks.until(START + 12 * HOURS):
            await resumed.make(await resumed.plan(tick))
        return world.plans

    expected, found = asyncio.run(unharmed()), asyncio.run(killed())
    assert len(found) == len(expected) + 1  # the plan of the crash was made in two parts
    for plan, other in zip(expected[6:], found[7:], strict=True):
        assert plan.tick == other.tick
        for column in ("visit", "page", "due", "purpose", "propensity"):
            assert np.array_equal(getattr(plan, column), getattr(other, column)), column


def test_visits_open_at_a_crash_are_made_under_the_same_ids() -> None:
    async def main() -> None:
        world, clock = Frail(Notebook(), dies_at=2), VirtualClock(START)
        try:
            await loop_on(world, clock).run(START + 6 * HOURS)
        except CrashError:
            world.dies_at = None
        planned = world.plans[-1]
        stored = world.notebook.known[-1].visit
        await loop_on(world, clock).resume()
        assert np.array_equal(world.plans[-1].visit, np.setdiff1d(planned.visit, stored))

    asyncio.run(main())


def test_stop_ends_the_run_after_the_tick() -> None:
    async def main() -> None:
        world = Frail(Notebook())
        loop = loop_on(world, VirtualClock(START))

        class Impatient:
            def learn(self, outcomes: Outcomes) -> None:
                loop.stop()

        loop.watchers.append(Impatient())
        await loop.run()
        assert len(world.plans) == 1

    asyncio.run(main())


def test_a_part_that_was_exchanged_starts_afresh() -> None:
    async def main() -> None:
        world, clock = Frail(Notebook()), VirtualClock(START)
        await loop_on(world, clock).run(START + 3 * HOURS)

        class OtherSpacing(Even):
            pass

        loop = loop_on(world, clock)
        loop.spacing = OtherSpacing(seed=3)
        loop.memory = Memory({"spacing": loop.spacing, "ledger": loop.ledger}, world.notebook)
        await loop.resume()
        assert len(loop.spacing.credit_.ids) == 0
        assert loop.ledger.until_ == instant(START + 3 * HOURS)

    asyncio.run(main())
