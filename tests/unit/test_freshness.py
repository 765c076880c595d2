"""The estimate of freshness covers the truth; drift is found; a target tells its budget."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.freshness.estimate import (
    SPAN,
    Market,
    by_demand,
    by_pages,
    drift_alert,
    drift_of,
    needed,
)
from salticus.types import Findings, Floats, Gauge

from .timed_world import DAY, FIRST, Timed, crawl, windows

WARM = 3


def checks(policy: str, *, seeds: range, days: int = 10) -> Floats:
    """For each day after the warm-up: error and half-width by pages, and by clicks; the share."""
    found = []
    for seed in seeds:
        world = Timed(1500, days, seed)
        notes = crawl(world, days, policy=policy, budget="100%", share=0.045)
        for day, (start, end) in zip(range(WARM, days), windows(range(WARM, days)), strict=True):
            ticks, seen = asyncio.run(notes.gauged(start, end))
            pages, clicks = by_pages(ticks, seen), by_demand(ticks, seen)
            truth = world.fresh(day, day + 1)
            errors = (pages.freshness - truth[0], clicks.freshness - truth[1])
            share = len(seen) / sum(tick.visits for tick in ticks)
            found.append((errors[0], pages.half_width, errors[1], clicks.half_width, share))
    return np.array(found)


@pytest.mark.parametrize("policy", ["leap", "uniform"])
def test_the_interval_covers_the_truth(policy: str) -> None:
    """Of 49 days each: 95 % are covered but for chance; both ways of counting are sharp enough."""
    found = checks(policy, seeds=range(7))
    for error, half in (found[:, :2].T, found[:, 2:4].T):
        assert np.mean(np.abs(error) <= half) >= 0.88, "of 49, up to 5 may be missed by chance"
        assert abs(error.mean()) < 0.012, "no bias beyond chance"
        assert np.abs(error).mean() > half.mean() / 8, "the interval is no wider than it must be"
        assert np.median(half) <= 0.095  # 1,500 pages; 0.08 from 2,000 on
    assert found[:, 4].mean() <= 0.05


def findings_of(found: Floats, chance: Floats, *, propensity: Floats | None = None) -> Findings:
    n = len(found)
    even = np.full(n, 0.1) if propensity is None else propensity
    at = FIRST + (np.arange(n) * 36 // max(n, 1)) * (DAY // 12)
    return Findings(np.arange(n), at, even, chance, chance, np.ones(n), found)


def tick(stale: float, *, pages: int = 1000, coins: int = 1000) -> Gauge:
    return Gauge(FIRST, 1 / 12, pages, float(pages), stale * pages, stale * pages, coins, coins, 9)


@given(st.integers(0, 999), st.floats(0.0, 1.0), st.floats(0.05, 0.95))
def test_a_model_that_is_wrong_by_any_amount_is_corrected(
    seed: int, thought: float, true: float
) -> None:
    """What the model says cancels out, whatever it is, if it says the same of all pages."""
    found = (np.random.default_rng(seed).random(400) < true).astype(float)
    estimate = by_pages([tick(thought)], findings_of(found, np.full(400, thought)))
    assert estimate.freshness == pytest.approx(1 - found.mean())
    assert estimate.model == pytest.approx(1 - thought)
    assert estimate.low - 1e-9 <= 1 - found.mean() <= estimate.high + 1e-9


def test_propensities_undo_the_choice_of_pages() -> None:
    """Half of the pages are always stale, and drawn nine times as often as those never stale."""
    rng, stale = np.random.default_rng(5), np.arange(20_000) % 2
    chance = np.where(stale, 0.45, 0.05)
    drawn = rng.random(20_000) < chance
    seen = findings_of(
        stale[drawn].astype(float), np.full(drawn.sum(), 0.3), propensity=chance[drawn]
    )
    estimate = by_pages([tick(0.3)], seen)
    assert estimate.freshness == pytest.approx(0.5, abs=estimate.half_width)
    assert estimate.half_width < 0.04


def test_failed_visits_are_left_out_and_pages_without_a_coin_are_the_models() -> None:
    found = np.array([1.0, 0.0, np.nan, np.nan])
    seen = findings_of(found, np.full(4, 0.3))
    assert by_pages([tick(0.3)], seen).freshness == pytest.approx(0.5)
    half = by_pages([tick(0.3, coins=500)], seen)
    assert half.freshness == pytest.approx(0.5 * 0.5 + 0.5 * 0.7)
    nothing = by_pages([tick(0.3)], seen.take(np.zeros(4, dtype=np.bool_)))
    assert np.isnan(nothing.half_width)
    assert nothing.freshness == pytest.approx(0.7)
    assert np.isnan(by_demand([], seen).freshness)


def test_a_page_without_a_copy_is_stale_for_certain_and_adds_no_doubt() -> None:
    new = findings_of(np.ones(50), np.full(50, np.nan))
    estimate = by_pages([tick(1.0)], replace(new, stale=np.ones(50)))
    assert estimate.freshness == pytest.approx(0.0)
    assert estimate.half_width < 0.05


@pytest.fixture(scope="module")
def three_days() -> list[Gauge]:
    return [Gauge(FIRST + k * DAY // 12, 1 / 12, 9, 9.0, 1.0, 1.0, 9, 9.0, 9.0) for k in range(36)]


def test_a_calibrated_predictor_raises_no_alarm_in_years(three_days: list[Gauge]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(400):  # spans of three days: more than three years
        chance = rng.beta(0.5, 2.0, 150)
        drift = drift_of(three_days, findings_of((rng.random(150) < chance) * 1.0, chance))
        assert not drift.parted
        assert abs(drift.z) < 4.5


@pytest.mark.parametrize("times", [0.5, 1.8])
def test_a_predictor_that_is_off_raises_an_alarm(times: float, three_days: list[Gauge]) -> None:
    rng = np.random.default_rng(4)
    chance = rng.uniform(0.1, 0.5, 500)
    found = (rng.random(500) < chance * times) * 1.0
    drift = drift_of(three_days, findings_of(found, chance))
    assert drift.parted
    assert drift.ratio == pytest.approx(times, rel=0.2)
    alert = drift_alert(drift, 7)
    assert alert is not None
    assert (alert.host, alert.kind, alert.over) == ("*", "drift", False)
    assert "were foretold" in alert.fault
    young = drift_of(three_days[:12], findings_of(found, chance))
    assert not young.parted, "a crawl of one day has not learnt yet"
    assert drift_of([], findings_of(found[:0], chance[:0])).settled


def test_drift_is_sounded_by_a_crawl() -> None:
    world = Timed(400, 14, 3)
    world.waves = 6.0  # from here on all pages seem new
    notes = crawl(world, 8, policy="uniform", budget="200%", share=0.1)
    begun = [alert.at for alert in notes.alerts if not alert.over]
    assert begun
    assert min(begun) > FIRST + 6 * DAY
    assert notes.alerts[0].over, "none at first"
    assert SPAN == 3 * DAY


def market(n: int = 200, *, room: float = np.inf) -> Market:
    rng = np.random.default_rng(1)
    rates, demand = rng.lognormal(-1.0, 1.0, n), rng.pareto(1.5, n) + 0.1
    return Market(rates, demand, np.ones(n), np.zeros(n, dtype=np.int64), np.array([room]), 1 / 12)


def test_a_target_needs_more_the_higher_it_is_and_none_beyond_reach() -> None:
    here = market()
    budgets = [needed(here, 200.0, 0.9, target).budget for target in (0.9, 0.95, 0.97)]
    assert None not in budgets
    assert budgets == sorted(budgets, key=lambda b: b or 0)
    assert budgets[0] == pytest.approx(200.0, rel=0.01), "what there is, for what is reached"
    beyond = needed(here, 200.0, 0.9, 0.9999)
    assert beyond.budget is None
    assert 0.97 < beyond.best < 0.9999
    slow = needed(market(room=150.0), 100.0, 0.8, 0.95)
    assert slow.budget is None, "the host does not take as many"
