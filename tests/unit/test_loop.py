"""The loop's own laws: it resumes, it stops, it can be watched."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from salticus.allocate.baselines import Uniform
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Parts
from salticus.crawl.plan import decide
from salticus.crawl.snapshot import Snapshot, no_plan
from salticus.predict.gamma import Gamma
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.testing import START, StillWorld, blank_pages
from salticus.types import (
    Floats,
    Ints,
    Outcomes,
    Pages,
    Plan,
    Purpose,
    Request,
    Tick,
    instant,
    unplanned,
)
from salticus.types.state import Remembers, pack

HOURS = timedelta(hours=2)


class Notebook:
    """Keeps snapshots and outcomes as a store does."""

    def __init__(self) -> None:
        self.blob: bytes | None = None
        self.known: list[Outcomes] = []
        self.urgent: Outcomes | None = None

    async def remember(self, state: Iterable[bytes]) -> None:
        self.blob = b"".join(state)

    async def recall(self) -> bytes | None:
        return self.blob

    async def outcomes(self, visits: Ints) -> Outcomes:
        every = self.known[0]
        for more in self.known[1:]:
            every = every.join(more)
        return every.take(np.isin(every.visit, visits))

    async def outcomes_after(self, visit: int) -> Outcomes:
        if self.urgent is not None:
            return self.urgent
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
    parts = Parts(
        ticks=Ticks(clock, HOURS),
        predictor=Gamma(),
        policy=Uniform(),
        spacing=Even(seed=3),
        ledger=Ledger(Budget.parse(200)),
        planner=Planner(seed=3),
    )
    return Loop(world, parts, Snapshot(parts.named(), world.notebook))


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
        resumed.snapshot.keeper = None  # what it remembers now is not what is tested
        async for tick in resumed.parts.ticks.until(START + 12 * HOURS):
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
        spacing = OtherSpacing(seed=3)
        loop.parts = replace(loop.parts, spacing=spacing)
        loop.snapshot = Snapshot(loop.parts.named(), world.notebook)
        await loop.resume()
        assert len(spacing.credit_.ids) == 0
        assert loop.parts.ledger.until_ == instant(START + 3 * HOURS)

    asyncio.run(main())


class Dear(Frail):
    """A frail world in which visits can begin at any moment; a visit to page 7 costs 5."""

    async def urge(self, plan: Plan) -> None:
        """Begun, and answered after the last snapshot."""

    async def costs(self, pages: Ints) -> Floats:
        return np.where(pages == 7, 5.0, 1.0)


def test_an_urgent_visit_is_charged_what_it_cost_after_a_kill() -> None:
    async def main() -> None:
        world, clock = Dear(Notebook(), dies_at=2), VirtualClock(START)
        with suppress(CrashError):
            await loop_on(world, clock).run(START + 6 * HOURS)
        known = loop_on(world, clock)
        await known.recover()
        balance, open_ = known.parts.ledger.balance_, known.parts.ledger.open_
        urgent = Outcomes.known(
            visit=unplanned(instant(clock.now()), 2),
            page=np.array([7, 8]),
            at=np.full(2, instant(clock.now())),
            purpose=np.full(2, Purpose.INSTA, dtype=np.int8),
        )
        world.notebook.urgent = urgent
        loop = loop_on(world, clock)
        await loop.recover()
        assert loop.parts.ledger.balance_ == pytest.approx(balance - 6)
        assert loop.parts.ledger.open_ == open_
        made = np.concatenate([loop.parts.ledger.made_, *loop.parts.ledger._new])
        assert np.count_nonzero(made == urgent.at[0]) >= 6, "one visit counts as five"

    asyncio.run(main())


class Slow(Gamma):
    """A predictor that takes until the event loop has turned a hundred times meanwhile."""

    def __init__(self, turned: threading.Event) -> None:
        super().__init__()
        self.turned = turned

    def meet(self, pages: Pages, now: datetime) -> None:
        assert self.turned.wait(600), "planning stops the event loop"
        super().meet(pages, now)


def test_planning_does_not_stop_the_event_loop() -> None:
    async def main() -> None:
        loop, turned = loop_on(Frail(Notebook()), VirtualClock(START)), threading.Event()
        loop.parts, loop.threaded = replace(loop.parts, predictor=Slow(turned)), True
        planned = asyncio.create_task(loop.plan(Tick(0, START, START + HOURS)))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not planned.done()
        turned.set()
        assert len(await planned)

    asyncio.run(main())


def test_urgent_visits_wait_while_a_tick_is_planned() -> None:
    """What they spend belongs to the tick that is being planned."""

    async def main() -> None:
        loop, turned = loop_on(Dear(Notebook()), VirtualClock(START)), threading.Event()
        loop.parts, loop.threaded = replace(loop.parts, predictor=Slow(turned)), True
        planned = asyncio.create_task(loop.plan(Tick(0, START, START + HOURS)))
        for _ in range(10):
            await asyncio.sleep(0)
        asked: list[str] = []

        def propose() -> tuple[None, Plan]:
            asked.append("now")
            return None, no_plan(START)

        urged = asyncio.create_task(loop.urge(propose))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not asked
        turned.set()
        await planned
        await urged
        assert asked == ["now"]

    asyncio.run(main())


def kept(loop: Loop) -> bytes:
    """What the parts have to remember."""
    parts = loop.parts.named().items()
    return pack({name: part.state() for name, part in parts if isinstance(part, Remembers)})


def test_a_plan_changes_nothing() -> None:
    async def main() -> None:
        world = Frail(Notebook())
        loop = loop_on(world, VirtualClock(START))
        await loop.run(START + 4 * HOURS)
        pages = await world.pages(Tick(9, START + 4 * HOURS, START + 5 * HOURS))
        parts = {
            name: part for name, part in loop.parts.named().items() if isinstance(part, Remembers)
        }
        before = pack({name: part.state() for name, part in parts.items()})
        first, again = (decide(loop.parts, pages, gauged=True) for _ in range(2))
        assert pack({name: part.state() for name, part in parts.items()}) == before
        for column in ("visit", "page", "due", "purpose", "propensity", "chance"):
            one, other = getattr(first.plan, column), getattr(again.plan, column)
            assert np.array_equal(one, other, equal_nan=column == "chance"), column

    asyncio.run(main())
