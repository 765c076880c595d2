"""The replayed world: the order within a tick, what visits see, and the running score."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.checks.world import check_world
from salticus.clock import VirtualClock
from salticus.exchange.truth import GONE, Truth, sample
from salticus.lab.simulate.readers import Drawn
from salticus.lab.worlds.copies import SimulatedCopies
from salticus.lab.worlds.replay import Replay, fully_observed
from salticus.testing import START, a_tick
from salticus.types import CHANGED, DAY, UNCHANGED, UNKNOWN, Outcomes, Plan, Status, Tick, instant

HOUR = np.timedelta64(1, "h")


def truth_of(*points: tuple[int, float, int], failure: float = 0.0) -> Truth:
    """Pages by (page, hours after the start of 2026, value); numbered by birth."""
    at = instant(START) + (np.array([p[1] for p in points]) * 3600e6).astype("m8[us]")
    order = np.argsort(at, kind="stable")
    page = np.array([p[0] for p in points])[order]
    n = page.max() + 1
    born = np.array([at[order][page == k].min() for k in range(n)])
    return Truth(
        names=pl.Series(np.arange(n)),
        ids=np.arange(n),
        born=born,
        failure=np.full(n, failure),
        host=np.zeros(n, dtype=np.int64),
        merchant=np.full(n, -1),
        category=np.full(n, -1),
        page=page,
        at=at[order],
        value=np.array([p[2] for p in points])[order],
    )


def world_of(truth: Truth) -> Replay:
    return Replay(truth, Drawn(np.ones(len(truth))))


def plan_of(pages: list[int], tick: Tick) -> Plan:
    n = len(pages)
    return Plan(
        visit=np.arange(n),
        page=np.array(pages, dtype=np.int64),
        due=np.full(n, instant(tick.start)),
        purpose=np.zeros(n, dtype=np.int8),
        propensity=np.ones(n),
        tick=tick,
    )


def visit(world: Replay, pages: list[int], number: int) -> Outcomes:
    async def go() -> Outcomes:
        batches = [batch async for batch in world.visit(plan_of(pages, a_tick(number)))]
        return batches[0]

    return asyncio.run(go())


def test_the_laws_of_worlds() -> None:
    truth = truth_of(*((k, -1.0, k) for k in range(10)), *((k, k + 0.5, 50) for k in range(10)))
    asyncio.run(check_world(world_of(truth), VirtualClock(START), tick=timedelta(hours=2)))


def test_a_visit_sees_the_changes_of_its_tick_and_not_later_ones() -> None:
    world = world_of(truth_of((0, -1, 7), (0, 1, 8), (0, 2, 9)))  # ticks of two hours
    world.begin(START)
    world.sync(START - timedelta(hours=2))
    outcomes = visit(world, [0], 0)
    assert outcomes.changed.tolist() == [CHANGED]
    assert world.copies.held.tolist() == [8]
    assert world.copies.fresh_count == 1
    assert visit(world, [], 1).visit.size == 0
    assert world.copies.fresh_count == 0


def test_people_read_after_the_visits() -> None:
    seen: list[int] = []

    class Reader:
        def read(self, tick: Tick, copies: SimulatedCopies) -> None:
            seen.append(copies.fresh_count)

    world = Replay(truth_of((0, -1, 7), (0, 1, 8)), Drawn(np.ones(1)), [Reader()])
    visit(world, [0], 0)
    assert seen == [1]


def test_pages_are_known_from_their_birth() -> None:
    world = world_of(truth_of((0, -1, 7), (1, 3, 7), (2, 5, 7)))
    counts = [len(asyncio.run(world.pages(a_tick(number)))) for number in range(4)]
    assert counts == [1, 1, 2, 3]


def test_first_answers_gone_pages_and_failures_say_nothing_of_change() -> None:
    world = world_of(truth_of((0, -1, 7), (1, -1, 3), (1, 0.5, GONE), (1, 3, 4)))
    first = visit(world, [0, 1], 0)
    assert first.changed.tolist() == [UNKNOWN, UNKNOWN]
    assert first.status.tolist() == [Status.OK, Status.GONE]
    assert world.copies.fresh_count == 2  # to know that a page is gone is to be right
    assert visit(world, [0, 1], 1).changed.tolist() == [UNCHANGED, UNKNOWN]
    failing = world_of(truth_of((0, -1, 7), (0, 1, 8), failure=1.0))
    failing.begin(START)
    failing.sync(START)
    outcomes = visit(failing, [0], 0)
    assert (outcomes.status[0], outcomes.changed[0]) == (Status.TIMEOUT, UNKNOWN)
    assert failing.copies.fresh_count == 0


def test_a_value_that_comes_back_is_fresh_but_not_untouched() -> None:
    world = world_of(truth_of((0, -1, 7), (0, 1, 8), (0, 3, 7)))
    world.begin(START)
    world.sync(START)
    visit(world, [], 0)
    visit(world, [], 1)
    assert (world.copies.fresh_count, world.copies.untouched) == (1, 0)
    assert visit(world, [0], 2).changed.tolist() == [UNCHANGED]
    assert (world.copies.caught, world.copies.missed) == (0, 2)


change = st.tuples(st.integers(0, 4), st.integers(0, 40), st.integers(0, 3))


@settings(max_examples=40, deadline=None)
@given(
    changes=st.lists(change, max_size=40),
    visits=st.lists(st.lists(st.integers(0, 4), unique=True), min_size=20, max_size=20),
)
def test_the_running_score_is_what_a_recount_gives(
    changes: list[tuple[int, int, int]], visits: list[list[int]]
) -> None:
    """Law: every sum that is kept equals the sum over all pages, computed anew."""
    truth = truth_of(*((k, -1, 9) for k in range(5)), *changes)
    world = world_of(truth)
    world.copies.weigh(np.arange(1.0, 6.0))
    stale_since: dict[int, np.datetime64] = {}
    pending = np.zeros(5, dtype=int)
    for number, pages in enumerate(visits):
        tick = a_tick(number)
        first, last = (
            truth.before(instant(tick.start)) * (number > 0),
            truth.before(instant(tick.end)),
        )
        for page, at in zip(truth.page[first:last], truth.at[first:last], strict=True):
            pending[page] += at > truth.born[page]
            stale_since.setdefault(int(page), at)
        visit(world, pages, number)
        pending[pages] = 0
        copies = world.copies
        fresh = copies.held == copies.true
        for page in np.flatnonzero(fresh):
            stale_since.pop(int(page), None)
        assert copies.born == 5
        assert copies.fresh_count == fresh.sum()
        assert copies.fresh.tolist() == fresh.tolist()
        assert copies.fresh_weight == pytest.approx(np.arange(1.0, 6.0)[fresh].sum())
        assert copies.pending.tolist() == pending.tolist()
        assert copies.untouched == ((pending == 0) & (copies.held >= 0)).sum()
        assert copies.harmonic == pytest.approx(
            sum(1 / k for p in pending for k in range(1, p + 1))
        )
        now = instant(tick.end)
        age = sum(float((now - at) / DAY) for at in stale_since.values())
        assert copies.age_days(now) == pytest.approx(age, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(changes=st.lists(change, max_size=30))
def test_full_observation_tells_what_a_visit_at_every_step_would(
    changes: list[tuple[int, int, int]],
) -> None:
    """Law: the same changes at the same steps, and the same time watched in all, per page."""
    points = {(page, hour): value for page, hour, value in changes}
    truth = truth_of(*((k, -1, 9) for k in range(5)), *((*k, v) for k, v in points.items()))
    end, step = START + timedelta(hours=40), timedelta(hours=4)
    told = [o for o in fully_observed(truth, START, end, step) if len(o)]
    got = {
        (int(page), (at - instant(START)) // (4 * HOUR))
        for outcomes in told
        for page, at, changed in zip(outcomes.page, outcomes.at, outcomes.changed, strict=True)
        if changed == CHANGED
    }
    assert got == {(p, h // 4) for p, h in points if 4 <= h < 40}
    watched = np.zeros(5)
    for outcomes in told:
        assert np.all(outcomes.since < outcomes.at)
        np.add.at(watched, outcomes.page, (outcomes.at - outcomes.since) / HOUR)
    assert watched.tolist() == [36.0] * 5


def test_a_sample_is_random_repeatable_and_of_early_pages() -> None:
    truth = truth_of(*((k, -1.0, 1) for k in range(50)), *((k, 100.0, 1) for k in range(50, 90)))
    some = sample(truth, 20, START, seed=3)
    assert len(some) == 20
    assert some.ids.max() < 50
    assert some.ids.tolist() == sample(truth, 20, START, seed=3).ids.tolist()
    assert some.ids.tolist() != sample(truth, 20, START, seed=4).ids.tolist()
    assert len(sample(truth, 500, START, seed=3)) == 50
    assert np.array_equal(some.names.to_numpy(), some.ids)
    assert set(some.page) == set(range(20))


def test_taking_pages_keeps_their_histories() -> None:
    truth = truth_of((0, -1, 7), (1, -1, 8), (1, 2, 9))
    cut = truth.take(np.array([False, True]))
    assert (cut.ids.tolist(), cut.page.tolist(), cut.value.tolist()) == ([1], [0, 0], [8, 9])
    assert replace(cut).failure.tolist() == [0.0]
