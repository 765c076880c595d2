"""Laws that every world obeys."""

from __future__ import annotations

from datetime import timedelta
from functools import reduce

import numpy as np

from salticus.clock import Clock
from salticus.crawl.world import World
from salticus.types import Ints, Outcomes, Pages, Plan, Tick, instant


async def check_world(world: World, clock: Clock, *, tick: timedelta) -> None:
    """Run all laws of `World` on one that holds pages, over three ticks; it is finished after.

    Each tick plans every second page; the last tick is stopped in the middle.
    """
    planned: list[Plan] = []
    outcomes: list[Outcomes] = []
    for number in range(3):
        now = clock.now()
        step = Tick(number, now, now + tick)
        pages = await world.pages(step)
        _are_pages(pages)
        plan = _plan(pages, step, first=1 + sum(map(len, planned)))
        planned.append(plan)
        async for batch in world.visit(plan):
            outcomes.append(batch)
            if number == 2:
                world.stop()
        await clock.until(step.end)
    outcomes += [batch async for batch in world.finish()]
    _settles(planned, outcomes)


def _are_pages(pages: Pages) -> None:
    assert len(pages), "check_world wants a world with pages"
    assert np.all(np.diff(pages.ids) > 0), "law: pages are ordered by id, each once"
    assert np.all(pages.host < len(pages.capacity)), "law: every host has a capacity"
    assert np.all(pages.capacity >= 0), "law: capacities are not negative"


def _plan(pages: Pages, tick: Tick, *, first: int) -> Plan:
    ids: Ints = pages.ids[tick.number % 2 :: 2]
    n = len(ids)
    start, end = instant(tick.start), instant(tick.end)
    due = start + np.linspace(0, 0.8, n) * (end - start)
    return Plan(
        visit=np.arange(first, first + n),
        page=ids,
        due=due.astype("M8[us]"),
        purpose=np.zeros(n, dtype=np.int8),
        propensity=np.ones(n),
        tick=tick,
    )


def _settles(planned: list[Plan], outcomes: list[Outcomes]) -> None:
    plan, got = reduce(Plan.join, planned), reduce(Outcomes.join, outcomes)
    assert len(np.unique(got.visit)) == len(got), "law: one outcome a visit"
    same = np.array_equal(np.sort(got.visit), plan.visit)
    assert same, "law: every visit of a plan has an outcome"
    meant = plan.take(np.searchsorted(plan.visit, got.visit))
    same = np.array_equal(got.page, meant.page)
    assert same, "law: an outcome speaks of the page that was planned"
    assert not np.any(got.made & (got.at < meant.due)), "law: no visit before it is due"
