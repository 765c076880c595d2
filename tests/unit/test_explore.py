"""Exploration: a known chance for every page, out of the same budget."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.allocate.baselines import DemandProportional
from salticus.allocate.explore import Explore
from salticus.allocate.limits import Limits, Pins
from salticus.clock import VirtualClock
from salticus.config import Budget, Config, Share, parse
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Parts
from salticus.errors import ConfigError
from salticus.predict.gamma import Gamma
from salticus.predict.poisson import PoissonSurvival
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.testing import START, StillWorld, a_grant, a_tick, blank_pages
from salticus.types import DAY, Draw, Outcomes, Pages, Purpose, instant
from salticus.types.coins import coins


class Listener:
    """Keeps all outcomes."""

    def __init__(self) -> None:
        self.heard: list[Outcomes] = []

    def learn(self, outcomes: Outcomes) -> None:
        self.heard.append(outcomes)

    def of(self, purpose: Purpose) -> Outcomes:
        every = self.heard[0]
        for more in self.heard[1:]:
            every = every.join(more)
        return every.take(every.purpose == purpose)


def crawl(pages: Pages, budget: float, share: float, days: int) -> Listener:
    listener = Listener()
    parts = Parts(
        ticks=Ticks(VirtualClock(START), timedelta(hours=2)),
        predictor=Gamma(),
        policy=DemandProportional(),
        spacing=Even(),
        ledger=Ledger(Budget.parse(budget)),
        planner=Planner(),
        proposers=(Limits(), Pins(), Explore(share)),
    )
    loop = Loop(StillWorld(pages), parts, watchers=[listener])
    asyncio.run(loop.run(START + timedelta(days=days)))
    return listener


@pytest.mark.parametrize(("budget", "days"), [(2400, 20), (6, 100)])
def test_in_the_long_run_the_share_is_exact(budget: int, days: int) -> None:
    """Also where a tick has less than one visit."""
    heard = crawl(blank_pages(200), budget, 0.1, days)
    explored, others = heard.of(Purpose.EXPLORE), heard.of(Purpose.POLICY)
    total = len(explored) + len(others)
    assert total == pytest.approx(budget * days, abs=budget / 12 + 1)
    assert len(explored) / total == pytest.approx(0.1, abs=4 * np.sqrt(0.1 / total))


def test_every_page_has_the_chance_that_its_visits_state() -> None:
    ticks, pages = 3000, replace(blank_pages(40), demand=np.linspace(0.0, 4.0, 40))
    explore, count = Explore(0.2, seed=5), np.zeros(40)
    chance = explore.chance(pages, a_grant(12))
    assert chance.sum() == pytest.approx(0.2 * 12)
    assert np.all(np.diff(chance) > 0), "who is read more is explored more"
    for number in range(ticks):
        draw = explore.draw(pages, a_grant(12, taken=np.array([7])), a_tick(number))
        count[draw.rows] += 1
        assert np.array_equal(draw.propensity, chance[draw.rows])
    spread = np.sqrt(ticks * chance * (1 - chance))
    assert np.all(np.abs(count - ticks * chance) < 4 * spread), "one taken anyway included"


def test_no_page_is_without_a_chance_however_sure_the_predictor_is() -> None:
    ages = np.repeat(np.array([0.0, 1.0, 400.0]), 20)
    pages = replace(
        blank_pages(60),
        last_answer=instant(a_tick().start) - (ages * DAY.astype(int)).astype("m8[us]"),
        survival=PoissonSurvival(np.ones(60)),
    )
    new, old, ancient = Explore(0.1).chance(pages, a_grant(60)).reshape(3, 20)[:, 0]
    assert new > old / 4
    assert ancient > old / 4


@given(st.data())
def test_chances_cost_the_share_unless_all_are_certain(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    pages = replace(blank_pages(n), demand=rng.pareto(0.5, n), cost=rng.choice([1.0, 5.0], n))
    share, visits = data.draw(st.floats(0.01, 1.0)), data.draw(st.integers(1, 60))
    chance = Explore(share).chance(pages, a_grant(visits))
    assert np.all((chance > 0) & (chance <= 1))
    assert chance @ pages.cost == pytest.approx(min(share * visits, pages.cost.sum()))


@given(st.data())
def test_exploration_keeps_to_hours_hosts_pins_and_budget(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    pages = replace(
        blank_pages(n),
        ids=np.cumsum(rng.integers(1, 5, n)),
        host=rng.integers(0, 4, n),
        cost=rng.choice([1.0, 4.0], n),
        open=rng.random(n) < 0.8,
        interval=np.where(rng.random(n) < 0.2, 1.0, np.nan),
        capacity=np.array([0.0, 1.0, 3.5, np.inf]),
    )
    visits = data.draw(st.integers(0, 30))
    taken = np.flatnonzero(pages.open & (pages.host == 3))[:2]
    taken = taken[np.cumsum(pages.cost[taken]) <= visits]
    draw = Explore(data.draw(st.sampled_from([0.0, 0.1, 1.0]))).draw(
        pages, a_grant(visits, taken=taken), a_tick()
    )
    assert np.all(pages.open[draw.rows] & np.isnan(pages.interval[draw.rows]))
    both = np.union1d(draw.rows, taken)
    assert pages.cost[both].sum() <= visits
    load = np.bincount(pages.host[both], minlength=4)
    assert np.all(load <= np.ceil(pages.capacity))
    assert np.all((draw.propensity > 0) & (draw.propensity <= 1))
    assert len(np.unique(draw.rows)) == len(draw.rows)


def test_the_draw_depends_on_ids_not_on_order() -> None:
    pages, order = blank_pages(200), np.random.default_rng(1).permutation(200)
    here, there = (
        Explore(0.3, seed=2).draw(some, a_grant(100), a_tick())
        for some in (pages, pages.take(order))
    )
    assert set(here.rows) == set(order[there.rows])
    assert len(here.rows) > 10


def test_its_coins_are_its_own() -> None:
    """Those of planner and spacing must not tell who is explored."""
    pages = blank_pages(4000)
    rows = Explore(0.5, seed=3).draw(pages, a_grant(4000), a_tick()).rows
    for seed in (3, 3 + (1 << 32)):
        assert abs(coins(seed, rows, 0).mean() - 0.5) < 0.04


def test_a_visit_that_must_be_made_anyway_may_explore() -> None:
    """Or pages that only their maximum interval brings would have less of a chance than others."""
    few = np.arange(60) < 20
    pages = replace(
        blank_pages(60), max_interval=np.where(few, 0.25, np.inf), demand=np.where(few, 0.0, 1.0)
    )
    heard = crawl(pages, 240, 0.2, days=40)
    explored, limits = heard.of(Purpose.EXPLORE), heard.of(Purpose.LIMIT)
    assert len(limits) > 3000
    assert set(limits.page) == set(range(20))
    assert np.all(limits.propensity == 1)
    assert np.all(explored.propensity < 1)
    weight = np.bincount(explored.page, weights=1.0 / explored.propensity, minlength=60)
    assert weight[few].mean() == pytest.approx(480, rel=0.15), "each page once a tick, weighted"
    assert weight[~few].mean() == pytest.approx(480, rel=0.15)
    assert len(explored) == pytest.approx(0.2 * 240 * 40, rel=0.1)


def test_without_a_share_nothing_is_explored() -> None:
    draw: Draw = Explore().draw(blank_pages(9), a_grant(9), a_tick())
    assert not len(draw.rows)


def test_the_setting_is_a_share() -> None:
    assert Config().explore == 0.045
    assert parse({"explore": "5%"}).explore == parse({"explore": 0.05}).explore == Share(0.05)
    assert parse({"explore": 0}).explore == 0
    for wrong in ("x", "-1%", "101%", "nan"):
        with pytest.raises(ConfigError, match="share"):
            parse({"explore": wrong})
