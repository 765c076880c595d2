"""The functions behind the index: exact numbers, exact shares, intervals at the price."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from salticus.allocate.leap import by_host
from salticus.allocate.rates import g_inverse, intervals
from salticus.allocate.share import first, ranked
from salticus.predict.poisson import PoissonSurvival
from salticus.types import Floats

law = settings(deadline=None)  # a first call may have to compile


def exact_g(x: Decimal) -> Decimal:
    """g with sixty digits; far more are needed below 1e-25, where it is x²/2."""
    return x * x / 2 - x**3 / 3 if x < Decimal("1e-15") else 1 - (1 + x) * (-x).exp()


@law
@given(st.one_of(st.floats(1e-250, 1.0, exclude_max=True), st.floats(0.9, 1.0, exclude_max=True)))
def test_g_inverse_is_exact(y: float) -> None:
    """A relative step of 1e-13 down or up leads past the solution."""
    x = float(g_inverse(np.array([y]))[0])
    with localcontext(prec=60):
        low, high = (Decimal(x) * (1 + Decimal(sign) * Decimal("1e-13")) for sign in (-1, 1))
        assert exact_g(low) < Decimal(y) < exact_g(high)


@law
@given(arrays(np.float64, st.integers(0, 30), elements=st.floats(0, 1)))
def test_g_inverse_rises_with_y(y: Floats) -> None:
    x = g_inverse(np.sort(y))
    assert (x[1:] >= x[:-1]).all()


def test_the_ends_of_g() -> None:
    assert g_inverse(np.array([-1.0, 0.0, 1.0, 2.0])).tolist() == [0.0, 0.0, np.inf, np.inf]
    assert len(g_inverse(np.empty(0))) == 0


# few values, so that many tie, and infinity for pages that were never visited
values = st.one_of(st.sampled_from([0.0, 1.0, 2.0, np.inf]), st.floats(0, 1e300))


@st.composite
def worths(draw: st.DrawFn) -> tuple[Floats, float]:
    n = draw(st.integers(0, 40))
    visits = draw(st.one_of(st.floats(-1, n + 2), st.integers(0, n + 1).map(float)))
    return draw(arrays(np.float64, n, elements=values)), visits


def by_sorting(worth: Floats, visits: float) -> Floats:
    """The plain way: one visit after another, and ties share."""
    out = np.zeros(len(worth))
    for value in sorted(set(worth.tolist()), reverse=True):
        tied = worth == value
        share = min(1.0, max(0.0, visits) / tied.sum())
        out[tied] = share
        visits -= share * tied.sum()
    return out


@law
@given(worths())
def test_the_best_pages_are_taken(given: tuple[Floats, float]) -> None:
    worth, visits = given
    expected = first(-worth, visits)
    assert expected == pytest.approx(by_sorting(worth, visits), abs=1e-12)
    assert expected.sum() == pytest.approx(min(max(visits, 0.0), len(worth)), abs=1e-9)


@law
@given(worths(), st.data())
def test_every_host_takes_its_best(given: tuple[Floats, float], data: st.DataObject) -> None:
    worth, _ = given
    host = data.draw(arrays(np.int64, len(worth), elements=st.integers(0, 3)))
    room = data.draw(arrays(np.float64, 4, elements=st.sampled_from([0.0, 0.5, 2.0, 3.25, np.inf])))
    expected = by_host(worth, np.ones(len(worth)), host, room)
    for h in range(4):
        alone = by_sorting(worth[host == h], min(room[h], 99.0))
        assert expected[host == h] == pytest.approx(alone, abs=1e-12)


@law
@given(st.integers(1, 30_000), st.floats(0, 1, exclude_max=True), st.integers(0, 3))
def test_the_rank_is_that_of_sorting_however_the_values_lie(n: int, at: float, kind: int) -> None:
    chance = np.random.default_rng(n)
    column = (chance.random(n), np.arange(n) % 7, np.arange(n)[::-1], chance.integers(0, 2, n))
    rank = int(at * n)
    assert ranked(column[kind], rank) == np.sort(column[kind])[rank]


def test_a_sample_that_misleads_does_no_harm() -> None:
    column = np.ones(50_000)
    column[::12] = 0.0  # the very rows that are sampled
    assert ranked(column, 30_000) == 1.0
    assert first(column, 5_000.0).sum() == pytest.approx(5_000.0)


pages = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=st.one_of(st.just(0.0), st.floats(1e-3, 20.0))),
        arrays(np.float64, n, elements=st.one_of(st.just(0.0), st.floats(1e-3, 1e3))),
    )
)


def worth(curves: PoissonSurvival, demand: Floats, ages: Floats) -> Floats:
    """What a visit buys at each page's age in days: V(τ) = μ[∫₀^τ S − τS(τ)]."""
    return demand * (curves.integral(ages) - ages * curves.unchanged(ages))


@law
@given(pages, st.floats(1e-4, 1e3))
def test_a_page_is_due_when_its_worth_reaches_the_price(
    given: tuple[Floats, Floats], price: float
) -> None:
    rates, demand = given
    curves = PoissonSurvival(rates)
    interval = intervals(rates, demand, price)
    due = np.isfinite(interval)
    assert worth(curves, demand, np.where(due, interval, 0.0))[due] == pytest.approx(
        price, rel=1e-6
    )
    assert (worth(curves, demand, np.full(len(rates), 1e9))[~due] <= price * (1 + 1e-9)).all()
