"""How far a model is trusted beside history, for changes and for clicks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.predict.demand import PooledDemand, rate_of
from salticus.predict.trust import GRID, Trust

NOW = np.datetime64("2026-01-01T00:00:00", "us")
DAY = np.timedelta64(1, "D")


def losses(chances: np.ndarray, model: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Log losses of arithmetic mixtures of two predictions."""
    mixed = (1 - GRID) * chances[:, None] + GRID * model[:, None]
    return -np.log(np.where(changed[:, None], mixed, 1 - mixed))


@pytest.mark.parametrize(("good", "weight"), [("history", 0.0), ("model", 1.0)])
def test_who_predicts_at_random_is_not_listened_to(good: str, weight: float) -> None:
    rng = np.random.default_rng(0)
    true = rng.choice([0.05, 0.6], 4000)
    noise = rng.permutation(true)
    history, model = (true, noise) if good == "history" else (noise, true)
    trust = Trust()
    trust.learn(np.full(4000, 7), losses(history, model, rng.random(4000) < true), NOW)
    assert trust.weights(np.array([0, 7, 100])).tolist() == [weight] * 3


def test_pages_of_which_nothing_is_known_have_a_weight_of_their_own() -> None:
    rng = np.random.default_rng(1)
    n = 6000
    true, known = rng.choice([0.05, 0.6], n), np.repeat([0, 40], n // 2)
    history = np.where(known == 0, true.mean(), true)
    model = np.where(known == 0, true, rng.permutation(true))
    trust = Trust()
    trust.learn(known, losses(history, model, rng.random(n) < true), NOW)
    new, old = trust.weights(np.array([0, 40]))
    assert new > 0.8
    assert old < 0.2
    assert trust.by_known()["0"] == pytest.approx(new)


@settings(deadline=None)
@given(st.permutations(range(30)), st.integers(0, 1000))
def test_the_order_of_outcomes_does_not_matter(order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    known, lost = rng.integers(0, 40, 30), rng.random((30, len(GRID)))
    one, other = Trust(), Trust()
    one.learn(known, lost, NOW)
    other.learn(known[order], lost[order], NOW)
    assert np.array_equal(one.weights(known), other.weights(known))


def test_old_outcomes_count_for_less() -> None:
    trust = Trust(memory_days=10.0)
    trust.learn(np.full(500, 7), np.tile(GRID, (500, 1)), NOW)
    assert trust.weights(np.array([7])) == 0.0
    trust.learn(np.full(100, 7), np.tile(1 - GRID, (100, 1)), NOW + 60 * DAY)
    assert trust.weights(np.array([7])) == 1.0


# ------------------------------------------------------------------------------------------- demand


def days(pooled: PooledDemand, truth: np.ndarray, model: np.ndarray, counts: np.ndarray) -> None:
    """Thirty days of clicks at true rates, of which counts and a model say something."""
    rng = np.random.default_rng(2)
    known = np.rint(counts * 30).astype(np.int64)
    for day in range(30):
        pooled.learn((counts, model), rng.poisson(truth).astype(float), known, NOW + day * DAY)


def test_a_useless_model_leaves_counts_as_they_are() -> None:
    rng = np.random.default_rng(3)
    truth = rng.choice([0.02, 3.0], 2000)
    pooled = PooledDemand()
    days(pooled, truth, rng.permutation(truth), truth)
    known = np.rint(truth * 30).astype(np.int64)
    assert np.array_equal(pooled.rates(truth, rng.permutation(truth), known), truth)


def test_pages_without_clicks_get_what_the_model_says() -> None:
    """On the scale of the clicks that come: a model tells of days with a click, not of clicks."""
    truth = np.tile([0.01, 2.0], 1000)
    chance = -np.expm1(-truth / 4)
    pooled = PooledDemand()
    days(pooled, truth, rate_of(chance), np.zeros(2000))
    found = pooled.rates(np.zeros(2), rate_of(chance[:2]), np.zeros(2, dtype=int))
    assert found == pytest.approx(truth[:2], rel=0.15)


def test_where_the_model_says_nothing_counts_are_all() -> None:
    counts = np.array([0.0, 1.5])
    found = PooledDemand().rates(counts, np.array([np.nan, np.nan]), np.array([0, 45]))
    assert np.array_equal(found, counts)


def test_what_demand_learnt_outlasts_a_restart() -> None:
    truth, pooled, again = np.tile([0.1, 2.0], 300), PooledDemand(), PooledDemand()
    days(pooled, truth, truth, np.zeros(600))
    again.restore(pooled.state())
    known = np.zeros(600, dtype=int)
    assert np.array_equal(pooled.rates(truth, truth, known), again.rates(truth, truth, known))
