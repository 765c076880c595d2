"""Laws that every world obeys."""

from __future__ import annotations

from datetime import timedelta

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
    visits = np.concatenate([plan.visit for plan in planned])
    pages = np.concatenate([plan.page for plan in planned])
    due = np.concatenate([plan.due for plan in planned])
    got = np.concatenate([batch.visit for batch in outcomes])
    assert len(np.unique(got)) == len(got), "law: one outcome a visit"
    assert np.array_equal(np.sort(got), visits), "law: every visit of a plan has an outcome"
    rows = np.searchsorted(visits, got)
    same = np.array_equal(np.concatenate([batch.page for batch in outcomes]), pages[rows])
    assert same, "law: an outcome speaks of the page that was planned"
    made = np.concatenate([batch.made for batch in outcomes])
    early = np.concatenate([batch.at for batch in outcomes]) < due[rows]
    assert not np.any(early & made), "law: no visit before it is due"
