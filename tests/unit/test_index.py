"""The index of the policies: its special cases, and what it costs in steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import lambertw

from salticus.allocate.index import by_host
from salticus.allocate.intervals import of_curves, of_rates, worth
from salticus.allocate.response import g_inverse
from salticus.allocate.share import first
from salticus.predict.gamma import GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.types import Floats


def test_g_inverse_is_lambert_w() -> None:
    y = np.linspace(0.01, 0.99, 99)
    assert g_inverse(y) == pytest.approx(-1 - lambertw(-(1 - y) / np.e, -1).real, rel=1e-12)


def test_the_worth_of_a_constant_rate_is_g() -> None:
    """V(τ) = (μ/Δ)·g(Δτ), the first row of the table in ALGORITHMS §0."""
    rate, demand, age = np.array([0.1, 1.0, 5.0]), np.array([2.0, 3.0, 4.0]), np.full(3, 0.7)
    x = rate * age
    wanted = demand / rate * (1 - (1 + x) * np.exp(-x))
    assert worth(PoissonSurvival(rate), demand, age) == pytest.approx(wanted, rel=1e-12)


def test_more_pages_than_visits_were_never_visited() -> None:
    worth = np.array([np.inf, 7.0, np.inf, np.inf])
    assert first(-worth, 1.5).tolist() == [0.5, 0.0, 0.5, 0.5]
    assert by_host(worth, np.zeros(4, dtype=np.int64), np.array([1.5])).tolist() == [
        0.5,
        0,
        0.5,
        0.5,
    ]


def test_worthless_pages_share_what_is_left() -> None:
    assert first(np.zeros(4), 3.0).tolist() == [0.75] * 4


def test_hosts_without_pages_and_pages_without_room() -> None:
    worth, host = np.array([1.0, 2.0]), np.array([2, 2])
    assert by_host(worth, host, np.array([9.0, 0.0, 0.0, 1.0])).tolist() == [0.0, 0.0]
    assert len(by_host(np.empty(0), np.empty(0, dtype=np.int64), np.ones(3))) == 0


def test_doubt_about_a_rate_makes_intervals_longer() -> None:
    """A Gamma posterior has a longer tail than its mean rate, and the same start."""
    rate, demand = np.full(3, 0.5), np.ones(3)
    doubt = GammaSurvival(np.array([0.5, 5.0, 5e6]), np.array([1.0, 10.0, 1e7]))
    interval = of_curves(doubt, demand, 0.3)
    assert interval[0] > interval[1] > interval[2]
    assert interval[2] == pytest.approx(of_rates(rate, demand, 0.3)[2], rel=1e-4)


def test_a_page_that_only_just_comes_to_the_price_is_never_due() -> None:
    rate, demand = np.ones(2), np.array([1.0, 1.01])
    for interval in (of_rates(rate, demand, 1.0), of_curves(PoissonSurvival(rate), demand, 1.0)):
        assert np.isfinite(interval).tolist() == [False, True]


class Nights:
    """A page that changes by day only: its curve is flat for half of every day."""

    def __init__(self, rate: Floats) -> None:
        self.rate = rate

    def _open(self, ages: Floats) -> Floats:
        return np.floor(ages) / 2 + np.minimum(ages % 1, 0.5)

    def unchanged(self, ages: Floats) -> Floats:
        return np.exp(-self.rate * self._open(ages))

    def integral(self, ages: Floats) -> Floats:
        days, part = np.floor(ages), ages % 1
        day = -np.expm1(-self.rate * 0.5) / self.rate + 0.5 * np.exp(-self.rate * 0.5)
        whole = day * -np.expm1(-self.rate * days / 2) / -np.expm1(-self.rate / 2)
        light = -np.expm1(-self.rate * np.minimum(part, 0.5)) / self.rate
        dark = np.maximum(part - 0.5, 0.0) * np.exp(-self.rate * 0.5)
        return np.asarray(whole + np.exp(-self.rate * days / 2) * (light + dark))

    def rates(self) -> Floats:
        return self.rate / 2

    def take(self, rows: object) -> Nights:
        return Nights(self.rate[rows])  # type: ignore[index]


def test_a_visit_is_never_due_while_nothing_can_change() -> None:
    demand = np.linspace(0.5, 20.0, 200)
    interval = of_curves(Nights(np.full(200, 0.8)), demand, 0.4)
    due = interval[np.isfinite(interval)]
    assert len(due) > 100
    assert ((due % 1 <= 0.5 + 1e-4) | (due % 1 >= 1 - 1e-4)).all()
    assert (np.diff(interval[np.isfinite(interval)]) <= 1e-6).all()
