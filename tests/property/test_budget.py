"""Budget and maximum interval, on the real loop in a world that always answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from salticus.allocate.baselines import Uniform
from salticus.allocate.explore import Explore
from salticus.allocate.limits import Limits, Pins, check_feasible
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Parts
from salticus.errors import Infeasible
from salticus.predict.gamma import Gamma
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.testing import START, StillWorld, a_tick, blank_pages
from salticus.types import DAY, Pages, Times, instant

HOUR = timedelta(hours=1)


def crawl(
    pages: Pages,
    budget: str | float,
    days: float,
    *,
    tick: timedelta = 2 * HOUR,
    drop: float = 0.0,
    explore: float = 0.0,
) -> StillWorld:
    """Run the loop for some days; the world remembers every visit."""
    world = StillWorld(pages, drop=drop)
    parts = Parts(
        ticks=Ticks(VirtualClock(START), tick),
        predictor=Gamma(),
        policy=Uniform(),
        spacing=Even(),
        ledger=Ledger(Budget.parse(budget)),
        planner=Planner(),
        proposers=(Limits(), Pins(), Explore(explore)),
    )
    loop = Loop(world, parts)
    asyncio.run(loop.run(START + timedelta(days=days)))
    return world


def busiest_day(times: Times) -> int:
    """The most visits in any 24 hours."""
    times = np.sort(times)
    return (
        int((np.arange(len(times)) - np.searchsorted(times, times - DAY, "right")).max(initial=-1))
        + 1
    )


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 60),
    visits=st.integers(1, 150),
    hours=st.sampled_from([0.5, 1.0, 2.0, 5.0, 7.0]),
    drop=st.sampled_from([0.0, 0.3]),
)
def test_no_day_exceeds_the_budget(n: int, visits: int, hours: float, drop: float) -> None:
    world = crawl(blank_pages(n), visits, days=5, tick=hours * HOUR, drop=drop)
    assert busiest_day(world.times) <= visits


@settings(max_examples=15, deadline=None)
@given(share=st.floats(0.02, 0.9), hours=st.sampled_from([1.0, 2.0, 6.0]))
@example(share=0.0390625, hours=1.0)  # less than a visit a tick: the fractions must not be lost
def test_the_budget_is_spent_within_a_tick(share: float, hours: float) -> None:
    n, days = 400, 6
    world = crawl(blank_pages(n, hosts=5), f"{share * 100}%", days=days, tick=hours * HOUR)
    budget = np.floor(share * n + 1e-9)
    for day in range(days):
        start = instant(START) + day * DAY
        made = np.count_nonzero((world.times >= start) & (world.times < start + DAY))
        assert budget - share * n * hours / 24 - 1 <= made <= budget


def test_dropped_visits_are_made_up_for() -> None:
    world = crawl(blank_pages(100), 48, days=10, drop=0.2)
    assert len(world.times) >= 0.9 * 480


def test_a_budget_under_one_visit_a_day_is_kept_on_average() -> None:
    world = crawl(blank_pages(1), "25%", days=40)
    assert len(world.times) in (9, 10)


def test_full_hosts_leave_the_rest_to_others() -> None:
    pages = replace(blank_pages(40, hosts=2), capacity=np.array([1.0, 100.0]))
    world = crawl(pages, 120, days=4)
    on_first = np.bincount(np.concatenate(world.rows) % 2)
    assert 44 <= on_first[0] <= 4 * 12
    assert len(world.times) == 480


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_no_page_waits_longer_than_its_maximum_interval(data: st.DataObject) -> None:
    """Feasible settings are kept exactly, with a budget hardly above the one that is needed."""
    n = data.draw(st.integers(1, 40))
    limits = data.draw(st.lists(st.sampled_from([6.0, 12.0, 20.0, 48.0]), min_size=n, max_size=n))
    spare = data.draw(st.integers(0, 20))
    pages = replace(
        blank_pages(n + spare, hosts=3),
        added=np.full(n + spare, instant(START)),
        max_interval=np.array(limits + [np.inf] * spare) / 24,
    )
    with pytest.raises(Infeasible) as refused:
        check_feasible(pages, 1e-6, a_tick())
    assert refused.value.needed is not None
    budget = int(np.ceil(refused.value.needed / 12) * 12)
    check_feasible(pages, budget, a_tick())
    explore = data.draw(st.sampled_from([0.0, 0.02, 0.5]))
    world = crawl(pages, budget, days=8, explore=explore)
    assert busiest_day(world.times) <= budget
    for row in range(n):
        seen = np.sort(world.times_of(row))
        gaps = np.diff(np.concatenate([[instant(START)], seen, [instant(START) + 8 * DAY]]))
        assert gaps.max() <= np.timedelta64(int(limits[row] * 3600), "s")


def test_infeasible_settings_name_the_budget_needed() -> None:
    pages = replace(blank_pages(100), max_interval=np.full(100, 1.0))
    with pytest.raises(Infeasible, match="at least 110 visits a day, but the budget is 100"):
        check_feasible(pages, 100, a_tick())
    check_feasible(pages, 110, a_tick())


def test_a_host_that_cannot_keep_up_is_named() -> None:
    pages = replace(
        blank_pages(100, hosts=2), max_interval=np.full(100, 1.0), capacity=np.array([99.0, 1.0])
    )
    with pytest.raises(Infeasible, match="12 visits a day"):
        check_feasible(pages, 1e6, a_tick())


def test_a_maximum_interval_needs_two_ticks() -> None:
    pages = replace(blank_pages(1), max_interval=np.full(1, 3 / 24))
    with pytest.raises(Infeasible, match="ticks of at most 1.5 h"):
        check_feasible(pages, 1e6, a_tick())


def test_budget_comes_before_the_maximum_interval() -> None:
    pages = replace(blank_pages(50), max_interval=np.full(50, 0.5))
    assert busiest_day(crawl(pages, 30, days=4).times) <= 30


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
    st.sampled_from([0.7, 3, 20, "30%", "100%", "500%"]),
    st.sampled_from([0.0, 0.2]),
)
def test_dear_visits_count_as_many(costs: list[int], budget: str | float, drop: float) -> None:
    pages = replace(blank_pages(len(costs)), cost=np.array(costs, dtype=np.float64))
    days = 20
    world = crawl(pages, budget, days, drop=drop)
    spent = [world.times_of(row).repeat(cost) for row, cost in enumerate(costs)]
    daily = Budget.parse(budget).per_day(len(costs))
    assert busiest_day(np.concatenate(spent)) <= max(daily, max(costs)) + 1e-9
    useful = min(daily, 12 * sum(costs))  # a page is visited once a tick at most
    if not drop:
        total = sum(map(len, spent))
        assert total <= daily * days + 2 * max(daily / 12, max(costs))
        if daily >= 10 * max(costs):  # else the last visit of a day may not fit by far
            assert total >= 0.9 * useful * days - 2 * max(costs)
