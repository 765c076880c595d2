"""Estimates without a model: what holds for every history."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.predict.mle import Mle, likeliest
from salticus.predict.point import BiasReduced, Naive, PointRates
from salticus.types import Floats
from salticus.types.state import pack, unpack

from .test_gamma import outcomes, visit

Make = Callable[[], PointRates]
Visits = list[tuple[int, float, int]]

IDS = np.arange(5)  # the fifth is never visited
histories = st.lists(visit, min_size=1, max_size=60)
estimates = pytest.mark.parametrize(
    "make", [Naive, BiasReduced, Mle, lambda: Mle(intervals=2), lambda: Mle(smooth_days=0.0)]
)


def rates(model: PointRates) -> Floats:
    found = model.rates(IDS)
    assert np.all(np.isfinite(found) & (found >= 0))
    return found


@estimates
@settings(max_examples=40, deadline=None)
@given(histories)
def test_a_batch_teaches_what_its_visits_teach_one_by_one(make: Make, visits: Visits) -> None:
    every = outcomes(visits)
    batch, single = make(), make()
    batch.learn(every)
    for row in range(len(every)):
        single.learn(every.take(np.array([row])))
    assert np.allclose(rates(batch), rates(single), rtol=1e-9)


@estimates
@settings(max_examples=40, deadline=None)
@given(histories, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(make: Make, visits: Visits, random: Random) -> None:
    every = outcomes(visits)
    rows = list(range(len(every)))
    random.shuffle(rows)
    one, other = make(), make()
    one.learn(every)
    other.learn(every.take(np.array(rows)))
    assert np.allclose(rates(one), rates(other), rtol=1e-9)


@estimates
@settings(max_examples=40, deadline=None)
@given(histories, st.integers(0, 60))
def test_a_restored_estimate_goes_on_alike(make: Make, visits: Visits, cut: int) -> None:
    every = outcomes(visits)
    model, heir = make(), make()
    model.learn(every.take(np.arange(len(every)) < cut))
    heir.restore(unpack(pack({"it": model.state()}))["it"])
    assert np.array_equal(rates(model), rates(heir))
    for each in (model, heir):
        each.learn(every.take(np.arange(len(every)) >= cut))
    assert np.array_equal(rates(model), rates(heir))


@estimates
@settings(max_examples=40, deadline=None)
@given(histories)
def test_asking_in_between_changes_nothing(make: Make, visits: Visits) -> None:
    every = outcomes(visits)
    asked, left = make(), make()
    for row in range(len(every)):
        for model in (asked, left):
            model.learn(every.take(np.array([row])))
        rates(asked)
    assert np.array_equal(rates(asked), rates(left))


# -------------------------------------------------------------------------------------- the solver

days = st.floats(1e-4, 1e3)
changed = st.lists(st.tuples(days, st.integers(1, 1000)), min_size=1, max_size=6)


def root(intervals: list[tuple[float, int]], still: float) -> float:
    columns = np.array(intervals, dtype=np.float64)
    return float(likeliest(columns[None, :, 0], columns[None, :, 1], np.array([still]))[0])


@settings(max_examples=100, deadline=None)
@given(changed, days)
def test_the_solver_finds_the_root(intervals: list[tuple[float, int]], still: float) -> None:
    found = root(intervals, still)
    lengths, counts = np.array(intervals, dtype=np.float64).T

    def left(rate: float) -> float:
        x = rate * lengths
        return float((counts * lengths * np.exp(-x) / -np.expm1(-x)).sum())

    assert left(found * (1 - 1e-10)) >= still >= left(found * (1 + 1e-10))


@settings(max_examples=80, deadline=None)
@given(changed, days, days)
def test_more_changes_raise_the_rate_and_more_rest_lowers_it(
    intervals: list[tuple[float, int]], still: float, more: float
) -> None:
    found = root(intervals, still)
    assert root([*intervals, (more, 1)], still) >= found * (1 - 1e-12)
    assert root(intervals, still + more) <= found * (1 + 1e-12)


@settings(max_examples=80, deadline=None)
@given(changed, days, st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(
    intervals: list[tuple[float, int]], still: float, unit: float
) -> None:
    scaled = [(length * unit, count) for length, count in intervals]
    found = root(scaled, still * unit) * unit
    assert found == pytest.approx(root(intervals, still), rel=1e-10)
