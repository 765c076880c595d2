"""Laws of the solvers behind LambdaCrawl, on pages as unlike as numbers can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus import allocate, plugins
from salticus.allocate import rates
from salticus.allocate.base import Policy
from salticus.predict.poisson import PoissonSurvival
from salticus.testing import blank_pages
from salticus.types import Floats, Pages

NAMES = [
    "lambdacrawl",
    "lambdacrawl_impressions",
    "lambdacrawl_floor",
    "lambdacrawl_continuous",
    "lambdacrawl_printed",
    "fixed_optimum",
    "harmonic",
]
EXACT = [name for name in NAMES if name != "lambdacrawl_printed"]
SOLVERS = {
    "discrete": rates.discrete,
    "continuous": rates.continuous,
    "fixed": rates.fixed,
    "harmonic": rates.harmonic,
}

SCALE = st.floats(-12, 12).map(lambda power: 10.0**power)
WORTH = st.sampled_from([0.0, 1.0, 1.0, 2.0]) | SCALE
CHANGES = st.sampled_from([0.0, 0.5, 0.5, 3.0, np.inf]) | SCALE
ROWS = st.lists(st.tuples(WORTH, CHANGES), min_size=1, max_size=25)
VISITS = st.floats(0, 27) | st.integers(0, 27).map(float) | st.floats(1e-12, 1e-3)
LAWS = settings(max_examples=40, deadline=None)


def made(name: str) -> Policy:
    policy: Policy = plugins.load("policy", name, allocate.BUILTIN)()
    return policy


def pages_of(rows: list[tuple[float, float]]) -> Pages:
    mu, delta = np.array(rows, dtype=np.float64).T.copy()
    survival = PoissonSurvival(delta)
    return replace(blank_pages(len(rows)), demand=mu, impressions=mu.copy(), survival=survival)


def expected(name: str, rows: list[tuple[float, float]], visits: float) -> Floats:
    return made(name).expected(pages_of(rows), visits)


@pytest.mark.parametrize("name", NAMES)
@LAWS
@given(rows=ROWS, visits=VISITS)
def test_the_visits_are_spent_within_the_limits(
    name: str, rows: list[tuple[float, float]], visits: float
) -> None:
    found = expected(name, rows, visits)
    assert np.all((found >= 0) & (found <= 1))
    assert found.sum() == pytest.approx(min(visits, len(rows)), rel=1e-12, abs=1e-200)


@pytest.mark.parametrize("name", NAMES)
@LAWS
@given(rows=ROWS, visits=VISITS, seed=st.integers(0, 99))
def test_pages_in_another_order_get_the_same(
    name: str, rows: list[tuple[float, float]], visits: float, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(rows))
    moved = expected(name, [rows[i] for i in order], visits)
    assert moved == pytest.approx(expected(name, rows, visits)[order], abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@LAWS
@given(rows=ROWS, visits=VISITS)
def test_equals_get_alike(name: str, rows: list[tuple[float, float]], visits: float) -> None:
    twice = expected(name, rows + rows, visits)
    assert np.array_equal(twice[: len(rows)], twice[len(rows) :])


@pytest.mark.parametrize("name", EXACT)
@LAWS
@given(rows=ROWS, visits=VISITS, more=st.floats(0, 5) | st.floats(0, 1e-6))
def test_more_visits_lower_no_share(
    name: str, rows: list[tuple[float, float]], visits: float, more: float
) -> None:
    few, many = expected(name, rows, visits), expected(name, rows, visits + more)
    assert np.all(many >= few - 1e-9)


@pytest.mark.parametrize("name", EXACT)
@LAWS
@given(rows=ROWS, visits=VISITS, scale=SCALE)
def test_only_ratios_of_demand_matter(
    name: str, rows: list[tuple[float, float]], visits: float, scale: float
) -> None:
    scaled = expected(name, [(mu * scale, delta) for mu, delta in rows], visits)
    assert scaled == pytest.approx(expected(name, rows, visits), abs=1e-6)


@pytest.mark.parametrize("name", SOLVERS)
@LAWS
@given(rows=ROWS, visits=st.floats(0.01, 20))
def test_what_has_more_worth_gets_no_less(
    name: str, rows: list[tuple[float, float]], visits: float
) -> None:
    mu, change = np.array(rows).T.copy()
    found = rates.spend(SOLVERS[name](mu, np.minimum(change, 0.9)), visits)
    for i in range(len(mu)):
        other = (np.minimum(change, 0.9) == min(change[i], 0.9)) & (mu >= mu[i])
        assert np.all(found[other] >= found[i] - 1e-12)


@pytest.mark.parametrize("name", NAMES)
@LAWS
@given(rows=ROWS, seed=st.integers(0, 99), room=st.lists(st.floats(0, 9), min_size=3, max_size=3))
def test_hosts_are_solved_as_if_alone(
    name: str, rows: list[tuple[float, float]], seed: int, room: list[float]
) -> None:
    host = np.random.default_rng(seed).integers(0, 3, len(rows))
    pages, policy = replace(pages_of(rows), host=host), made(name)
    together = policy.expected_by_host(pages, np.array(room))  # type: ignore[attr-defined]
    for one in range(3):
        own = np.flatnonzero(host == one)
        alone = policy.expected(pages.take(own), room[one])
        assert together[own] == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("name", EXACT)
def test_among_many_pages_order_does_not_matter(name: str) -> None:
    """Many enough for a sample of them, which depends on their order, to say where to begin."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([rng.pareto(1.1, 60_000), rng.lognormal(-2, 2, 60_000)])
    order = np.argsort(rows[:, 0])
    found = made(name).expected(pages_of(rows), 5000.0)  # type: ignore[arg-type]
    moved = made(name).expected(pages_of(rows[order]), 5000.0)  # type: ignore[arg-type]
    assert moved == pytest.approx(found[order], abs=1e-12)
    assert found.sum() == pytest.approx(5000.0, rel=1e-13)
