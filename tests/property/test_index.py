"""The functions behind the index: exact numbers, exact shares, intervals that spend the budget."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from salticus.allocate import heap as heaps
from salticus.allocate.index import by_host
from salticus.allocate.intervals import (
    LONGEST,
    SHORTEST,
    Curves,
    guess_price,
    of_curves,
    of_rates,
    solve_price,
    worth,
)
from salticus.allocate.response import g_inverse
from salticus.allocate.share import first, ranked
from salticus.predict.gamma import GammaSurvival
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
    expected = by_host(worth, host, room)
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


@law
@given(pages, st.floats(1e-4, 1e3))
def test_a_page_is_due_when_its_worth_reaches_the_price(
    given: tuple[Floats, Floats], price: float
) -> None:
    rates, demand = given
    curves = PoissonSurvival(rates)
    interval = of_rates(rates, demand, price)
    due = np.isfinite(interval)
    assert worth(curves, demand, np.where(due, interval, 0.0))[due] == pytest.approx(
        price, rel=1e-6
    )
    assert (worth(curves, demand, np.full(len(rates), 1e9))[~due] <= price * (1 + 1e-9)).all()


@law
@given(pages, st.floats(1e-4, 1e3))
def test_any_curve_has_the_interval_of_its_closed_form(
    given: tuple[Floats, Floats], price: float
) -> None:
    """But where V comes to the price within rounding only: there the interval is any (§3)."""
    clear = np.abs(price * given[0] - given[1]) > 1e-6 * given[1]
    rates, demand = given[0][clear], given[1][clear]
    wanted = of_rates(rates, demand, price)
    got = of_curves(PoissonSurvival(rates), demand, price)
    common = np.isfinite(got)
    assert (wanted[~common] > LONGEST * (1 - 1e-6)).all()
    assert got[common] == pytest.approx(np.maximum(wanted[common], SHORTEST), rel=1e-5)


@law
@given(pages, st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=6))
def test_earlier_prices_do_not_change_an_interval(
    given: tuple[Floats, Floats], prices: list[float]
) -> None:
    rates, demand = given
    curves = GammaSurvival(np.full(len(rates), 0.7), 0.7 / np.maximum(rates, 1e-4))
    asked = Curves(curves, demand)
    for price in prices:
        assert asked(price) == pytest.approx(of_curves(curves, demand, price), rel=1e-6)


@law
@given(pages, st.floats(0.01, 100.0))
def test_the_price_spends_the_budget(given: tuple[Floats, Floats], visits: float) -> None:
    """But for the page at the price itself: its rate falls to 0 from Δ/38 at once (§3)."""
    rates, demand = given
    price = solve_price(
        lambda price: of_rates(rates, demand, price), visits, guess_price(rates, demand, visits)
    )
    taken = [float(np.sum(1 / of_rates(rates, demand, price * k))) for k in (1 - 1e-6, 1 + 1e-6)]
    if not (rates * demand > 0).any():
        assert price == 0.0
        return
    assert taken[1] * (1 - 1e-5) <= visits <= taken[0] * (1 + 1e-5)


def test_no_visits_have_no_price() -> None:
    rates = demand = np.ones(3)
    price = solve_price(lambda p: of_rates(rates, demand, p), 0.0, guess_price(rates, demand, 0.0))
    assert price == math.inf
    assert np.isinf(of_rates(rates, demand, price)).all()
    assert np.isinf(of_curves(PoissonSurvival(rates), demand, price)).all()


changes = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from([0.0, 1.0, 2.5, -np.inf, 7.0, None])), max_size=60
)


@law
@given(arrays(np.float64, 12, elements=st.sampled_from([0.0, 1.0, 3.0, np.inf])), changes)
def test_the_heap_gives_the_lowest_key_after_any_changes(
    start: Floats, changes: list[tuple[int, float | None]]
) -> None:
    heap, keys = heaps.empty(12), start.copy()
    heaps.fill(heap, start)
    for row, key in changes:
        keys[row] = np.inf if key is None else key
        heaps.remove(heap, row) if key is None else heaps.put(heap, row, key)
    wanted = [row for row in np.argsort(keys, kind="stable").tolist() if keys[row] < np.inf]
    assert [heaps.pop(heap) for _ in wanted] == wanted
    assert heaps.pop(heap) == -1
