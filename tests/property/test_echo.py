"""The visits of sources: optimal by an independent solver, and by trying all sets of sources."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from salticus.allocate.echo import EchoIntervals, EchoSources, quality, revisits
from salticus.types import Bools, Floats

seeds = st.integers(0, 2**32 - 1)
shares = st.floats(0.02, 5.0)


def drawn(seed: int, n: int) -> EchoSources:
    rng = np.random.default_rng(seed)
    return EchoSources(rng.lognormal(1, 1.2, n), rng.lognormal(0, 1.2, n), rng.lognormal(0, 0.7, n))


def kept(sources: EchoSources, rows: Bools) -> EchoSources:
    return EchoSources(*(column[rows] for column in sources))


def by_solver(sources: EchoSources, visits: float) -> float:
    """Clicks a day that SLSQP finds for visits to these sources alone, their pages free."""
    full, decay = sources.rate * sources.profit / sources.decay, sources.decay

    def lost(rho: Floats) -> float:
        return float((full * rho * np.expm1(-decay / rho)).sum())

    def slope(rho: Floats) -> Floats:
        x = decay / rho
        return np.asarray(full * (np.expm1(-x) + x * np.exp(-x)))

    best = np.inf
    for start in (np.ones(len(full)), full / full.sum(), np.sqrt(full * decay)):
        rho = start / start.sum() * visits
        found = minimize(
            lost,
            rho,
            jac=slope,
            method="SLSQP",
            bounds=[(1e-9 * visits, None)] * len(full),
            constraints={"type": "eq", "fun": lambda r: r.sum() - visits, "jac": np.ones_like},
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        best = min(best, float(found.fun))
    return -best


@pytest.mark.parametrize("seed", range(200))
def test_a_set_of_sources_is_visited_as_well_as_a_solver_can(seed: int) -> None:
    sources, share = drawn(seed, 2 + seed % 7), 0.3 + (seed % 10)
    visits = share * float(sources.rate.sum())
    found = revisits(sources, visits, page_cost=0.0)
    assert found.visits(sources.rate, page_cost=0.0).sum() == pytest.approx(visits, rel=1e-9)
    assert quality(sources, found) == pytest.approx(by_solver(sources, visits), rel=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_no_set_of_sources_earns_more(seed: int) -> None:
    sources = drawn(seed, 4 + seed % 9)
    visits = (0.1, 0.3, 0.6, 1.2)[seed % 4] * float(sources.rate.sum())
    best = 0.0
    for choice in product((False, True), repeat=len(sources.rate)):
        some = kept(sources, np.array(choice))
        left = visits - float(some.rate.sum())
        if len(some.rate) and left > 0.0:
            best = max(best, quality(some, revisits(some, left, page_cost=0.0)))
    assert quality(sources, revisits(sources, visits)) >= best * (1 - 1e-9)


def test_the_published_rule_loses() -> None:
    """EchoSources whose pages are not worth their visits are kept (ALGORITHMS §1.3)."""
    lost = []
    for seed in range(60):
        sources = drawn(seed, 12)
        visits = 0.3 * float(sources.rate.sum())
        ours = quality(sources, revisits(sources, visits))
        lost.append(quality(sources, revisits(sources, visits, published=True)) / ours)
    assert max(lost) <= 1 + 1e-9
    assert np.mean(lost) < 0.7


@given(seeds, st.integers(1, 40), shares, st.booleans())
def test_all_visits_are_spent(seed: int, n: int, share: float, published: bool) -> None:
    sources = drawn(seed, n)
    visits = share * float(sources.rate.sum())
    found = revisits(sources, visits, published=published)
    assert found.visits(sources.rate).sum() == pytest.approx(visits, rel=1e-6)
    assert np.all((found.share >= 0.0) & (found.share <= 1.0))
    assert np.count_nonzero((found.share > 0.0) & (found.share < 1.0)) <= 1


@given(seeds, st.integers(2, 40), shares)
def test_more_visits_earn_more_and_cost_less(seed: int, n: int, share: float) -> None:
    sources = drawn(seed, n)
    visits = share * float(sources.rate.sum())
    few, many = revisits(sources, visits), revisits(sources, 1.5 * visits)
    assert quality(sources, many) >= quality(sources, few) * (1 - 1e-9)
    assert many.price <= few.price * (1 + 1e-9)
    assert quality(sources, many) <= float((sources.rate * sources.profit).sum())


@given(seeds, st.integers(1, 40), shares)
def test_a_source_is_due_when_its_worth_reaches_the_price(seed: int, n: int, share: float) -> None:
    sources = drawn(seed, n)
    found = revisits(sources, share * float(sources.rate.sum()))
    whole, dropped = found.share == 1.0, found.share == 0.0
    x = np.where(whole, sources.decay * found.interval, np.inf)
    x = np.minimum(x, np.log(np.maximum(sources.profit / found.price, 1.0)))  # older: not worth it
    due = sources.rate * sources.profit / sources.decay * (1.0 - (1.0 + x) * np.exp(-x))
    assert due[whole] == pytest.approx(found.price, rel=1e-6)
    assert np.all(due[dropped] <= found.price * (1 + 1e-6))


@given(seeds, st.integers(2, 20), shares)
def test_the_order_of_sources_does_not_matter(seed: int, n: int, share: float) -> None:
    sources = drawn(seed, n)
    order = np.random.default_rng(seed).permutation(n)
    visits = share * float(sources.rate.sum())
    one, other = revisits(sources, visits), revisits(kept(sources, order), visits)
    assert other.interval == pytest.approx(one.interval[order], rel=1e-6)
    assert quality(kept(sources, order), other) == pytest.approx(quality(sources, one), rel=1e-9)


def test_without_sources_there_is_nothing_to_visit() -> None:
    nothing = np.empty(0)
    found = revisits(EchoSources(nothing, nothing, nothing), 5.0)
    assert len(found.interval) == 0
    assert quality(EchoSources(nothing, nothing, nothing), found) == 0.0


def test_without_visits_no_source_is_visited() -> None:
    sources = drawn(1, 5)
    found = revisits(sources, 0.0)
    assert isinstance(found, EchoIntervals)
    assert quality(sources, found) == 0.0
    assert np.all(found.share == 0.0)
