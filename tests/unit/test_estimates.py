"""Estimates without a model: what each gives, where it is biased, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from salticus.checks.predictor import SPACINGS, check_predictor
from salticus.checks.samples import failed_outcomes, poisson_outcomes, some_outcomes, some_pages
from salticus.predict.base import ask
from salticus.predict.gamma import Gamma, GammaSurvival
from salticus.predict.mle import Lengths, Mle, likeliest
from salticus.predict.point import BiasReduced, Naive, PointRates, bias_reduced
from salticus.predict.poisson import PoissonSurvival
from salticus.predict.spans import answered
from salticus.testing import START, blank_pages
from salticus.types import DAY, Floats, Ints, Outcomes, Pages, Survival, instant


def plain() -> Mle:
    """Maximum likelihood without smoothing."""
    return Mle(smooth_days=0.0)


ESTIMATES: list[Callable[[], PointRates]] = [Naive, BiasReduced, Mle, plain]


def visits(page: Sequence[int], days: Sequence[float], changed: Sequence[int]) -> Outcomes:
    """One visit a row, so many days after the answer before it; rows in order of time."""
    n = len(page)
    at = np.full(n, instant(START)) + np.arange(n) * np.timedelta64(1, "s")
    return replace(
        some_outcomes(blank_pages(n)),
        page=np.array(page, dtype=np.int64),
        at=at,
        since=at - (np.array(days) * DAY.astype(np.int64)).astype("m8[us]"),
        changed=np.array(changed, dtype=np.int8),
        made=np.ones(n, dtype=np.bool_),
    )


def taught(model: PointRates, *lessons: Outcomes) -> PointRates:
    for outcomes in lessons:
        model.learn(outcomes)
    return model


def rate_of(model: PointRates, days: Sequence[float], changed: Sequence[int]) -> float:
    """What the estimate makes of one page's history."""
    taught(model, visits([1] * len(days), days, changed))
    return float(model.rates(np.array([1]))[0])


def mean_rate(model: PointRates, rate: float, *, visits: int, spacing: str = "even") -> float:
    """The mean estimate over 2000 pages that change so many times a day, visited once a day."""
    pages = blank_pages(2000)
    taught(model, *poisson_outcomes(pages, rate, visits=visits, spacing=spacing, seed=3))
    return float(model.rates(pages.ids).mean())


# --------------------------------------------------------------------------------------- formulas


@pytest.mark.parametrize("rate", [0.1, 1.0, 2.0])
def test_the_naive_estimate_is_as_low_as_theory_says(rate: float) -> None:
    """63 % of the truth at one change an interval."""
    chance = -np.expm1(-rate)
    deviation = float(np.sqrt(chance * (1 - chance) / (2000 * 40)))
    assert mean_rate(Naive(), rate, visits=40) == pytest.approx(chance, abs=4 * deviation)
    assert rate != 1.0 or chance / rate == pytest.approx(0.632, abs=0.001)


@pytest.mark.parametrize(
    ("rate", "low", "high"),
    [(0.05, 0.998, 1.004), (0.3, 0.998, 1.004), (1.0, 0.998, 1.004), (2.0, 0.968, 0.971)],
)
def test_the_bias_reduced_estimate_is_as_good_as_published(
    rate: float, low: float, high: float
) -> None:
    """Mean over truth at ten visits, summed over all that they can find."""
    changes = np.arange(11.0)
    chance = stats.binom.pmf(changes, 10, -np.expm1(-rate))
    estimates = bias_reduced(np.full(11, 10.0), changes, np.ones(11))
    assert low <= chance @ estimates / rate <= high


def test_the_bias_reduced_estimate_takes_the_mean_interval() -> None:
    assert rate_of(BiasReduced(), [1.0, 3.0], [1, 0]) == pytest.approx(np.log(2.5 / 1.5) / 2.0)


def exact(changed: Floats, still: float) -> float:
    """The maximum of the likelihood, by another road: the root of its slope between two bounds."""

    def slope(rate: float) -> float:
        return float(np.sum(changed / np.expm1(rate * changed)) - still)

    bounds = 0.5 * len(changed) / (still + changed.sum()), 2.0 * len(changed) / still
    return float(brentq(slope, *bounds, xtol=1e-15, rtol=1e-14))


