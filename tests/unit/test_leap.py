"""leap against the optimum where rates are constant and known, and where estimates are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pytest

from salticus.allocate.baselines import Uniform
from salticus.allocate.lambdacrawl import FixedOptimum, LambdaCrawl
from salticus.allocate.leap import Leap
from salticus.errors import InputError
from salticus.predict.gamma import GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.predict.worth import gamma_worth, poisson_worth
from salticus.testing import START, a_tick, blank_pages
from salticus.types import DAY, NEVER, Bools, Floats, Ints, Pages, Survival, instant
from salticus.types.coins import coins

HOUR = timedelta(hours=1)
Expected = Callable[[Pages, float], Floats]
Chosen = Callable[[Floats, int], Bools]


@dataclass(frozen=True)
class Town:
    """Pages that change at constant rates a day, in ticks of `step`."""

    rates: Floats
    demand: Floats
    step: timedelta

    @property
    def days(self) -> float:
        return self.step / (24 * HOUR)

    def crawl(
        self, policy: Expected, chosen: Chosen, believed: Floats, visits: float, ticks: int
    ) -> tuple[float, Floats]:
        """Click-weighted freshness and visits a tick of each page, over the second half."""
        pages = replace(
            blank_pages(len(self.rates)), demand=self.demand, survival=PoissonSurvival(believed)
        )
        last = np.full(len(pages), instant(START) - DAY)
        fresh, made = 0.0, np.zeros(len(pages))
        for k in range(ticks):
            tick = a_tick(k, self.step)
            expected = policy(replace(pages.answered(last), tick=tick), visits)
            now = chosen(expected, k)
            last = np.where(now, instant(tick.start), last)
            if 2 * k >= ticks:
                age = (instant(tick.start) - last) / DAY
                fresh += float(self.demand @ np.exp(-self.rates * age))
                made += now
        half = ticks - (ticks + 1) // 2
        return fresh / half / float(self.demand.sum()), made / half

    def bound(self, visits: float) -> float:
        """What no schedule in ticks can exceed: the least of the dual over prices.

        A page visited at every n-th tick is fresh (1/n)·Σ e^(−Δkh) of the time; at a price it
        takes the n that pays best.
        """
        n = np.arange(1, 3000)
        still = np.exp(-np.outer(self.rates * self.days, np.arange(len(n))))
        fresh = self.demand[:, None] * np.cumsum(still, axis=1) / n
        price = self.demand.mean() * np.logspace(-4, 3, 120)
        dual = [np.maximum(fresh - p / n, 0.0).max(axis=1).sum() + p * visits for p in price]
        return float(min(dual) / self.demand.sum())


def by_coin(expected: Floats, tick: int) -> Bools:
    """Ones for sure, fractions by a coin."""
    return np.asarray(coins(3, np.arange(len(expected)), tick) < expected)


def by_credit(n: int) -> Chosen:
    """Rates turned into even intervals: a visit whenever a whole one is saved up."""
    saved = coins(5, np.arange(n), 0)

    def chosen(expected: Floats, tick: int) -> Bools:
        nonlocal saved
        saved = saved + expected
        now = saved >= 1.0
        saved = saved - now
        return now

    return chosen


def a_town(n: int, step: timedelta, *, per_day: float = 0.1, seed: int = 0) -> Town:
    rng = np.random.default_rng(seed)
    rates = per_day * np.exp(1.2 * rng.standard_normal(n))
    demand = rng.permutation(1.0 / np.arange(1, n + 1) ** 0.9)
    return Town(rates, demand * n / demand.sum(), step)


# ------------------------------------------------------------------------------ constant rates


@pytest.fixture(scope="module")
def fine() -> Town:
    return a_town(600, 3 * HOUR)


def test_in_fine_ticks_leap_is_the_fixed_interval_optimum(fine: Town) -> None:
    visits, n = 6.0, len(fine.rates)
    fresh, made = fine.crawl(Leap().expected, by_coin, fine.rates, visits, 2000)
    pages = replace(
        blank_pages(n),
        tick=a_tick(0, fine.step),
        demand=fine.demand,
        survival=PoissonSurvival(fine.rates),
    )
    wanted = FixedOptimum().expected(pages, visits)
    often = (wanted * 1000 > 25) & (wanted < 0.2)  # often enough to count, and ticks do not matter
    assert np.count_nonzero(often) > 40
    assert np.abs(made[often] / wanted[often] - 1.0).max() < 0.15
    assert abs(made[often].sum() / wanted[often].sum() - 1.0) < 0.02
    assert made.sum() == pytest.approx(visits, rel=0.01), "law: the budget is spent"
    assert fresh > 0.995 * fine.bound(visits)


def test_leap_is_not_below_lambdacrawl_at_even_intervals(fine: Town) -> None:
    for visits in (2.0, 10.0, 40.0):
        ours, _ = fine.crawl(Leap().expected, by_coin, fine.rates, visits, 1600)
        theirs, _ = fine.crawl(LambdaCrawl().expected, by_credit(600), fine.rates, visits, 1600)
        assert ours > theirs - 0.005 * theirs
        assert 0.985 * ours < theirs, "law: they agree but for what even intervals cannot reach"


@pytest.mark.parametrize("visits", [20.0, 100.0, 350.0])
def test_in_coarse_ticks_the_tick_sums_make_leap_optimal(visits: float) -> None:
    """Rates of about one change a tick: the integral would hold fast pages too cheap."""
    town = a_town(500, 24 * HOUR, per_day=0.8, seed=2)
    fresh, made = town.crawl(Leap().expected, by_coin, town.rates, visits, 700)
    assert made.sum() == pytest.approx(visits, rel=0.01)
    assert fresh > 0.995 * town.bound(visits)


# ---------------------------------------------------------------------------- the worth of a visit


def tick_sum(unchanged: Callable[[Floats], Floats], ticks: int, step: float) -> float:
    """h·Σ S(kh) − τS(τ), one by one."""
    ages = np.arange(ticks + 1, dtype=np.float64) * step
    still = unchanged(ages)
    return float(step * np.sum(still[:-1] - still[-1]))


@pytest.mark.parametrize("per_step", [1e-5, 1e-3, 0.049, 0.051, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("ticks", [1, 2, 7, 300])
def test_the_worth_of_a_known_rate_is_the_tick_sum(per_step: float, ticks: int) -> None:
    step, rate = 0.25, per_step / 0.25
    wanted = tick_sum(lambda u: np.exp(-rate * u), ticks, step)
    got = poisson_worth(np.array([rate]), np.array([ticks * step]), step)[0]
    assert got == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("a", [0.05, 0.5, 0.99999, 1.0, 1.00001, 1.5, 5.0, 60.0])
@pytest.mark.parametrize("b", [0.4, 3.0, 50.0, 1e5])
@pytest.mark.parametrize("ticks", [1, 2, 9, 400])
def test_the_worth_of_a_gamma_posterior_is_the_tick_sum(a: float, b: float, ticks: int) -> None:
    """Within the first term that Euler and Maclaurin leave out: S is completely monotone."""
    step = 0.25
    wanted = tick_sum(lambda u: np.exp(-a * np.log1p(u / b)), ticks, step)
    got = gamma_worth(np.array([a]), np.array([b]), np.array([ticks * step]), step)[0]
    remainder = step**4 / 720 * a * (a + 1) * (a + 2) / b**3
    assert abs(got - wanted) <= 1.01 * remainder + 1e-6 * wanted


def test_worth_has_no_step_where_its_code_branches() -> None:
    sides = np.array([1 - 1e-10, 1 + 1e-10])
    for a in (0.05, 0.7, 3.0, 40.0):
        ages = 20.0 * 1e-3 / (a + 2.0) * sides
        both = gamma_worth(np.full(2, a), np.full(2, 20.0), ages, 0.1)
        assert both[0] == pytest.approx(both[1], rel=1e-8)
    for near in (-1e-4, 1e-4):  # (a − 1)·ln(1 + u) at the branch around a = 1
        power = near / np.log1p(2.0) * sides
        both = gamma_worth(1.0 + power, np.full(2, 5.0), np.full(2, 10.0), 0.1)
        assert both[0] == pytest.approx(both[1], rel=1e-8)
    both = poisson_worth(0.5 * sides, np.full(2, 4.0), 0.1)
    assert both[0] == pytest.approx(both[1], rel=1e-6)
    both = poisson_worth(np.full(2, 0.5), 2e-3 * sides, 0.1)
    assert both[0] == pytest.approx(both[1], rel=1e-8)


def test_a_posterior_that_is_sure_is_a_known_rate() -> None:
    ages = np.array([0.25, 1.0, 5.0, 40.0])
    sure = gamma_worth(np.full(4, 3e8), np.full(4, 1e9), ages, 0.25)
    assert sure == pytest.approx(poisson_worth(np.full(4, 0.3), ages, 0.25), rel=1e-5)


# ----------------------------------------------------------------------------------- as a policy


@dataclass(frozen=True)
class Bare:
    """A curve that knows no more than the contract asks for."""

    curve: PoissonSurvival

    def unchanged(self, ages: Floats) -> Floats:
        return self.curve.unchanged(ages)

    def integral(self, ages: Floats) -> Floats:
        return self.curve.integral(ages)

    def rates(self) -> Floats:
        return self.curve.rates()

    def take(self, rows: Ints | Bools) -> Bare:
        return Bare(self.curve.take(rows))


def seen(ages: list[float | None], survival: Survival | None, **columns: Floats) -> Pages:
    """Pages last visited so many days before the tick; None = never."""
    last = [
        NEVER if age is None else instant(START) - np.timedelta64(int(age * 24), "h")
        for age in ages
    ]
    pages = blank_pages(len(ages)).answered(np.array(last, dtype="M8[us]"))
    pages = replace(pages, survival=survival)
    return replace(pages, **columns)  # type: ignore[arg-type]


def test_a_curve_without_a_worth_of_its_own_is_weighed_by_its_parts() -> None:
    rates = np.array([0.01, 0.2, 1.0, 0.0, 3.0])
    ages: list[float | None] = [4.0, 1.0, 2.0, 9.0, 30.0]
    own, _ = Leap().worth(seen(ages, PoissonSurvival(rates)))
    bare, _ = Leap().worth(seen(ages, Bare(PoissonSurvival(rates))))
    assert np.abs(own - bare).max() <= (2 / 24) ** 2 / 12 * rates.max() * 1.01
    assert bare[3] == own[3] == 0.0


def test_without_a_predictor_the_oldest_copy_comes_first() -> None:
    assert Leap().expected(seen([1.0, 5.0, 3.0], None), 1.0).tolist() == [0, 1, 0]


def test_pages_never_visited_come_before_their_like_but_not_at_any_price() -> None:
    alike = PoissonSurvival(np.full(4, 0.1))
    pages = seen([90.0, None, None, 90.0], alike, demand=np.ones(4))
    assert Leap().expected(pages, 1.0).tolist() == [0, 0.5, 0.5, 0]
    assert Leap().expected(pages, 3.0).tolist() == [0.5, 1, 1, 0.5]
    wanted = seen([90.0, None, None, 90.0], alike, demand=np.array([9.0, 1.0, 0.0, 9.0]))
    assert Leap().expected(wanted, 2.0).tolist() == [1, 0, 0, 1]
    assert Leap().expected(wanted, 3.5).tolist() == [1, 1, 0.5, 1]


def test_visits_go_by_demand_and_cost_and_ties_share() -> None:
    same = PoissonSurvival(np.full(4, 0.2))
    ages: list[float | None] = [3.0, 3.0, 3.0, 3.0]
    four = np.array([1.0, 2.0, 4.0, 4.0])
    assert Leap().expected(seen(ages, same, demand=four), 1.0).tolist() == [0, 0, 0.5, 0.5]
    assert Leap().expected(seen(ages, same, cost=four), 1.0).tolist() == [1, 0, 0, 0]
    both = seen(ages, same, demand=four, cost=four)
    assert Leap().expected(both, 2.0).tolist() == [0.5] * 4


def test_pages_that_nobody_reads_share_what_is_left_by_their_age() -> None:
    pages = seen(
        [1.0, 9.0, 2.0, 9.0], PoissonSurvival(np.full(4, 0.2)), demand=np.array([1.0, 0, 0, 0])
    )
    assert Leap().expected(pages, 2.0).tolist() == [1, 0.5, 0, 0.5]
    assert Leap().expected(pages, 3.5).tolist() == [1, 1, 0.5, 1]


def test_one_page_and_none() -> None:
    assert Leap().expected(blank_pages(0), 3.0).tolist() == []
    assert Leap().expected(seen([1.0], PoissonSurvival(np.array([0.0]))), 0.4).tolist() == [0.4]
    assert Leap().expected(seen([None], None), 7.0).tolist() == [1.0]
    assert Leap().expected(seen([1.0, 2.0], PoissonSurvival(np.zeros(2))), 0.0).tolist() == [0, 0]


def test_a_missing_number_is_named() -> None:
    missing, ages = np.array([0.1, np.nan, 0.1]), [1.0] * 3
    with pytest.raises(InputError, match="demand of page 1"):
        Leap().expected(seen([*ages], None, demand=missing), 1.0)
    with pytest.raises(InputError, match="cost of page 1"):
        Leap().expected(seen([*ages], None, cost=missing), 1.0)
    for survival in (
        PoissonSurvival(missing),
        GammaSurvival(missing, np.ones(3)),
        GammaSurvival(np.ones(3), missing),
    ):
        with pytest.raises(InputError, match="change rate of page 1"):
            Leap().expected(seen([*ages], survival), 1.0)


# -------------------------------------------------------------------------------- wrong estimates


def test_with_wrong_rates_leap_is_still_far_better_than_uniform() -> None:
    town = a_town(1000, 6 * HOUR, seed=4)
    rng = np.random.default_rng(1)
    believed = town.rates * np.exp(1.5 * rng.standard_normal(1000))
    believed[rng.choice(1000, 40, replace=False)] = 1e4
    believed[rng.choice(1000, 40, replace=False)] = 0.0
    for visits in (10.0, 50.0):
        ours, _ = town.crawl(Leap().expected, by_coin, believed, visits, 700)
        right, _ = town.crawl(Leap().expected, by_coin, town.rates, visits, 700)
        plain, _ = town.crawl(Uniform().expected, by_credit(1000), town.rates, visits, 700)
        assert plain < ours < right


@pytest.mark.parametrize("visits", [1.0, 4.0, 12.0])
def test_a_small_set_that_pretends_to_be_priceless_gets_half(visits: float) -> None:
    """Eight pages of a thousand whose demand and rate are absurd."""
    town = a_town(1000, 6 * HOUR, seed=4)
    loud = np.arange(1000) % 125 == 7
    lie = replace(town, demand=np.where(loud, 1e12, town.demand))
    believed = np.where(loud, 50.0, town.rates)
    _, made = lie.crawl(Leap().expected, by_coin, believed, visits, 800)
    assert made[loud].sum() <= 0.58 * visits
    assert made[~loud].sum() >= 0.36 * visits
    _, free = lie.crawl(Leap(most=1.0).expected, by_coin, believed, visits, 800)
    assert free[loud].sum() > 0.95 * min(visits, 8.0), "law: without the cap they take all"
