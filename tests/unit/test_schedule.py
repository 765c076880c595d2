"""Ledger, planner, spacing and ticks by themselves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from salticus.checks.samples import some_outcomes
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner, spread
from salticus.schedule.ticks import Ticks
from salticus.testing import START, a_tick, blank_pages
from salticus.types import DAY, NEVER, Draw, Outcomes, Purpose, instant
from salticus.types.coins import coins
from salticus.types.state import Keyed, pack, unpack


def test_coins_are_fair_and_independent() -> None:
    ids = np.arange(100_000)
    first, second = coins(1, ids, 0), coins(1, ids, 1)
    assert abs(first.mean() - 0.5) < 0.005
    assert np.abs(np.histogram(first, 20, (0, 1))[0] / 5000 - 1).max() < 0.06
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.01
    assert abs(np.corrcoef(first, coins(2, ids, 0))[0, 1]) < 0.01
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.01


@given(st.integers(0, 2**40), st.lists(st.integers(0, 2**60), min_size=1, max_size=20, unique=True))
def test_a_coin_depends_on_nothing_but_seed_page_and_tick(seed: int, ids: list[int]) -> None:
    together = coins(seed, np.array(ids), 7)
    alone = np.array([coins(seed, np.array([one]), 7)[0] for one in ids])
    assert np.array_equal(together, alone)
    assert np.all((together >= 0) & (together < 1))


def test_even_visits_come_at_even_intervals() -> None:
    pages, even = blank_pages(30).answered(np.full(30, instant(START))), Even()
    rates = np.repeat([0.1, 0.2, 0.5], 10)
    seen: list[list[int]] = [[] for _ in range(30)]
    for number in range(200):
        draw = even.draw(pages, rates, 8, a_tick(number))
        even.keep(pages, draw)
        for row in draw.rows:
            seen[row].append(number)
    for row, ticks in enumerate(seen):
        gaps = np.diff(ticks)
        assert abs(gaps.mean() * rates[row] - 1) < 0.05
        assert gaps.max() - gaps.min() <= 2 + 0.3 / rates[row]


def test_pages_never_visited_come_first() -> None:
    pages = blank_pages(20)
    pages.last_visit[:15] = instant(START)
    rows = Even().draw(pages, np.full(20, 0.25), 5, a_tick()).rows
    assert sorted(rows.tolist()) == [15, 16, 17, 18, 19]


def test_even_gives_dropped_visits_their_credit_back() -> None:
    pages, even = blank_pages(10), Even()
    draw = even.draw(pages, np.full(10, 0.3), 3, a_tick(0))
    even.keep(pages, draw)
    first = draw.rows
    dropped = replace(some_outcomes(pages).take(first), made=np.zeros(3, dtype=np.bool_))
    even.learn(dropped)
    again = even.draw(pages, np.full(10, 0.3), 3, a_tick(1)).rows
    assert sorted(again.tolist()) == sorted(first.tolist())


def test_a_dropped_visit_that_cost_no_credit_gets_none_back() -> None:
    pages, even = blank_pages(10), Even()
    even.keep(pages, even.draw(pages, np.full(10, 0.3), 3, a_tick(0)))
    credit = even.credit_.values.copy()
    explored = np.full(10, Purpose.EXPLORE, dtype=np.int8)
    nothing = np.zeros(10, dtype=np.bool_)
    even.learn(replace(some_outcomes(pages), made=nothing, purpose=explored))
    assert np.array_equal(even.credit_.values, credit)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 9))
def test_each_hosts_visits_are_spread_evenly(hosts: list[int], seed: int) -> None:
    host = np.array(hosts)
    place = spread(host, coins(seed, np.arange(len(host)), 0))
    assert np.all((place >= 0) & (place < 1))
    for name in set(hosts):
        gaps = np.diff(np.sort(place[host == name]))
        assert np.allclose(gaps, 1 / (host == name).sum())


def test_visit_ids_are_never_used_twice_and_due_times_respect_the_ledger() -> None:
    pages, planner, ledger = blank_pages(50), Planner(), Ledger(Budget.parse(240))
    ids: list[int] = []
    for number in range(30):
        tick = a_tick(number)
        grant = ledger.grant(pages, tick)
        rows = np.arange(min(50, grant.visits))
        draws = [(Purpose.LIMIT, Draw.sure(rows[:2])), (Purpose.POLICY, Draw.sure(rows[2:]))]
        plan = planner.plan(pages, draws, tick, grant)
        planner.number(plan)
        ledger.open(grant, tick)
        ledger.spend(plan.visit, np.ones(len(plan)))
        assert np.all(np.diff(plan.due.astype(np.int64)) >= 0)
        assert np.all(plan.due >= grant.release[: len(plan)])
        assert np.all((plan.due >= instant(tick.start)) & (plan.due < instant(tick.end)))
        assert np.count_nonzero(plan.purpose == Purpose.LIMIT) == min(2, len(rows))
        made = replace(Outcomes.dropped(plan, instant(START)), at=plan.due)
        ledger.learn(replace(made, made=np.ones(len(plan), dtype=np.bool_)))
        ids += plan.visit.tolist()
    assert len(ids) == len(set(ids)) > 500


def test_a_page_drawn_twice_is_visited_once_for_the_later_purpose() -> None:
    pages, grant = blank_pages(5), Ledger(Budget.parse(240)).grant(blank_pages(5), a_tick())
    explored = Draw(np.array([1, 3]), np.full(2, 0.25))
    draws = [
        (Purpose.LIMIT, Draw.sure(np.array([3, 0]))),
        (Purpose.EXPLORE, explored),
        (Purpose.POLICY, Draw.sure(np.array([4]))),
    ]
    plan = Planner().plan(pages, draws, a_tick(), grant)
    by_page = dict(zip(plan.page.tolist(), plan.purpose.tolist(), strict=True))
    explore = Purpose.EXPLORE
    assert by_page == {0: Purpose.LIMIT, 1: explore, 3: explore, 4: Purpose.POLICY}
    assert np.array_equal(plan.propensity == 0.25, plan.purpose == Purpose.EXPLORE)


def test_a_fixed_interval_ends_when_it_says() -> None:
    """Where it ends within the tick; the late and the new are spread like the rest."""
    start = instant(START)
    pages = replace(
        blank_pages(4),
        last_visit=np.array([start - DAY + 60_000_000, start - 3 * DAY, NEVER, start]),
        interval=np.array([1.0, 1.0, 1.0, np.nan]),
    )
    grant = Ledger(Budget.parse(240)).grant(pages, a_tick())
    plan = Planner().plan(pages, [(Purpose.LIMIT, Draw.sure(np.arange(4)))], a_tick(), grant)
    due = dict(zip(plan.page.tolist(), plan.due, strict=True))
    assert due[0] == start + 60_000_000
    assert all(start <= due[row] < instant(a_tick().end) for row in range(4))


def test_an_idle_ledger_carries_one_tick_only() -> None:
    ledger, pages = Ledger(Budget.parse(240)), blank_pages(1000)
    first = ledger.grant(pages, a_tick(0))
    assert first.visits == 20
    ledger.open(first, a_tick(0))
    assert ledger.grant(pages, a_tick(40)).visits == 40


def test_once_a_day_may_spend_the_days_budget() -> None:
    ledger, pages = Ledger(Budget.parse(240), carry=timedelta(days=1)), blank_pages(1000)
    first = ledger.grant(pages, a_tick(0))
    assert first.visits == 240
    ledger.open(first, a_tick(0))
    assert ledger.grant(pages, a_tick(12)).visits == 240


def test_a_single_page_is_visited_at_once() -> None:
    assert Ledger(Budget.parse("10%")).grant(blank_pages(1), a_tick()).visits == 1


def test_ticks_are_consecutive_and_the_last_is_cut() -> None:
    async def main() -> None:
        ticks = Ticks(VirtualClock(START), timedelta(hours=2))
        found = [tick async for tick in ticks.until(START + timedelta(hours=5))]
        assert [tick.number for tick in found] == [0, 1, 2]
        assert all(a.end == b.start for a, b in zip(found, found[1:], strict=False))
        assert found[-1].end == START + timedelta(hours=5)

    asyncio.run(main())


def test_memories_are_packed_without_loss() -> None:
    states = {
        "a": {"x": np.arange(3), "y": np.array(1.5)},
        "b.C": {"t": np.array(["2026"], "M8[us]")},
    }
    back = unpack(pack(states))
    assert back.keys() == states.keys()
    for part, state in states.items():
        assert all(np.array_equal(back[part][name], array) for name, array in state.items())


@given(st.data())
def test_keyed_values_follow_their_pages(data: st.DataObject) -> None:
    ids = st.lists(st.integers(0, 30), unique=True).map(sorted)
    old, new = np.array(data.draw(ids), dtype=np.int64), np.array(data.draw(ids), dtype=np.int64)
    keyed = Keyed()
    keyed.put(old, old * 1.5)
    found = keyed.get(new, np.full(len(new), -1.0))
    assert np.array_equal(found, np.where(np.isin(new, old), new * 1.5, -1.0))