def test_the_likeliest_rate_is_that_of_a_solver_on_random_histories() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 40))
        days = np.rint(10 ** rng.uniform(-2, 1.5, n) * 86_400) / 86_400
        changed = rng.random(n) < rng.uniform(0.05, 0.95)
        changed[np.flatnonzero(changed)[8:]] = False
        if changed.any():
            half = 0.5 * days.mean()
            found = rate_of(plain(), days.tolist(), changed.astype(int).tolist())
            assert found == pytest.approx(
                exact(days[changed], days[~changed].sum() + half), rel=1e-9
            )


def test_equal_intervals_may_be_any_number() -> None:
    days, changed = [0.25, 1.0, 7.0] * 60, [1, 0, 1, 0, 1, 1] * 30
    found = rate_of(plain(), days, changed)
    mask = np.array(changed, dtype=np.bool_)
    still = np.array(days)[~mask].sum() + 0.5 * np.mean(days)
    assert found == pytest.approx(exact(np.array(days)[mask], still), rel=1e-9)


def test_without_a_change_the_likeliest_rate_is_zero_and_without_rest_infinite() -> None:
    days, count = np.ones((3, 2)), np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    rates = likeliest(days, count, np.array([5.0, 0.0, 2.0]))
    assert rates.tolist()[:2] == [0.0, np.inf]
    assert rates[2] == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("spacing", SPACINGS)
def test_the_likeliest_rate_is_right_for_fast_and_slow_pages(spacing: str) -> None:
    for rate in (0.05, 0.3, 1.5):
        assert mean_rate(plain(), rate, visits=100, spacing=spacing) == pytest.approx(
            rate, rel=0.05
        )


def test_at_regular_visits_likelihood_and_bias_reduction_agree() -> None:
    pages = blank_pages(50)
    lessons = list(poisson_outcomes(pages, 0.7, visits=15, spacing="even", seed=1))
    one, other = taught(plain(), *lessons), taught(BiasReduced(), *lessons)
    assert np.allclose(one.rates(pages.ids), other.rates(pages.ids), rtol=1e-9)


# -------------------------------------------------------------------------------------- smoothing


def test_smoothing_says_what_it_says_without_data() -> None:
    assert np.allclose(ask(Mle(), blank_pages(3), START).rates(), np.log(2.0) / 0.5)


def test_smoothing_adds_one_interval_of_each_kind() -> None:
    found = rate_of(Mle(), [2.0, 1.0], [1, 0])
    assert found == pytest.approx(exact(np.array([2.0, 0.5]), 1.5), rel=1e-9)


def test_smoothing_gives_no_page_up_but_makes_slow_ones_look_fast() -> None:
    """A page of one change in 50 days, visited daily for 60."""
    assert rate_of(Mle(), [30.0], [0]) == pytest.approx(1 / 30.75, rel=1e-3)
    assert rate_of(plain(), [30.0], [0]) == 0.0
    assert mean_rate(plain(), 0.02, visits=60) == pytest.approx(0.02, rel=0.05)
    assert 1.5 < mean_rate(Mle(), 0.02, visits=60) / 0.02 < 2.0


@pytest.mark.parametrize("make", [BiasReduced, plain])
def test_rates_are_finite_if_every_visit_found_a_change(make: Callable[[], PointRates]) -> None:
    assert rate_of(make(), [2.0] * 4, [1] * 4) == pytest.approx(np.log(9.0) / 2.0)
    assert 0.5 < rate_of(Mle(), [2.0] * 4, [1] * 4) < 2.0


# ------------------------------------------------------------------------------- pages without data


@pytest.mark.parametrize("make", ESTIMATES)
def test_a_page_without_data_has_the_mean_of_those_that_have_some(
    make: Callable[[], PointRates],
) -> None:
    ids = np.array([1, 2, 3])
    assert make().rates(ids).tolist() == [make().default_rate] * 3
    rates = taught(make(), visits([1, 1, 2], [1.0, 1.0, 8.0], [1, 0, 0])).rates(ids)
    assert rates[2] == pytest.approx((2 * rates[0] + 8 * rates[1]) / 10)  # by days watched


