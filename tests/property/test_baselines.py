"""The baselines on the real loop, and the shares they are made of."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus import allocate, plugins, schedule
from salticus.allocate.base import Policy
from salticus.allocate.baselines import RoundRobin
from salticus.allocate.fixed_interval import FixedInterval
from salticus.allocate.share import first, in_proportion
from salticus.checks.samples import some_outcomes, some_pages
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Parts
from salticus.crawl.snapshot import Snapshot
from salticus.predict.gamma import Gamma
from salticus.schedule.base import Spacing
from salticus.schedule.coin import Coin
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.testing import START, MemoryStore, StillWorld, a_tick, blank_pages
from salticus.types import Pages

TICK = timedelta(hours=2)


def crawl(
    pages: Pages, policy: Policy, spacing: Spacing, *, budget: float, days: float, drop: float = 0.0
) -> StillWorld:
    """Run the real loop in a world that always answers."""
    world = StillWorld(pages, drop=drop)
    loop = loop_of(world, policy, spacing, budget=budget)
    asyncio.run(loop.run(START + timedelta(days=days)))
    return world


def loop_of(
    world: StillWorld,
    policy: Policy,
    spacing: Spacing,
    *,
    budget: float,
    store: MemoryStore | None = None,
) -> Loop:
    parts = Parts(
        ticks=Ticks(VirtualClock(START), TICK),
        predictor=Gamma(),
        policy=policy,
        spacing=spacing,
        ledger=Ledger(Budget.parse(budget)),
        planner=Planner(),
    )
    return Loop(world, parts, Snapshot(parts.named(), store))


def made(policy: str, spacing: str) -> tuple[Policy, Spacing]:
    return (
        plugins.load("policy", policy, allocate.BUILTIN)(),
        plugins.load("spacing", spacing, schedule.BUILTIN)(seed=5),
    )


def mixed(n: int, *, hosts: int = 3) -> Pages:
    """Pages unlike in demand and history."""
    return replace(some_pages(n, hosts=hosts, seed=4), cost=np.ones(n), survival=None)


@cache
def usual(drop: float) -> list[int]:
    """Visits of each tick under the uniform policy, which spends all it is given."""
    world = crawl(mixed(90), *made("uniform", "even"), budget=50, days=4, drop=drop)
    return [len(rows) for rows in world.rows]


@pytest.mark.parametrize("drop", [0.0, 0.2])
@pytest.mark.parametrize("spacing", schedule.BUILTIN)
@pytest.mark.parametrize("policy", allocate.BUILTIN)
def test_every_tick_spends_what_it_is_given(policy: str, spacing: str, drop: float) -> None:
    parts = made(policy, spacing)
    world = crawl(mixed(90), *parts, budget=50, days=4, drop=drop)
    visits = [len(rows) for rows in world.rows]
    assert all(len(np.unique(rows)) == len(rows) for rows in world.rows), "a page twice in a tick"
    if getattr(parts[0], "spends", True):
        assert visits == usual(drop)
    else:
        assert sum(visits) <= sum(usual(drop))
        assert sum(visits) >= 90


@pytest.mark.parametrize("spacing", schedule.BUILTIN)
@pytest.mark.parametrize("policy", allocate.BUILTIN)
def test_no_policy_goes_beyond_what_hosts_can_take(policy: str, spacing: str) -> None:
    room = np.array([1.0, 0.5, 40.0])
    pages = replace(mixed(90), capacity=room)
    world = crawl(pages, *made(policy, spacing), budget=120, days=2)
    for rows in world.rows:
        load = np.bincount(pages.host[rows], minlength=3)
        assert np.all(load <= np.ceil(room))
    if policy != "fixed_interval":
        assert sum(map(len, world.rows)) == 240


@pytest.mark.parametrize("spacing", [Even, Coin])
def test_round_robin_visits_all_pages_equally_often(spacing: type[Even] | type[Coin]) -> None:
    world = crawl(blank_pages(70), RoundRobin(), spacing(), budget=120, days=7)
    often = np.bincount(np.concatenate(world.rows), minlength=70)
    assert often.max() - often.min() <= 1


@pytest.mark.parametrize("spacing", [Even, Coin])
def test_cron_keeps_its_interval(spacing: type[Even] | type[Coin]) -> None:
    """100 pages, 24 visits a day: 4.2 days are needed, so cron comes every 7, to the tick."""
    policy = FixedInterval()
    world = crawl(blank_pages(100), policy, spacing(), budget=24, days=40)
    assert policy.kept_.interval == 7.0
    for row in range(100):
        gaps = np.diff(np.sort(world.times_of(row)))
        assert np.all(np.abs(gaps - np.timedelta64(7, "D")) <= np.timedelta64(TICK))
        assert len(gaps) >= 4


@settings(max_examples=12, deadline=None)
@given(
    policy=st.sampled_from(sorted(allocate.BUILTIN)),
    spacing=st.sampled_from(sorted(schedule.BUILTIN)),
    after=st.integers(1, 30),
)
def test_a_restart_changes_no_visit(policy: str, spacing: str, after: int) -> None:
    """Stopped between two ticks and taken up by new parts, a crawl goes on as if it had not."""
    whole = crawl(mixed(40), *made(policy, spacing), budget=30, days=4)
    world, store = StillWorld(mixed(40)), MemoryStore()
    for until in (after * TICK, timedelta(days=4)):
        loop = loop_of(world, *made(policy, spacing), budget=30, store=store)
        begun = START if until == after * TICK else START + after * TICK
        loop.parts.ticks.clock = VirtualClock(begun)
        asyncio.run(loop.run(START + until))
    assert np.array_equal(np.concatenate(whole.rows), np.concatenate(world.rows))
    assert np.array_equal(whole.times, world.times)


# ------------------------------------------------------------------------------------------- shares


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=30),
    st.floats(0, 35) | st.integers(0, 35).map(float),
)
def test_the_first_are_those_that_sorting_puts_first(
    rows: list[tuple[int, int]], visits: float
) -> None:
    order = np.array([a for a, _ in rows], dtype=np.int64)
    then = np.array([b for _, b in rows], dtype=np.float64)
    expected = first(order, visits, then)
    assert expected.sum() == pytest.approx(min(visits, len(rows)))
    assert np.all((expected >= 0) & (expected <= 1))
    for a, one in zip(rows, expected, strict=True):
        for b, other in zip(rows, expected, strict=True):
            assert one == other if a == b else a > b or one == 1 or other == 0


WEIGHTS = st.just(0.0) | st.floats(0.01, 100) | st.floats(1e-100, 1e100)


@settings(max_examples=100)
@given(st.lists(WEIGHTS, max_size=40), st.floats(1e-3, 45) | st.integers(1, 45).map(float))
def test_water_filling_is_exact(found: list[float], visits: float) -> None:
    weights = np.array(found, dtype=np.float64)
    expected = in_proportion(weights, visits)
    assert np.all((expected >= 0) & (expected <= 1))
    assert expected.sum() == pytest.approx(min(visits, len(weights)))
    some, free = weights > 0, expected < 1
    price = weights[some & free] / expected[some & free]
    assert price == pytest.approx(np.full(len(price), price.min(initial=np.inf)), rel=1e-9)
    assert np.all(weights[some & ~free] >= price.max(initial=0) * (1 - 1e-9))
    assert np.all(expected[some] == 1) or not expected[~some].any()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(allocate.BUILTIN)), st.integers(0, 99), st.floats(0, 50))
def test_answers_do_not_depend_on_the_order_in_which_pages_were_learnt(
    policy: str, seed: int, visits: float
) -> None:
    pages, outcomes = some_pages(40, seed=seed), some_outcomes(some_pages(40, seed=seed), seed=seed)
    one, two = made(policy, "even")[0], made(policy, "even")[0]
    one.learn(outcomes)
    shuffled = np.random.default_rng(seed).permutation(40)
    two.learn(outcomes.take(shuffled[:15]))
    two.learn(outcomes.take(shuffled[15:]))
    later = replace(pages, tick=a_tick(30))
    assert np.array_equal(one.expected(later, visits), two.expected(later, visits))
