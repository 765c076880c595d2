"""The event-driven form: the earliest first, the budget exactly, freshness as the theory says."""

from __future__ import annotations

import numpy as np
import pytest

from salticus.allocate.agenda import Agenda
from salticus.allocate.intervals import worth
from salticus.errors import InputError
from salticus.predict.gamma import GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.types import Floats, Ints


def instance(n: int, seed: int) -> tuple[Floats, Floats]:
    """Change rates and demands of the kind that ALGORITHMS §3 measures."""
    chance = np.random.default_rng(seed)
    return chance.lognormal(-1.0, 1.5, n), chance.pareto(1.5, n) + 1.0


def started(rates: Floats, demand: Floats, visits: float, explore: float = 0.0) -> Agenda:
    """An agenda whose pages stand anywhere in their intervals, as after a long crawl."""
    n = len(rates)
    agenda = Agenda(np.zeros(n), explore=explore)
    agenda.reprice(demand, rates, visits)
    phase = np.random.default_rng(n).random(n)
    last = -phase * np.where(np.isfinite(agenda.interval_), agenda.interval_, 1e3)
    agenda = Agenda(last, explore=explore)
    agenda.reprice(demand, rates, visits)
    return agenda


def freshness(rates: Floats, demand: Floats, last: Floats, visits: tuple[Ints, Floats]) -> float:
    """Expected demand-weighted freshness from the first visit on; `last` are those before it."""
    (rows, at), everyone = visits, np.arange(len(rates))
    page = np.concatenate([everyone, rows])
    when = np.concatenate([last, at])
    order = np.lexsort((when, page))
    page, when = page[order], when[order]
    until = np.append(when[1:], 0.0)
    until[np.append(page[1:] != page[:-1], True)] = at[-1]
    young, old = np.maximum(at[0] - when, 0.0), until - when
    held = np.exp(-rates[page] * young) - np.exp(-rates[page] * old)
    fresh = demand[page] * held / rates[page]
    return float(fresh.sum() / ((at[-1] - at[0]) * demand.sum()))


def optimum(rates: Floats, demand: Floats, interval: Floats) -> float:
    """What visits at exactly these intervals would reach."""
    x = rates * interval
    some = np.isfinite(x)
    return float((demand[some] * -np.expm1(-x[some]) / x[some]).sum() / demand.sum())


@pytest.mark.parametrize(("n", "seed", "share"), [(500, 1, 0.1), (1000, 2, 0.3), (2000, 3, 1.0)])
def test_freshness_is_that_of_the_optimum(n: int, seed: int, share: float) -> None:
    rates, demand = instance(n, seed)
    visits = share * float(rates.sum())
    agenda = started(rates, demand, visits)
    warm = 40 * n
    agenda.plan(warm, start=0.0, spacing=1 / visits)
    many = 200 * n
    at, last = (warm + np.arange(many)) / visits, agenda.last_.copy()
    rows = agenda.plan(many, start=float(at[0]), spacing=1 / visits)
    assert len(rows) == many
    got = freshness(rates, demand, last, (rows, at))
    assert got == pytest.approx(optimum(rates, demand, agenda.interval_), abs=0.002)


def test_the_intervals_spend_the_budget() -> None:
    rates, demand = instance(1000, 4)
    agenda = Agenda(np.zeros(1000), explore=0.1)
    agenda.reprice(demand, rates, 200.0)
    assert np.sum(1 / agenda.interval_) == pytest.approx(180.0, rel=1e-6)
    agenda.reprice(demand, GammaSurvival(np.ones(1000), 1 / rates), 200.0)
    assert np.sum(1 / agenda.interval_) == pytest.approx(180.0, rel=1e-6)


def test_a_page_is_due_when_its_worth_reaches_the_price() -> None:
    rates, demand = instance(300, 5)
    curves = PoissonSurvival(rates)
    agenda = started(rates, demand, 50.0)
    for _ in range(200):
        due, row = agenda.due_, agenda.next()
        assert row is not None
        age = np.full(300, due - agenda.last_[row])
        assert worth(curves, demand, age)[row] == pytest.approx(agenda.price_, rel=1e-6)
        agenda.visited(row, due)


def test_pages_come_in_the_order_in_which_they_are_due() -> None:
    rates, demand = instance(400, 6)
    agenda = started(rates, demand, 100.0)
    due = agenda.last_ + agenda.interval_
    wanted = [row for row in np.argsort(due, kind="stable").tolist() if np.isfinite(due[row])]
    assert [agenda.next() for _ in wanted] == wanted


def test_of_equal_pages_the_one_of_the_highest_worth_comes_next() -> None:
    """Then the agenda is the greedy rule itself: each slot, the page of the highest V."""
    n, visits = 12, 4.0
    rates, demand = np.full(n, 0.7), np.full(n, 2.0)
    agenda = started(rates, demand, visits)
    last, curves = agenda.last_.copy(), PoissonSurvival(rates)
    at = 0.0
    for _ in range(100):
        best = int(np.argmax(worth(curves, demand, at - last)))
        assert agenda.next() == best
        agenda.visited(best, at)
        last[best], at = at, at + 1 / visits