@pytest.mark.parametrize("make", ESTIMATES)
def test_no_pages_have_no_rates(make: Callable[[], PointRates]) -> None:
    none = blank_pages(5).take(np.empty(0, dtype=np.int64))
    assert len(ask(make(), none, START).rates()) == 0
    model = taught(make(), visits([1], [1.0], [1]))
    assert len(ask(model, none, START).rates()) == 0
    assert model.rates(np.array([1])).tolist() == [
        model.default_rate
    ]  # and what is not there is forgotten


@pytest.mark.parametrize("make", ESTIMATES)
def test_pages_may_come_and_go(make: Callable[[], PointRates]) -> None:
    pages = some_pages(60)
    lessons = list(poisson_outcomes(pages, 0.5, visits=30, spacing="poisson", seed=2))
    model, stayed = taught(make(), *lessons), taught(make(), *lessons)
    for rows in (np.arange(0, 60, 2), np.arange(10, 30)):
        ask(model, pages.take(rows), START)
    common = np.arange(10, 30, 2)
    again = lessons[3].take(common)
    ids = pages.ids[common]
    assert np.array_equal(model.rates(ids), stayed.rates(ids))
    assert np.allclose(taught(model, again).rates(ids), taught(stayed, again).rates(ids))


# --------------------------------------------------------------------------- what teaches, and when


@pytest.mark.parametrize("make", ESTIMATES)
def test_failed_visits_teach_nothing(make: Callable[[], PointRates]) -> None:
    pages = some_pages(50)
    lesson = some_outcomes(pages)
    one, other = taught(make(), lesson), taught(make(), lesson, failed_outcomes(pages))
    assert np.array_equal(one.rates(pages.ids), other.rates(pages.ids))
    assert not len(answered(failed_outcomes(pages)).page)


