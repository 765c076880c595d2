"""Laws of own time: weeks, additivity, order; and of the curve that is drawn on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.predict.gamma import GammaSurvival
from salticus.predict.rhythm import HOUR_US, HOURS, RhythmSurvival, Week
from salticus.predict.worth import gamma_worth
from salticus.types import DAY, Floats, Ints

law = settings(deadline=None, max_examples=40)
DAY_US, WEEK_US = 24 * HOUR_US, HOURS * HOUR_US
times = st.integers(-3 * 365 * DAY_US, 60 * 365 * DAY_US)  # from 1967 to 2030
seeds = st.integers(0, 2**32 - 1)


def a_week(seed: int, merchants: int = 3) -> Week:
    """What some random visits of that many merchants teach; lopsided, as some change in bursts."""
    rng = np.random.default_rng(seed)
    week = Week()
    week.meet(merchants)
    for _ in range(3):
        n = 200
        row = rng.integers(0, merchants + 1, n)
        start = rng.integers(0, 40 * DAY_US, n)
        end = start + rng.integers(1, rng.choice([HOUR_US, DAY_US, 20 * DAY_US]), n)
        events = rng.random(n) * 5 * (start // HOUR_US % 24 < 6)
        week.learn(row, start, end, rng.exponential(0.2, n), events)
    return week


def between(week: Week, row: int, start: int, end: int) -> float:
    one = (np.array([x], dtype=np.int64) for x in (row, start, end))
    return float(week.between(*one)[0])


@law
@given(seeds, st.integers(0, 3), times, st.integers(0, 500))
def test_a_week_of_own_time_is_a_week(seed: int, row: int, start: int, weeks: int) -> None:
    own = between(a_week(seed), row, start, start + weeks * WEEK_US)
    assert own == pytest.approx(7.0 * weeks, rel=1e-12, abs=1e-12)


@law
@given(seeds, st.integers(0, 3), st.lists(times, min_size=3, max_size=3))
def test_own_time_adds_up_and_never_runs_backwards(seed: int, row: int, when: list[int]) -> None:
    week, (a, b, c) = a_week(seed), sorted(when)
    parts = between(week, row, a, b), between(week, row, b, c)
    assert sum(parts) == pytest.approx(between(week, row, a, c), rel=1e-11, abs=1e-9)
    assert min(parts) >= 0.0
    assert between(week, row, b, a) == pytest.approx(-parts[0], abs=1e-9)
    assert between(week, row, a + WEEK_US, b + WEEK_US) == pytest.approx(parts[0], abs=1e-9)


@law
@given(seeds)
def test_paces_average_one_and_none_stands_still(seed: int) -> None:
    week = a_week(seed)
    assert week.pace_.mean(axis=1) == pytest.approx(np.ones(4), rel=1e-12)
    assert (week.pace_ > 0).all()


@law
@given(seeds, seeds)
def test_the_order_of_visits_does_not_matter(seed: int, other: int) -> None:
    rng = np.random.default_rng(seed)
    order = np.random.default_rng(other).permutation(50)
    row, start = rng.integers(0, 3, 50), rng.integers(0, 40 * DAY_US, 50)
    end = start + rng.integers(1, 9 * DAY_US, 50)
    rate, events = rng.exponential(0.3, 50), rng.exponential(1.0, 50)
    one, two = Week(), Week()
    for week, k in ((one, np.arange(50)), (two, order)):
        week.meet(2)
        week.learn(row[k], start[k], end[k], rate[k], events[k])
    assert one.pace_ == pytest.approx(two.pace_, rel=1e-9)


@law
@given(times, st.integers(HOUR_US // 60, 30 * DAY_US))
def test_what_was_watched_is_all_accounted_for(start: int, length: int) -> None:
    """Days watched go to the hours in which they lie, and changes to the hours watched."""
    week = Week()
    one = np.array([0])
    week.learn(one, start + 0 * one, start + length + 0 * one, np.array([0.5]), np.array([2.0]))
    assert week.expected_[0].sum() == pytest.approx(0.5 * length / DAY_US, rel=1e-9)
    assert week.changes_[0].sum() == pytest.approx(2.0, rel=1e-6)
    assert (week.changes_[0][week.expected_[0] == 0] == 0).all()
    hours = np.arange(start // HOUR_US, (start + length - 1) // HOUR_US + 1) - 4 * 24
    assert set(np.flatnonzero(week.expected_[0])) <= set((hours % HOURS).tolist())


# -------------------------------------------------------------------------------------- the curve


def curve(week: Week, seed: int, now: int, n: int = 20) -> tuple[RhythmSurvival, Floats]:
    rng = np.random.default_rng(seed)
    ages = rng.exponential(6.0, n)
    last = now - (ages * DAY_US).astype(np.int64)
    a, b = rng.exponential(1.0, n) + 0.05, rng.exponential(10.0, n) + 1.0
    row = rng.integers(0, len(week.pace_), n)
    return RhythmSurvival(a, b, row, last, now, week.table_), ages


@settings(law, max_examples=15)
@given(seeds, st.integers(0, 60 * 365 * DAY_US))
def test_the_curve_starts_at_one_and_falls_and_knows_its_integral(seed: int, now: int) -> None:
    survival, ages = curve(a_week(seed), seed, now)
    grid = np.linspace(0.0, 1.0, 1001)
    still = np.array([survival.unchanged(ages * x) for x in grid])
    assert np.array_equal(still[0], np.ones(len(ages)))
    assert (np.diff(still, axis=0) <= 1e-12).all()
    assert ((still >= 0) & (still <= 1)).all()
    assert survival.integral(ages) == pytest.approx(
        np.trapezoid(still, dx=1 / 1000, axis=0) * ages, rel=3e-2
    )
    some = np.array([3, 1, 7])
    assert np.array_equal(survival.take(some).unchanged(ages[some]), still[-1][some])


@law
@given(seeds, st.integers(0, 60 * 365 * DAY_US), st.sampled_from([1 / 24, 1 / 12, 0.25, 1.0, 9.0]))
def test_at_an_even_pace_own_time_is_time(seed: int, now: int, step: float) -> None:
    survival, ages = curve(Week(), seed, now)
    plain = GammaSurvival(survival.a, survival.b)
    assert survival.unchanged(ages) == pytest.approx(plain.unchanged(ages), rel=1e-6)
    assert survival.worth(ages, step) == pytest.approx(plain.worth(ages, step), rel=1e-6)


def waits(own: float, rate: float, passed: Floats, step: float) -> float:
    """The worth of a visit by the book, if its rate is known.

    Over every wait until which the pace is higher on average than until any before, or of a week.
    """
    ticks = np.arange(1, len(passed))
    brings = np.cumsum(step * np.exp(-rate * passed[:-1]))
    gain = -np.expm1(-rate * own) * min(1.0, own / step) * brings
    caught = -np.expm1(-rate * passed[1:]) * step / -np.expm1(-rate * step)
    due = (ticks * step * own + np.cumsum(step * passed[:-1])) / passed[1:]
    sure = np.full(len(due), 1e9)
    instead = np.where(gain < caught, gamma_worth(sure, sure / rate, due, step), np.inf)
    pace = passed[1:] / ticks
    record = pace > (1 + 1e-9) * np.maximum.accumulate(np.append(0.0, pace[:-1]))
    record[-1] = True
    best = float(np.maximum(instead, gain)[record & (gain < caught)].min(initial=np.inf))
    return best if best < np.inf else float(gain[-1] / -np.expm1(-rate * passed[-1]))


@law
@given(seeds, st.integers(0, 60 * 365 * DAY_US), st.sampled_from([1 / 24, 0.25, 1.0]))
def test_worth_is_the_least_over_all_waits(seed: int, now: int, step: float) -> None:
    """Rates are those of the grid, and known."""
    week = a_week(seed)
    ticks = min(168, round(7 / step))
    ends = now + (np.arange(ticks + 1) * step * DAY_US).astype(np.int64)
    rng = np.random.default_rng(seed)
    for row in range(len(week.pace_)):
        passed = week.between(np.full(ticks + 1, row), np.full(ticks + 1, now), ends)
        rates = 1e-3 * 1.4 ** rng.integers(5, 28, 10)
        ages = rng.exponential(5.0, 10)
        sure = np.full(10, 1e9)
        last = now - _us(ages)
        page = RhythmSurvival(sure, sure / rates, np.full(10, row), last, now, week.table_)
        wanted = [waits(h, r, passed, step) for h, r in zip(page.own(ages), rates, strict=True)]
        assert page.worth(ages, step) == pytest.approx(np.array(wanted), rel=1e-3)


@law
@given(seeds, st.integers(0, 60 * 365 * DAY_US))
def test_worth_rises_with_age(seed: int, now: int) -> None:
    survival, _ = curve(a_week(seed), seed, now)
    grid = np.linspace(0.05, 30.0, 40)
    for row in range(4):
        one = RhythmSurvival(
            np.full(40, 0.7),
            np.full(40, 4.0),
            np.full(40, row),
            now - _us(grid),
            now,
            survival.table,
        )
        worth = one.worth(grid, 0.25)
        assert (np.diff(worth) >= -1e-12).all()
        assert (worth >= 0).all()


def _us(days: Floats) -> Ints:
    return np.asarray(days * DAY.astype(np.int64), dtype=np.int64)