def test_unequal_pages_are_visited_as_often_as_by_the_greedy_rule() -> None:
    rates, demand = instance(40, 7)
    visits = 0.3 * float(rates.sum())
    agenda, curves = started(rates, demand, visits), PoissonSurvival(rates)
    at = np.arange(8000) / visits
    last, greedy = agenda.last_.copy(), np.zeros(40)
    for now in at:
        best = int(np.argmax(worth(curves, demand, now - last)))
        last[best], greedy[best] = now, greedy[best] + 1
    ours = np.bincount(agenda.plan(8000, start=0.0, spacing=1 / visits), minlength=40)
    assert np.abs(ours - greedy).sum() / 2 < 0.03 * 8000


def test_a_plan_is_so_many_single_decisions() -> None:
    rates, demand = instance(100, 8)
    one, many = (started(rates, demand, 20.0, explore=0.07) for _ in range(2))
    singly = []
    for k in range(500):
        row = one.next()
        assert row is not None
        one.visited(row, k * 0.05)
        singly.append(row)
    assert many.plan(500, start=0.0, spacing=0.05).tolist() == singly
    assert (one.last_ == many.last_).all()


def test_exploration_has_its_quota_and_reaches_every_page_in_turn() -> None:
    rates, demand = instance(500, 9)
    agenda = started(rates, demand, 0.05 * float(rates.sum()), explore=0.25)
    dropped = np.flatnonzero(np.isinf(agenda.interval_))
    assert len(dropped) > 100
    rows = agenda.plan(4 * len(dropped), start=0.0, spacing=0.01)
    explored = rows[np.isin(rows, dropped)]
    assert sorted(explored.tolist()) == dropped.tolist()


def test_without_a_quota_dropped_pages_are_left_alone() -> None:
    rates, demand = instance(500, 9)
    agenda = started(rates, demand, 0.05 * float(rates.sum()))
    rows = agenda.plan(5000, start=0.0, spacing=0.01)
    assert np.isfinite(agenda.interval_[rows]).all()


def test_new_pages_come_first_and_worthless_ones_in_turn() -> None:
    agenda = Agenda(np.array([3.0, np.nan, 1.0, np.nan]))
    assert agenda.plan(6, start=4.0, spacing=1.0).tolist() == [1, 3, 2, 0, 1, 3]
    agenda.reprice(np.zeros(4), np.ones(4), 1.0)
    assert np.isinf(agenda.interval_).all()
    assert agenda.plan(4, start=10.0, spacing=1.0).tolist() == [2, 0, 1, 3]


def test_a_page_under_way_is_not_given_twice() -> None:
    agenda = Agenda(np.zeros(2), explore=0.0)
    rates = np.array([1.0, 0.5])
    agenda.reprice(np.ones(2), rates, 1.0)
    row = agenda.next()
    agenda.reprice(np.ones(2), rates, 2.0)
    assert agenda.next() == 1 - (row or 0)
    assert agenda.next() is None
    assert len(agenda.plan(3, start=0.0, spacing=1.0)) == 0
    agenda.visited(row or 0, 1.0)
    assert agenda.next() == row


def test_a_visit_that_was_not_made_is_undone() -> None:
    rates, demand = instance(50, 10)
    agenda = started(rates, demand, 10.0)
    row = agenda.next()
    assert row is not None
    agenda.visited(row, float(agenda.last_[row]))
    assert agenda.next() == row


def test_news_of_a_page_moves_it() -> None:
    agenda = Agenda(np.zeros(3), explore=0.0)
    agenda.reprice(np.ones(3), np.array([1.0, 1.0, 0.0]), 1.0)
    agenda.update(2, 0.5)  # from never to soon
    assert agenda.due_ == 0.5
    agenda.update(0, np.inf)
    assert [agenda.next() for _ in range(3)] == [2, 1, 0]


def test_an_agenda_without_pages() -> None:
    agenda = Agenda(np.empty(0))
    agenda.reprice(np.empty(0), np.empty(0), 5.0)
    assert agenda.next() is None
    assert len(agenda.plan(3, start=0.0, spacing=1.0)) == 0


def test_what_would_spoil_the_order_is_refused() -> None:
    agenda = Agenda(np.zeros(2))
    with pytest.raises(InputError, match="row 2"):
        agenda.visited(2, 1.0)
    with pytest.raises(InputError, match="row 0 at nan"):
        agenda.update(0, np.nan)
    with pytest.raises(InputError, match="demand of page 1"):
        agenda.reprice(np.array([1.0, np.nan]), np.ones(2), 1.0)
