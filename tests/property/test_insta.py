"""InstaCrawl: the purse is never overdrawn, each page is visited once, a restart decides alike."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.allocate.gate.stream import InstaCrawl
from salticus.allocate.gate.uniform import UniformGate
from salticus.allocate.insta import Insta
from salticus.config import Budget
from salticus.predict.poisson import PoissonSurvival
from salticus.schedule.ledger import Ledger
from salticus.testing import START, blank_pages
from salticus.types import Grant, Outcomes, Pages, Tick, instant

N = 12
NOW = instant(START + timedelta(hours=1))
CLICKS = st.lists(st.lists(st.integers(0, N + 2), max_size=6), max_size=8)


def pages(cost: float = 1.0) -> Pages:
    last = instant(START) - np.arange(1, N + 1) * np.timedelta64(6, "h")
    survival = PoissonSurvival(np.full(N, 0.5))
    blank = replace(blank_pages(N).answered(last), ids=np.arange(N), survival=survival)
    return replace(blank, cost=np.full(N, cost))


def opened(insta: Insta, visits: int, cost: float = 1.0) -> Insta:
    insta.open(pages(cost), np.full(visits, instant(START)))
    return insta


@given(CLICKS, st.integers(0, 6), st.sampled_from([1.0, 2.0]))
def test_the_purse_is_never_overdrawn(clicks: list[list[int]], purse: int, cost: float) -> None:
    insta = opened(Insta(UniformGate(share=1.0), share=0.5), purse, cost)
    spent, numbers = 0.0, []
    for some in clicks:
        requests, plan = insta.ask(np.array(some, dtype=np.int64), NOW)
        assert [r.page for r in requests] == [page for page in some if page < N]
        assert len(set(plan.page.tolist())) == len(plan), "a page is visited once"
        assert [r.visit for r in requests if r.visit is not None] == plan.visit.tolist()
        assert all(0.0 <= r.score <= 1.0 for r in requests)
        spent += float(pages(cost).cost[plan.page].sum())
        numbers += plan.visit.tolist()
    assert spent <= purse
    assert len(set(numbers)) == len(numbers), "no number is used twice"


@settings(max_examples=30)
@given(CLICKS, st.integers(0, 8))
def test_a_restart_decides_alike(clicks: list[list[int]], at: int) -> None:
    """What was asked after the state was kept is heard again."""
    first = opened(Insta(InstaCrawl(share=0.4), share=0.5, seed=3), 100)
    state, since = first.state(), []
    for number, some in enumerate(clicks):
        if number == at:
            state, since = first.state(), []
        since += first.ask(np.array(some, dtype=np.int64), NOW)[0]
    second = opened(Insta(InstaCrawl(share=0.4), share=0.5, seed=3), 100)
    second.restore(state)
    second.heard(since)
    assert second.number_ == first.number_
    again = np.arange(N)
    mine, theirs = (each.ask(again, NOW)[0] for each in (first, second))
    assert [(r.number, r.sent, r.propensity) for r in mine] == [
        (r.number, r.sent, r.propensity) for r in theirs
    ]


def test_older_copies_score_higher_and_the_minimum_interval_holds() -> None:
    insta = Insta(UniformGate(share=1.0), share=1.0)
    limited = replace(pages(), min_interval=np.where(np.arange(N) < 6, 30.0, 0.0))
    insta.open(limited, np.full(N, instant(START)))
    requests, plan = insta.ask(np.arange(N), NOW)
    scores = [request.score for request in requests]
    assert scores == sorted(scores)
    assert plan.page.tolist() == list(range(6, N))
    every = np.append(pages().last_answer, [instant(START), np.datetime64("NaT")])
    chance = insta.outdated(np.arange(N + 2), every, NOW)
    assert np.all(np.diff(chance[:N]) > 0)
    assert np.isnan(chance[N])
    assert chance[N + 1] == 1.0


@given(st.integers(0, 200), st.floats(0, 1))
def test_a_grant_is_parted_evenly(visits: int, share: float) -> None:
    release = instant(START) + np.arange(visits) * np.timedelta64(1, "m")
    rest, apart = Grant(release, 1.0).less(share, 0)
    assert rest.visits + len(apart) == visits
    assert abs(len(apart) - share * visits) <= 1
    assert np.array_equal(np.sort(np.concatenate([rest.release, apart])), release)
    for k in range(1, visits + 1):
        assert abs(np.count_nonzero(apart < release[k - 1]) - share * k) <= 1 + share


@given(st.integers(0, 5), st.floats(0, 1), st.integers(0, 300))
def test_parts_of_visits_count_on_to_the_next_tick(visits: int, share: float, ticks: int) -> None:
    share = round(share, 4)
    grant = Grant(np.full(visits, instant(START)), float(visits))
    apart = [len(grant.less(share, number)[1]) for number in range(ticks)]
    assert sum(apart) == math.floor(ticks * visits * share + 1e-9)
    assert max(apart, default=0) - min(apart, default=0) <= 1


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("per_day", [5, 6, 12, 30])
def test_a_share_is_set_aside_however_small_the_ticks_are(per_day: int, share: float) -> None:
    hour, ledger, apart = timedelta(hours=1), Ledger(Budget.parse(per_day)), 0
    for number in range(24 * 20):
        start = START + number * hour
        tick = Tick(number, start, start + hour)
        grant = ledger.grant(pages(), tick)
        ledger.open(grant, tick)
        apart += len(grant.less(share, number)[1])
        visits = np.arange(grant.visits)
        ledger.spend(visits, np.ones(grant.visits))
        ledger.learn(Outcomes.known(visit=visits, page=visits, at=grant.release))
    assert abs(apart - 20 * per_day * share) <= 2