@pytest.mark.parametrize("make", [Naive, BiasReduced, Mle])
def test_only_rates_of_pages_that_were_visited_are_worked_out(
    make: type[PointRates], monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[int] = []
    real = make.estimate

    def spied(self: PointRates, rows: Ints) -> Floats:
        worked.append(len(rows))
        return real(self, rows)

    monkeypatch.setattr(make, "estimate", spied)
    pages = some_pages(40)
    model = taught(make(), *poisson_outcomes(pages, 0.5, visits=3, spacing="even", seed=1))
    lesson = next(poisson_outcomes(pages, 0.5, visits=1, spacing="even", seed=1))
    before = ask(model, pages, START).rates()
    ask(model, pages, START)
    after = taught(model, lesson.take(np.array([4, 9]))).rates(pages.ids)
    assert worked == [40, 2]
    assert np.flatnonzero(after != before).tolist() == [4, 9]


def test_what_survival_said_is_not_changed_by_learning() -> None:
    pages = some_pages(10)
    lessons = list(poisson_outcomes(pages, 0.5, visits=2, spacing="even", seed=1))
    model = taught(Mle(), lessons[0])
    rates = ask(model, pages, START).rates()
    kept = rates.copy()
    ask(taught(model, lessons[1]), pages, START)
    assert np.array_equal(rates, kept)


# ---------------------------------------------------------------------------------------- lengths


@pytest.mark.parametrize(("rate", "within"), [(0.3, 0.004), (1.0, 0.01), (3.0, 0.02)])
def test_eight_lengths_are_enough_for_any_history(rate: float, within: float) -> None:
    """Intervals over three orders of magnitude."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        days = 10 ** rng.uniform(-2, 1, 300)
        changed = rng.random(300) < -np.expm1(-rate * days)
        found = rate_of(plain(), days.tolist(), changed.astype(int).tolist())
        full = exact(days[changed], days[~changed].sum() + 0.5 * days.mean())
        assert found == pytest.approx(full, rel=within)


def test_lengths_lose_neither_count_nor_sum() -> None:
    rng = np.random.default_rng(1)
    lengths, total = Lengths(4), np.zeros(3)
    rows = lengths.append(3)
    for _ in range(30):
        days = rng.exponential(2.0, 3)
        lengths.add(rows, days)
        total += days
    assert lengths.count.sum(axis=1).tolist() == [30.0] * 3
    assert np.allclose((lengths.days * lengths.count).sum(axis=1), total)
    assert np.all(np.diff(lengths.days, axis=1) >= 0)


def test_rows_of_lengths_can_be_dropped() -> None:
    lengths = Lengths(2)
    lengths.add(lengths.append(3), np.array([1.0, 2.0, 3.0]))
    lengths.keep(np.array([2]))
    lengths.add(lengths.append(1), np.array([4.0]))
    assert lengths.days[:, 0].tolist() == [3.0, 4.0]


# ----------------------------------------------------------------------------------- the law suite


def test_estimates_are_held_to_the_spacings_that_they_name() -> None:
    with pytest.raises(AssertionError, match="even spacing"):
        check_predictor(Naive, spacings=["even"])
    for spacing in ("poisson", "bursts"):
        with pytest.raises(AssertionError, match=f"{spacing} spacing"):
            check_predictor(BiasReduced, spacings=[spacing])


def test_likelihood_without_smoothing_keeps_the_laws_too() -> None:
    check_predictor(plain, within=0.05)


class Twice(PoissonSurvival):
    """Breaks a law: tells of twice the rate that its curve has."""

    def rates(self) -> Floats:
        return 2.0 * self.rate

    def take(self, rows: Ints) -> Twice:  # type: ignore[override]
        return Twice(self.rate[rows])


class Endless(Twice):
    def rates(self) -> Floats:
        return np.full(len(self.rate), np.inf)


class Uncut(Twice):
    """Breaks a law: a cut keeps the rates of other rows."""

    def rates(self) -> Floats:
        return np.linspace(1.0, 2.0, len(self.rate))


class Fast:
    """Holds every page to a curve of the given kind."""

    def __init__(self, kind: Callable[[Floats], Survival]) -> None:
        self.kind = kind

    def survival(self, pages: Pages, now: object) -> Survival:
        return self.kind(np.full(len(pages), 0.5))

    def learn(self, outcomes: Outcomes) -> None: ...


class Swayed(Fast):
    """Breaks a law: the last page of a batch counts for all."""

    def __init__(self) -> None:
        super().__init__(PoissonSurvival)
        self.last_ = 0

    def survival(self, pages: Pages, now: object) -> Survival:
        return PoissonSurvival(np.full(len(pages), 0.5 + 1e-4 * (self.last_ % 7)))

    def learn(self, outcomes: Outcomes) -> None:
        self.last_ = int(outcomes.page[-1]) if outcomes.since[-1] != outcomes.since[0] else 0


class Blank(Gamma):
    """Breaks a law: says that it remembers, and does not."""

    def restore(self, state: object) -> None: ...


@pytest.mark.parametrize(
    ("make", "law"),
    [
        (lambda: Fast(Twice), "are −S′"),
        (lambda: Fast(Endless), "finite"),
        (lambda: Fast(Uncut), "takes rates"),
        (Swayed, "order of pages"),
        (Blank, "restored from its state"),
    ],
)
def test_the_suite_finds_broken_predictors(make: Callable[[], Gamma], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_predictor(make)


@pytest.mark.parametrize(
    "survival",
    [
        PoissonSurvival(np.array([0.0, 0.3, 5.0])),
        GammaSurvival(np.array([0.2, 1.0, 7.0]), np.array([9.0, 1.0, 2.0])),
    ],
)
def test_rates_are_the_slope_at_the_visit(survival: PoissonSurvival | GammaSurvival) -> None:
    step = 1e-7
    slope = (1.0 - survival.unchanged(np.full(3, step))) / step
    assert np.allclose(survival.rates(), slope, rtol=1e-5)
    assert np.array_equal(survival.take(np.array([2, 0])).rates(), survival.rates()[[2, 0]])
