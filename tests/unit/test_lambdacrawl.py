"""LambdaCrawl and its kin: against convex solvers, to published figures, and as policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from scipy.special import lambertw

from salticus.allocate import rates
from salticus.allocate.lambdacrawl import (
    FixedOptimum,
    Harmonic,
    LambdaCrawl,
    LambdaCrawlContinuous,
    LambdaCrawlFloor,
    LambdaCrawlImpressions,
    LambdaCrawlPrinted,
    printed_rates,
)
from salticus.allocate.rates import FIXED, Asking, asked, inverse_g, needed
from salticus.checks.samples import some_pages
from salticus.errors import ConfigError, InputError
from salticus.predict.poisson import PoissonSurvival
from salticus.testing import a_tick, blank_pages
from salticus.types import Bools, Floats, Ints, Pages

Formula = Callable[[Floats, Floats], Floats]
Family = (
    type[LambdaCrawl]
    | type[LambdaCrawlContinuous]
    | type[FixedOptimum]
    | type[Harmonic]
    | type[LambdaCrawlPrinted]
)
FAMILY: list[Family] = [
    LambdaCrawl,
    LambdaCrawlImpressions,
    LambdaCrawlFloor,
    LambdaCrawlContinuous,
    FixedOptimum,
    Harmonic,
    LambdaCrawlPrinted,
]


@dataclass(frozen=True)
class Objective:
    """What visits are good for, written down anew: F(ρ) and dF/dρ of a page that changes so."""

    asking: Callable[[Floats, Floats], Asking]
    value: Formula
    slope: Formula
    floor: float = 0.0
    least: float = 0.0

    def of(self, mu: Floats, change: Floats, rho: Floats) -> float:
        return float(mu @ self.value(rho, change))


def discrete(r: Floats, p: Floats) -> Floats:
    return r / (p + r * (1 - p))


def discrete_slope(r: Floats, p: Floats) -> Floats:
    return p / (p + r * (1 - p)) ** 2


def continuous(r: Floats, d: Floats) -> Floats:
    return r / (r + d)


def continuous_slope(r: Floats, d: Floats) -> Floats:
    return d / (r + d) ** 2


def fixed(r: Floats, d: Floats) -> Floats:
    r = np.maximum(r, 1e-200)
    return -r / d * np.expm1(-d / r)


def fixed_slope(r: Floats, d: Floats) -> Floats:
    x = d / np.maximum(r, 1e-200)
    return (1 - (1 + x) * np.exp(-x)) / d


def harmonic(r: Floats, d: Floats) -> Floats:
    return -np.log1p(d / r)


def harmonic_slope(r: Floats, d: Floats) -> Floats:
    return d / (r * (r + d))


OBJECTIVES = {
    "discrete": Objective(rates.discrete, discrete, discrete_slope),
    "floor": Objective(rates.discrete, discrete, discrete_slope, floor=0.4),
    "continuous": Objective(rates.continuous, continuous, continuous_slope),
    "fixed": Objective(rates.fixed, fixed, fixed_slope),
    "harmonic": Objective(rates.harmonic, harmonic, harmonic_slope, least=1e-9),
}
INSTANCES = 200


def instance(seed: int, n: int) -> tuple[Floats, Floats, float]:
    """Worth that sums to 1, chances (or changes) in a tick, visits."""
    rng = np.random.default_rng(seed)
    mu = rng.lognormal(0, 1.2, n)
    return mu / mu.sum(), rng.uniform(0.01, 0.97, n), float(rng.uniform(0.03, 0.97) * n)


def best(
    it: Objective, mu: Floats, change: Floats, *limits: LinearConstraint, low: float
) -> tuple[float, float]:
    """The optimum that SLSQP finds within [low, 1] and the limits, and what it gained at most by
    going beyond them: by 2e-10 of a visit, say, where a visit is worth 600."""
    start = np.full(len(mu), float(limits[0].ub[0]) / len(mu))
    found = minimize(
        lambda r: -it.of(mu, change, r),
        start,
        jac=lambda r: -mu * it.slope(r, change),
        bounds=[(max(low, it.least), 1.0)] * len(mu),
        constraints=list(limits),
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    beyond = max(float(np.max(each.A @ found.x - each.ub)) for each in limits)
    return -float(found.fun), max(beyond, 0.0) * float(np.max(mu * it.slope(found.x, change)))


# ---------------------------------------------------------------------------------- convex solvers


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_optimum_is_that_of_a_convex_solver(name: str) -> None:
    it, worst = OBJECTIVES[name], 0.0
    for seed in range(INSTANCES):
        mu, change, visits = instance(seed, 2 + seed % 9)
        rho = rates.spend(it.asking(mu, change), visits, floor=it.floor)
        low = it.floor * visits / len(mu)
        assert np.all((rho >= low * (1 - 1e-12)) & (rho <= 1))
        assert rho.sum() == pytest.approx(visits, rel=1e-12)
        spent = LinearConstraint(np.ones((1, len(mu))), [visits], [visits])
        found, gained = best(it, mu, change, spent, low=low)
        assert gained < 1e-6, "the solver went astray"
        worst = max(worst, abs(found - it.of(mu, change, rho)) - gained)
    print(f"{name}: at most {worst:.1e} from SLSQP")
    assert worst < 1e-8


def some_of(asking: Asking, rows: Bools) -> Asking:
    return Asking(asking.form, asking.a[rows], asking.b[rows])


def within(asking: Asking, visits: float, host: Ints, room: Floats) -> Floats:
    """The host-capped optimum: one price for the rest, a local one for each full host (§4.2)."""
    full = np.zeros(len(room), dtype=np.bool_)
    while True:
        rho, free = np.zeros(len(host)), ~full[host]
        local = rates.spend_by_host(some_of(asking, ~free), host[~free], np.where(full, room, 0.0))
        rho[~free] = local
        rho[free] = rates.spend(some_of(asking, free), visits - float(room[full].sum()))
        over = np.bincount(host, weights=rho, minlength=len(room)) > room * (1 + 1e-12)
        if not (over & ~full).any():
            return rho
        full |= over


@pytest.mark.parametrize("name", ["discrete", "continuous", "fixed", "harmonic"])
def test_host_caps_are_those_of_a_convex_solver(name: str) -> None:
    it, worst, full = OBJECTIVES[name], 0.0, 0
    for seed in range(INSTANCES):
        mu, change, visits = instance(seed, 6 + seed % 7)
        rng = np.random.default_rng(seed)
        host = np.concatenate([np.arange(3), rng.integers(0, 3, len(mu) - 3)])
        room = np.minimum(visits * rng.dirichlet(np.ones(3)) * 1.6, np.bincount(host))
        visits = min(visits, 0.95 * float(room.sum()))
        rho = within(it.asking(mu, change), visits, host, room)
        load = np.bincount(host, weights=rho)
        assert rho.sum() == pytest.approx(visits, rel=1e-12)
        assert np.all(load <= room * (1 + 1e-12))
        assert np.all((rho >= 0) & (rho <= 1))
        full += np.count_nonzero(load > room * (1 - 1e-9))
        spent = LinearConstraint(np.ones((1, len(mu))), [visits], [visits])
        caps = LinearConstraint((host == np.arange(3)[:, None]).astype(float), -np.inf, room)
        found, gained = best(it, mu, change, spent, caps, low=0.0)
        assert gained < 1e-6, "the solver went astray"
        worst = max(worst, abs(found - it.of(mu, change, rho)) - gained)
    print(f"{name} with host caps: at most {worst:.1e} from SLSQP, {full} hosts full")
    assert worst < 1e-8
    assert full > INSTANCES / 2


def dual(it: Objective, mu: Floats, change: Floats, visits: float, price: float) -> float:
    """The Lagrange bound: max over ρ in [0, 1] of Σ(μF(ρ) − Λρ) + ΛR, by ternary search."""
    lo, hi = np.full(len(mu), 1e-12), np.ones(len(mu))
    for _ in range(200):
        one, two = hi - (hi - lo) * 2 / 3, lo + (hi - lo) * 2 / 3
        up = mu * it.slope((one + two) / 2, change) > price
        lo, hi = np.where(up, one, lo), np.where(up, hi, two)
    return it.of(mu, change, hi) - price * float(hi.sum()) + price * visits


@pytest.mark.parametrize("name", ["discrete", "continuous", "fixed", "harmonic"])
def test_many_unlike_pages_reach_the_bound_of_duality(name: str) -> None:
    """No ρ at all can beat the bound, so one that reaches it is the best there is."""
    it, rng = OBJECTIVES[name], np.random.default_rng(7)
    n, visits = 20_000, 3000.0
    mu = rng.pareto(1.1, n)
    mu /= mu.sum()
    change = np.clip(rng.lognormal(-3, 2.0, n), 1e-5, 0.99)
    rho = rates.spend(it.asking(mu, change), visits)
    inside = np.flatnonzero((rho > 0.1) & (rho < 0.9))
    price = float(np.median(mu[inside] * it.slope(rho[inside], change[inside])))
    assert 0 < len(inside) < n
    value, bound = it.of(mu, change, np.maximum(rho, 1e-300)), dual(it, mu, change, visits, price)
    assert value <= bound + 1e-12
    assert value > bound - 1e-8
    assert rho.sum() == pytest.approx(visits, rel=1e-13)


# --------------------------------------------------------------------------------- the printed form


def test_the_printed_form_has_negative_rates_and_rates_above_one() -> None:
    raw = printed_rates(np.array([1.0, 100.0]), np.array([0.5, 0.5]), 0.5)
    assert raw.sum() == pytest.approx(0.5)
    assert raw[0] < -0.7
    assert raw[1] > 1.2


def test_the_printed_form_overspends_once_it_is_clipped_and_loses_once_it_is_scaled() -> None:
    """Random pages as in ALGORITHMS §2.2, which found 15 % negative, 14 % above one, 2 % lost."""
    negative, above, spent, lost = [], [], [], []
    for seed in range(INSTANCES):
        rng = np.random.default_rng(seed)
        mu, p, b = rng.lognormal(0, 1, 100), rng.uniform(0.01, 0.8, 100), rng.uniform(20, 60)
        raw = printed_rates(mu, p, b)
        assert raw.sum() == pytest.approx(b)
        cut = np.clip(raw, 0.0, 1.0)
        scaled = rates.spend(rates.proportional(cut), b)
        exact = rates.spend(rates.discrete(mu, p), b)
        negative.append(np.mean(raw < 0))
        above.append(np.mean(raw > 1))
        spent.append(np.maximum(raw, 0).sum() / b)
        lost.append(1 - (mu @ discrete(scaled, p)) / (mu @ discrete(exact, p)))
    print(
        f"printed: {np.mean(negative):.0%} negative, {np.mean(above):.0%} above one, negative ones "
        f"cut spends {np.mean(spent):.2f}, lost {np.mean(lost):.1%}, at worst {np.max(lost):.1%}"
    )
    assert np.mean(negative) > 0.05
    assert np.mean(above) > 0.05
    assert np.min(spent) > 1.0
    assert np.min(lost) > -1e-12
    assert 0.003 < np.mean(lost) < 0.1


def test_the_printed_form_is_exact_where_no_page_is_clipped() -> None:
    mu, p = np.array([1.0, 1.2, 0.9]), np.array([0.2, 0.25, 0.3])
    raw = printed_rates(mu, p, 1.5)
    assert np.all((raw > 0) & (raw < 1))
    assert raw == pytest.approx(rates.spend(rates.discrete(mu, p), 1.5), abs=1e-12)


# ------------------------------------------------------------------------------- published figures


@pytest.mark.parametrize(
    ("often", "even", "random"),
    [
        (0.1, 0.100, 0.091),
        (0.5, 0.432, 0.333),
        (1, 0.632, 0.500),
        (2, 0.787, 0.667),
        (5, 0.906, 0.833),
    ],
)
def test_fixed_intervals_against_random_ones(often: float, even: float, random: float) -> None:
    """ALGORITHMS §3: freshness at a rate of ρ/Δ. One page: the rate is what there is to spend."""
    delta = np.array([0.15])
    rho = rates.spend(rates.fixed(np.ones(1), delta), often * 0.15)
    assert fixed(rho, delta) == pytest.approx(even, abs=6e-4)
    assert continuous(rho, delta) == pytest.approx(random, abs=6e-4)


@pytest.mark.parametrize(
    ("budget", "poisson", "at_even", "even", "forgone", "starved"),
    [
        (0.05, 0.465, 0.524, 0.528, 0.458 - 0.394, 0.66),
        (0.20, 0.639, 0.704, 0.709, 0.635 - 0.598, 0.39),
        (0.50, 0.754, 0.814, 0.818, 0.750 - 0.732, 0.21),
    ],
)
def test_optima_over_many_pages(
    budget: float, poisson: float, at_even: float, even: float, forgone: float, starved: float
) -> None:
    """The tables of ALGORITHMS §3 and §4.1, whose draws of 2·10⁵ pages are not ours."""
    rng = np.random.default_rng(2)
    n, tick = 200_000, 1e-5
    mu, delta = rng.pareto(1.5, n), rng.lognormal(0, 1.5, n) * tick
    mu /= mu.sum()
    visits = budget * float(delta.sum())
    rho = rates.spend(rates.continuous(mu, delta), visits)
    assert OBJECTIVES["continuous"].of(mu, delta, rho) == pytest.approx(poisson, abs=0.02)
    assert OBJECTIVES["fixed"].of(mu, delta, rho) == pytest.approx(at_even, abs=0.02)
    assert np.mean(rho == 0) == pytest.approx(starved, abs=0.06)
    kept = rates.spend(rates.fixed(mu, delta), visits)
    gain = OBJECTIVES["fixed"].of(mu, delta, kept) - OBJECTIVES["fixed"].of(mu, delta, rho)
    assert gain == pytest.approx(even - at_even, abs=0.003)
    never = rates.spend(rates.harmonic(mu, delta), visits)
    loss = OBJECTIVES["continuous"].of(mu, delta, rho) - OBJECTIVES["continuous"].of(
        mu, delta, never
    )
    assert loss == pytest.approx(forgone, abs=0.006)
    assert np.all(never > 0)


def test_the_inverse_of_g_is_lamberts_w() -> None:
    z = np.concatenate([1 + np.logspace(-8, 0, 200), np.logspace(0.4, 3, 200)])
    ours = np.array([inverse_g(one) for one in z])
    theirs = -1 - lambertw(-(1 - z**-2.0) / np.e, -1).real
    assert ours == pytest.approx(theirs, rel=3e-9)  # SciPy's own error where W is near -1
    again = -np.expm1(np.log1p(ours) - ours)
    assert again == pytest.approx(z**-2.0, rel=1e-9)


@pytest.mark.parametrize("form", range(3))
def test_what_a_page_asks_for_has_an_inverse(form: int) -> None:
    for rate in (1e-9, 1e-4, 0.02, 0.04, 0.3, 1.0):
        for a, b in ((1.0, 1.0), (1e-6, 0.03), (1e6, 20.0)):
            s = needed(form, a, b, rate)
            blur = 1e-6 * b if form == FIXED else 1e-14 * b  # as far as doubles tell near a·s = 1
            assert asked(form, a, b, s) == pytest.approx(rate, rel=1e-9, abs=blur)


def test_the_fixed_form_climbs_without_a_leap() -> None:
    s = 1.0 + np.linspace(0.99e-10, 1.01e-10, 50)
    climbed = np.array([asked(FIXED, 1.0, 1.0, one) for one in s])
    assert np.all(np.diff(climbed) >= 0)
    assert np.diff(climbed).max() < 1e-3


# ----------------------------------------------------------------------------------------- policies


def changing(*per_day: float, **columns: Floats) -> Pages:
    survival = PoissonSurvival(np.array(per_day))
    return replace(blank_pages(len(per_day)), survival=survival, **columns)


def test_chances_are_those_of_the_tick() -> None:
    """A rate for the day, divided by twelve, is not what twelve ticks of two hours should have."""
    mu, delta = np.array([1.0, 3.0, 0.5, 2.0]), np.array([0.3, 5.0, 9.0, 0.01])
    pages = changing(*delta, demand=mu)
    daily = replace(pages, tick=a_tick(0, timedelta(days=1)))
    for one, days in ((pages, 1 / 12), (daily, 1.0)):
        p = 1 - np.exp(-delta * days)
        expected = rates.spend(rates.discrete(mu, p), 0.7)
        assert LambdaCrawl().expected(one, 0.7) == pytest.approx(expected, abs=1e-13)
    short = LambdaCrawl().expected(pages, 1.2 / 12)
    assert np.abs(short - LambdaCrawl().expected(daily, 1.2) / 12).max() > 0.01


def test_worth_is_for_each_unit_of_cost() -> None:
    mu, cost = np.array([1.0, 3.0, 2.0]), np.array([1.0, 5.0, 2.0])
    dear = changing(1.0, 2.0, 3.0, demand=mu, cost=cost)
    plain = changing(1.0, 2.0, 3.0, demand=mu / cost)
    for policy in FAMILY:
        if policy is not LambdaCrawlImpressions:
            expected = policy().expected(plain, 0.8)
            assert policy().expected(dear, 0.8) == pytest.approx(expected, abs=1e-13)


def test_impressions_are_demand_where_the_name_says_so() -> None:
    mu = np.array([1.0, 3.0, 2.0])
    shown = changing(1.0, 2.0, 3.0, demand=np.zeros(3), impressions=mu)
    clicked = changing(1.0, 2.0, 3.0, demand=mu)
    expected = LambdaCrawl().expected(clicked, 1.1)
    assert np.array_equal(LambdaCrawlImpressions().expected(shown, 1.1), expected)


@pytest.mark.parametrize("policy", FAMILY)
def test_nothing_predicted_counts_alike(policy: Family) -> None:
    mu = np.array([1.0, 3.0, 2.0, 3.0])
    blank = replace(blank_pages(4), demand=mu, impressions=mu)
    alike = changing(1.0, 1.0, 1.0, 1.0, demand=mu, impressions=mu)
    expected = policy().expected(blank, 1.3)
    assert expected == pytest.approx(policy().expected(alike, 1.3), abs=1e-13)
    assert expected[1] == expected[3] > expected[2] > expected[0]


@pytest.mark.parametrize("policy", FAMILY)
def test_pages_that_earn_nothing_share_what_is_left(policy: Family) -> None:
    mu = np.array([1.0, 0.0, 2.0, 1.0])
    pages = changing(1.0, 1.0, 0.0, 2.0, demand=mu, impressions=mu)
    assert policy().expected(pages, 3.0) == pytest.approx([1, 0.5, 0.5, 1])
    some = policy().expected(pages, 1.0)
    assert some.sum() == pytest.approx(1.0)
    assert (some[1] > 0) == (policy is LambdaCrawlFloor)
    nothing = replace(pages, demand=np.zeros(4), impressions=np.zeros(4))
    assert policy().expected(nothing, 1.0) == pytest.approx(np.full(4, 0.25))


@pytest.mark.parametrize(
    ("policy", "columns"),
    [
        (LambdaCrawlImpressions, {"impressions", "cost", "change rate"}),
        *((policy, {"demand", "cost", "change rate"}) for policy in FAMILY if policy != FAMILY[1]),
    ],
)
def test_a_missing_number_is_refused_by_name(policy: Family, columns: set[str]) -> None:
    for name in columns:
        pages = some_pages(5)
        if name == "change rate":
            gone = PoissonSurvival(np.array([1.0, 1.0, np.nan, 1.0, 1.0]))
            pages = replace(pages, survival=gone)
        else:
            getattr(pages, name)[2] = np.nan
        with pytest.raises(InputError, match=f"{name} of page {pages.ids[2]} is not a number"):
            policy().expected(pages, 2.0)
        with pytest.raises(InputError, match=f"{name} of page"):
            policy().expected_by_host(pages, np.ones(3))


def test_a_floor_is_a_share_of_an_equal_part() -> None:
    pages = some_pages(40, seed=2)
    low = LambdaCrawlFloor().expected(pages, 8.0)
    assert low.min() == pytest.approx(0.4 * 8 / 40)
    assert low.max() > 0.5
    none = LambdaCrawlFloor(floor=0.0).expected(pages, 8.0)
    assert np.array_equal(none, LambdaCrawl().expected(pages, 8.0))
    assert LambdaCrawlFloor(floor=1.0).expected(pages, 8.0) == pytest.approx(np.full(40, 0.2))
    room = np.array([1.0, 2.0, 3.0])
    local = LambdaCrawlFloor().expected_by_host(pages, room)
    least = 0.4 * room / np.bincount(pages.host)
    assert np.all(local >= least[pages.host] * (1 - 1e-12))


@pytest.mark.parametrize("floor", [-0.1, 1.1, np.nan])
def test_a_floor_that_is_no_share_is_refused(floor: float) -> None:
    with pytest.raises(ConfigError, match="from 0 to 1"):
        LambdaCrawlFloor(floor=floor)


def test_harmonic_starves_no_page_and_binary_freshness_does() -> None:
    pages = changing(*np.logspace(-2, 2, 50), demand=np.ones(50))
    assert Harmonic().expected(pages, 2.0).min() > 0
    assert np.count_nonzero(LambdaCrawl().expected(pages, 2.0)) < 40


def test_pages_that_change_at_once_are_all_or_nothing() -> None:
    """At p = 1 freshness is ρ itself: the dearer page is full before the other gets any."""
    pages = changing(np.inf, 1e9, demand=np.array([2.0, 1.0]))
    assert LambdaCrawl().expected(pages, 0.8) == pytest.approx([0.8, 0], abs=1e-3)
    assert LambdaCrawl().expected(pages, 1.5) == pytest.approx([1, 0.5], abs=1e-3)


@pytest.mark.parametrize("policy", FAMILY)
def test_each_host_gets_its_room(policy: Family) -> None:
    pages = some_pages(60, hosts=4, seed=3)
    pages = replace(pages, host=np.where(pages.host == 2, 1, pages.host))
    room = np.array([0.7, 3.0, 5.0, np.inf])
    expected = policy().expected_by_host(pages, room)
    load = np.bincount(pages.host, weights=expected, minlength=4)
    count = np.bincount(pages.host, minlength=4)
    assert load == pytest.approx(np.minimum(room, count), rel=1e-12)
    for host in (0, 1, 3):
        own = pages.host == host
        alone = policy().expected(pages.take(own), float(room[host]))
        assert expected[own] == pytest.approx(alone, abs=1e-12)
