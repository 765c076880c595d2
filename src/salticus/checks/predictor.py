"""Laws that every predictor of change obeys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from salticus.checks.samples import failed_outcomes, poisson_outcomes, some_pages
from salticus.predict.base import Predictor
from salticus.testing import START
from salticus.types import Floats, Pages, Survival

SPACINGS = ("even", "poisson", "bursts")


def check_predictor(
    make: Callable[[], Predictor], *, rate: float = 0.5, within: float = 0.1
) -> None:
    """Run all laws of `Predictor`; AssertionError names the law broken.

    400 pages change `rate` times a day and are visited 120 times. `within` is the relative error
    allowed on the mean rate, read off the survival curve, under every spacing of the visits.

    >>> from salticus.predict.gamma import Gamma
    >>> check_predictor(Gamma)
    """
    pages = some_pages(400, seed=0)
    _is_survival(make().survival(pages, START))
    for spacing in SPACINGS:
        predictor = make()
        for outcomes in poisson_outcomes(pages, rate, visits=120, spacing=spacing, seed=5):
            predictor.learn(outcomes)
        survival = predictor.survival(pages, START)
        _is_survival(survival)
        found = _mean_rate(survival, len(pages))
        assert abs(found - rate) <= within * rate, (
            f"law: recovers a known rate under {spacing} spacing ({found:.3f} for {rate})"
        )
    _ignores_failures(make, pages)


def _is_survival(survival: Survival) -> None:
    grid = [np.full(400, age) for age in (0.0, 0.01, 0.5, 3.0, 40.0)]
    curve = np.array([survival.unchanged(ages) for ages in grid])
    assert np.allclose(curve[0], 1.0), "law: certain at the visit itself"
    assert np.all((curve >= 0) & (curve <= 1)), "law: a probability"
    assert np.all(np.diff(curve, axis=0) <= 1e-12), "law: never rises with age"
    area = _area(survival, 3.0)
    assert np.allclose(survival.integral(grid[3]), area, rtol=1e-3), "law: `integral` integrates"
    some = np.array([7, 3])
    cut = survival.take(some).unchanged(np.full(2, 3.0))
    assert np.allclose(cut, curve[3][some]), "law: `take` takes rows"


def _area(survival: Survival, age: float) -> Floats:
    steps = np.linspace(0.0, age, 2001)
    middles = (steps[1:] + steps[:-1]) / 2
    total = sum(survival.unchanged(np.full(400, u)) for u in middles)
    return np.asarray(total * (age / 2000))


def _mean_rate(survival: Survival, n: int) -> float:
    """Mean hazard at the visit, changes a day: −ln S(h)/h for a small h."""
    step = 1e-4
    return float(np.mean(-np.log(survival.unchanged(np.full(n, step))) / step))


def _ignores_failures(make: Callable[[], Predictor], pages: Pages) -> None:
    taught, untaught = make(), make()
    taught.learn(failed_outcomes(pages))
    ages = np.full(len(pages), 2.0)
    before = untaught.survival(pages, START).unchanged(ages)
    after = taught.survival(pages, START).unchanged(ages)
    assert np.array_equal(before, after), "law: failed and dropped visits teach nothing"
