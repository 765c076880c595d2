"""Laws that every predictor of change obeys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from salticus.checks.samples import (
    failed_outcomes,
    poisson_outcomes,
    restarted,
    some_outcomes,
    some_pages,
)
from salticus.predict.base import Predictor, ask
from salticus.predict.gamma import GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.testing import START
from salticus.types import Floats, Ints, Outcomes, Pages, Survival

SPACINGS = ("even", "poisson", "bursts")


def check_predictor(
    make: Callable[[], Predictor],
    *,
    rate: float = 0.5,
    within: float = 0.1,
    spacings: Sequence[str] | None = None,
) -> None:
    """Run all laws of `Predictor`; AssertionError names the law broken.

    400 pages change `rate` times a day and are visited 120 times. `within` is the relative error
    allowed on the mean rate, both of `rates` and read off the survival curve. It must be recovered
    under the `spacings` of visits given; if none are, under those that the predictor names itself
    (`recovers = ("even",)` for one that takes visits for regular), and under all if it names none.

    >>> from salticus.predict.gamma import Gamma
    >>> check_predictor(Gamma)
    """
    pages = some_pages(400, seed=0)
    _is_survival(ask(make(), pages, START))
    claimed = getattr(make(), "recovers", SPACINGS) if spacings is None else spacings
    for spacing in SPACINGS:
        predictor = make()
        for outcomes in poisson_outcomes(pages, rate, visits=120, spacing=spacing, seed=5):
            predictor.learn(outcomes)
        survival = ask(predictor, pages, START)
        _is_survival(survival)
        if spacing in claimed:
            _recovers(survival, rate, within, spacing)
        _remembers(make, predictor, pages)
    _learns_what_counts(make, pages)
    _meets_any_pages(make, pages)


def _is_survival(survival: Survival) -> None:
    grid = [np.full(400, age) for age in (0.0, 0.01, 0.5, 3.0, 40.0)]
    curve = np.array([survival.unchanged(ages) for ages in grid])
    assert np.allclose(curve[0], 1.0), "law: certain at the visit itself"
    assert np.all((curve >= 0) & (curve <= 1)), "law: a probability"
    assert np.all(np.diff(curve, axis=0) <= 1e-12), "law: never rises with age"
    middles = (np.arange(2000) + 0.5) * 3.0 / 2000
    area = 3.0 * np.mean([survival.unchanged(np.full(400, age)) for age in middles], axis=0)
    assert np.allclose(survival.integral(grid[3]), area, rtol=1e-3), "law: `integral` integrates"
    some = np.array([7, 3])
    cut = survival.take(some).unchanged(np.full(2, 3.0))
    assert np.allclose(cut, curve[3][some]), "law: `take` takes rows"
    _are_rates(survival, some)


def _are_rates(survival: Survival, some: Ints) -> None:
    rates = survival.rates()
    assert rates.shape == (400,), "law: one rate a page"
    assert np.all(np.isfinite(rates) & (rates >= 0)), "law: rates are finite and never negative"
    assert np.allclose(survival.take(some).rates(), rates[some]), "law: `take` takes rates"
    if isinstance(survival, PoissonSurvival | GammaSurvival):
        hazard = _hazard(survival, 400, step=1e-6)
        assert np.allclose(rates, hazard, rtol=1e-4, atol=1e-8), "law: `rates` are −S′(0)"


def _hazard(survival: Survival, n: int, step: float = 1e-4) -> Floats:
    """Changes a day at the visit: −ln S(h)/h for a small h."""
    return np.asarray(-np.log(survival.unchanged(np.full(n, step))) / step)


def _recovers(survival: Survival, rate: float, within: float, spacing: str) -> None:
    rates = survival.rates()
    for found in (float(_hazard(survival, len(rates)).mean()), float(rates.mean())):
        assert abs(found - rate) <= within * rate, (
            f"law: recovers a known rate under {spacing} spacing ({found:.3f} for {rate})"
        )


def _curve(predictor: Predictor, pages: Pages, *lessons: Outcomes) -> Floats:
    """What a predictor says of two days ahead, after these lessons."""
    for outcomes in lessons:
        predictor.learn(outcomes)
    return ask(predictor, pages, START).unchanged(np.full(len(pages), 2.0))


def _learns_what_counts(make: Callable[[], Predictor], pages: Pages) -> None:
    untaught, taught = _curve(make(), pages), _curve(make(), pages, failed_outcomes(pages))
    assert np.array_equal(untaught, taught), "law: failed and dropped visits teach nothing"
    lesson = some_outcomes(pages)
    turned = lesson.take(np.arange(len(lesson))[::-1])
    one, other = _curve(make(), pages, lesson), _curve(make(), pages, turned)
    assert np.allclose(one, other, rtol=1e-6), "law: the order of pages does not matter"


def _meets_any_pages(make: Callable[[], Predictor], pages: Pages) -> None:
    """Pages come and go between ticks, all of them even."""
    predictor = make()
    predictor.learn(some_outcomes(pages))
    for rows in (np.arange(0), np.arange(0, 400, 2), np.arange(400)):
        curve = _curve(predictor, pages.take(rows))
        assert curve.shape == rows.shape, "law: a curve for every page there is"
        assert np.all(np.isfinite(curve)), "law: never NaN"


def _remembers(make: Callable[[], Predictor], predictor: Predictor, pages: Pages) -> None:
    if heir := restarted(predictor, make()):
        before, after = _curve(predictor, pages), _curve(heir, pages)
        assert np.allclose(before, after, rtol=1e-9), "law: restored from its state it says alike"
