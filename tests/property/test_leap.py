"""Laws of leap: the cap, the order, the shares; and of the worth of a visit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.allocate.leap import Leap
from salticus.predict.gamma import GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.predict.worth import gamma_worth, poisson_worth
from salticus.testing import START, a_step, blank_pages
from salticus.types import NEVER, Bools, Floats, Pages, Survival, instant
from salticus.types.state import pack, unpack

law = settings(deadline=None, max_examples=80)  # a first call may have to compile


@st.composite
def crowds(draw: st.DrawFn, *, least: int = 1) -> Pages:
    """Pages of all sorts: some never visited, times and numbers that often tie, absurd ones too."""
    n = draw(st.integers(least, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    hours = rng.integers(0, draw(st.sampled_from([3, 40, 10_000])), n)
    last = instant(START) - hours.astype("m8[h]")
    last = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.3, 1.0])), NEVER, last)
    rate = rng.choice([0.0, 1e-9, 0.1, 0.1, 2.0, 1e9], n)
    demand = rng.choice([0.0, 1.0, 1.0, 3.0, 1e12], n)
    pages = replace(blank_pages(n), host=rng.integers(0, 3, n), capacity=np.full(3, np.inf))
    curves: list[Survival] = [PoissonSurvival(rate), GammaSurvival(rate + 0.01, rate / 3 + 1)]
    survival = draw(st.sampled_from(curves))
    cost = rng.choice([1.0, 1.0, 5.0], n)
    return replace(pages.answered(last), demand=demand, cost=cost, survival=survival)


policies = st.builds(
    lambda few, most: Leap(few=few, most=most), st.floats(0, 1), st.floats(0.01, 1)
)
shares = st.floats(0.0, 1.1)


def latest(pages: Pages, leap: Leap) -> Bools:
    """The few / most of the pages that were visited last; all that share a time, or none."""
    count = min(int(leap.few / leap.most * len(pages)), len(pages) - 1)
    seen = pages.last_visit[~np.isnat(pages.last_visit)]
    if len(seen) <= count:
        return ~np.isnat(pages.last_visit)
    return np.asarray(pages.last_visit > np.sort(seen)[::-1][count])


@law
@given(crowds(), policies, shares)
def test_the_pages_visited_last_never_take_more_than_their_share(
    pages: Pages, leap: Leap, share: float
) -> None:
    visits = share * len(pages)
    expected = leap.expected(pages, visits)
    hasty = latest(pages, leap)
    forced = visits - np.count_nonzero(~hasty)  # nobody else is left to visit
    assert expected[hasty].sum() <= max(leap.most * visits, forced) + 1e-9
    assert np.isclose(expected.sum(), min(visits, len(pages)), rtol=1e-12, atol=1e-12)
    assert ((expected >= 0) & (expected <= 1)).all()


@law
@given(crowds(), st.floats(0.0, 365.0))
def test_a_first_visit_is_worth_as_much_as_any_later_one(pages: Pages, days: float) -> None:
    """All else being alike, and if the copy is no older than a year."""
    then = instant(pages.tick.start) - np.timedelta64(round(days * 86_400e6), "us")
    never = pages.answered(np.full(len(pages), NEVER))
    worth, alone = Leap().worth(never)
    later, later_alone = Leap().worth(pages.answered(np.full(len(pages), then)))
    assert (worth >= later * (1 - 1e-6) - 1e-12).all()
    assert (alone >= later_alone * (1 - 1e-6) - 1e-12).all()


@law
@given(crowds(), policies, shares, shares)
def test_more_visits_never_lower_a_share(
    pages: Pages, leap: Leap, one: float, other: float
) -> None:
    n = len(pages)
    less, more = (leap.expected(pages, share * n) for share in sorted((one, other)))
    assert (more >= less - 1e-9).all()


@law
@given(crowds(), st.integers(0, 2**32 - 1), shares)
def test_places_do_not_matter_and_equals_share(pages: Pages, seed: int, share: float) -> None:
    n = len(pages)
    order = np.random.default_rng(seed).permutation(n)
    expected = Leap(few=0.2).expected(pages, share * n)
    moved = Leap(few=0.2).expected(pages.take(order), share * n)
    assert np.allclose(moved, expected[order], atol=1e-12)
    both = pages.take(np.repeat(np.arange(n), 2))
    pairs = Leap(few=0.2).expected(both, share * n).reshape(n, 2)
    assert np.array_equal(pairs[:, 0], pairs[:, 1])


@law
@given(crowds(), st.lists(st.floats(0, 30), min_size=3, max_size=3))
def test_each_host_alone_gets_what_it_gets_among_the_others(
    pages: Pages, room: list[float]
) -> None:
    pages = replace(pages, demand=np.maximum(pages.demand, 0.5))
    together = Leap().expected_by_host(pages, np.array(room))
    for host in range(3):
        mine = np.flatnonzero(pages.host == host)
        alone = Leap(most=1.0).expected(pages.take(mine), room[host])
        assert np.allclose(together[mine], np.minimum(alone, 1.0), atol=1e-12)


@law
@given(crowds(), shares)
def test_at_the_price_of_a_plan_the_same_pages_are_chosen(pages: Pages, share: float) -> None:
    leap = Leap(few=0.0)
    chosen = a_step(leap, pages, max(share * len(pages), 1e-3)) > 0
    kept = unpack(pack({"leap": leap.state()}))["leap"]
    again = leap.reached(*leap.worth(pages))
    assert (again == chosen).all()
    restored = Leap(few=0.0)
    restored.restore(kept)
    assert np.array_equal(restored.reached(*restored.worth(pages)), again)


shape, scale, step = st.floats(0.01, 200), st.floats(0.01, 1e5), st.floats(1e-3, 7.0)
age = st.floats(1e-6, 1e4)


def increasing(worth: Floats) -> bool:
    """Never falling, but for the last digits."""
    return bool((np.diff(worth) >= -1e-9 * worth[1:]).all())


@law
@given(shape, scale, step, st.lists(age, min_size=2, max_size=30))
def test_worth_is_positive_and_rises_with_age(
    a: float, b: float, h: float, ages: list[float]
) -> None:
    tau = np.sort(np.array(ages))
    some = np.ones(len(tau))
    for worth in (gamma_worth(a * some, b * some, tau, h), poisson_worth(a / b * some, tau, h)):
        assert (worth > 0).all()
        assert np.isfinite(worth).all()
        assert increasing(worth)


@law
@given(shape, scale, step)
def test_a_visit_never_buys_more_than_the_time_since_the_last(a: float, b: float, h: float) -> None:
    """V(τ) ≤ τ(1 − S(τ)), as the copy was stale for no longer."""
    tau = h * np.array([1.0, 2.0, 5.0, 60.0])
    some = np.ones(4)
    known = poisson_worth(a / b * some, tau, h)
    assert (known <= tau * -np.expm1(-a / b * tau) * (1 + 1e-6)).all()
    believed = gamma_worth(a * some, b * some, tau, h)
    assert (believed <= 1.3 * tau * -np.expm1(-a * np.log1p(tau / b)) + 1e-9).all()


@law
@given(shape, scale, step, st.integers(1, 60))
def test_however_coarse_the_ticks_worth_is_near_the_tick_sum(
    a: float, b: float, h: float, ticks: int
) -> None:
    still = np.exp(-a * np.log1p(np.arange(ticks + 1) * h / b))
    wanted = h * float(np.sum(still[:-1] - still[-1]))
    got = float(gamma_worth(np.array([a]), np.array([b]), np.array([ticks * h]), h)[0])
    assert 0.98 * wanted <= got + 1e-12
    assert got <= 1.3 * wanted + 1e-12
