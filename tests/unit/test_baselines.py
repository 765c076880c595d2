"""The baselines: what other crawlers do, to the figure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from salticus.allocate.adaptive import DAY_US, Adaptive, Nutch, StormCrawler
from salticus.allocate.baselines import (
    ChangeProportional,
    DemandProportional,
    ImpressionProportional,
    RoundRobin,
)
from salticus.allocate.fixed_interval import FixedInterval, usual_interval
from salticus.allocate.share import first, in_proportion
from salticus.checks.samples import some_outcomes, some_pages
from salticus.predict.gamma import GammaSurvival
from salticus.testing import START, a_step, a_tick, blank_pages
from salticus.types import (
    CHANGED,
    NEVER,
    UNCHANGED,
    UNKNOWN,
    Floats,
    Outcomes,
    Pages,
    Status,
    Times,
    instant,
)

Peer = type[Nutch] | type[StormCrawler]


def days(*after: float) -> Times:
    """Times so many days after the start; NaN is never."""
    spans = np.nan_to_num(np.array(after)) * DAY_US
    times = instant(START) + spans.astype("m8[us]")
    return np.where(np.isnan(after), NEVER, times)


def pages_last_visited(*after: float) -> Pages:
    return replace(blank_pages(len(after)), last_visit=days(*after))


def visited(*page: int, at: float, changed: int = UNKNOWN, status: Status = Status.OK) -> Outcomes:
    """Outcomes of visits to these pages, so many days after the start."""
    n = len(page)
    return replace(
        some_outcomes(blank_pages(n)),
        page=np.array(page),
        at=days(*[at] * n),
        made=np.ones(n, dtype=np.bool_),
        status=np.full(n, status, dtype=np.int8),
        changed=np.full(n, changed, dtype=np.int8),
    )


def due_days(policy: Adaptive, pages: Pages) -> Floats:
    """When each page is due, days after the start."""
    return (policy.due(pages) - instant(START).astype(np.int64)) / DAY_US


# -------------------------------------------------------------------------------------- round robin


def test_round_robin_visits_the_oldest_first_and_new_pages_before() -> None:
    pages = pages_last_visited(-3, np.nan, -1, -2)
    assert RoundRobin().expected(pages, 1.0).tolist() == [0, 1, 0, 0]
    assert RoundRobin().expected(pages, 2.0).tolist() == [1, 1, 0, 0]
    assert RoundRobin().expected(pages, 2.5).tolist() == [1, 1, 0, 0.5]


# ----------------------------------------------------------------------------------- fixed interval


@pytest.mark.parametrize(
    ("needed_h", "usual_h"),
    [
        *((hours, hours) for hours in (1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168, 336, 720, 1440)),
        *((0.01, 1), (5, 6), (9, 12), (49, 72), (169, 336), (721, 1440), (1441, 2160)),
    ],
)
def test_usual_intervals(needed_h: float, usual_h: float) -> None:
    assert usual_interval(needed_h / 24) == pytest.approx(usual_h / 24)


def test_cron_visits_what_is_due_and_leaves_the_rest_unspent() -> None:
    pages = pages_last_visited(-6.95, -6.0, np.nan, -7.5, -6.91)
    policy = FixedInterval(interval_days=7.0)
    assert a_step(policy, pages, 5.0).tolist() == [1, 0, 1, 1, 0]
    assert policy.expected(pages, 2.0).tolist() == [0, 0, 1, 1, 0]
    assert policy.kept_.interval == 7.0


def test_an_interval_that_ends_with_the_tick_belongs_to_the_next() -> None:
    """Visits at the start of daily ticks come exactly every second day."""
    tick = a_tick(1, timedelta(days=1))
    pages = replace(pages_last_visited(0.0, -1.0), tick=tick)
    assert FixedInterval(interval_days=2.0).expected(pages, 2.0).tolist() == [0, 1]


def given_each_tick(policy: FixedInterval, pages: Pages, visits: list[int]) -> list[float]:
    """The interval, in days, after each of the grants."""
    intervals = []
    for number, some in enumerate(visits):
        a_step(policy, replace(pages, tick=a_tick(number)), some)
        intervals.append(policy.kept_.interval)
    return intervals


def test_the_interval_is_the_shortest_that_the_visits_suffice_for() -> None:
    """84 pages, 12 visits a day: a week to the day, though whole visits are given."""
    blank = blank_pages(84)
    assert given_each_tick(FixedInterval(), blank, [1] * 40)[-1] == 7.0
    assert given_each_tick(FixedInterval(), blank_pages(100), [1] * 400)[-1] == 14.0
    uneven = [0, 1, 2, 1] * 10
    assert given_each_tick(FixedInterval(), blank, uneven)[-1] == 7.0


def test_visits_carried_over_do_not_shorten_the_interval() -> None:
    fresh = replace(blank_pages(1000), last_visit=np.full(1000, instant(START)))
    intervals = given_each_tick(FixedInterval(), fresh, [10, 20, 20, 20, 20])
    assert intervals == [14.0] * 5  # 1000 pages, 120 visits a day: 8.3 days


def test_dropped_visits_are_given_again_and_counted_once() -> None:
    policy = FixedInterval()
    a_step(policy, blank_pages(1000), 100.0)
    dropped = replace(visited(*range(60), at=0.0), made=np.zeros(60, dtype=np.bool_))
    policy.learn(dropped)
    assert policy.kept_.given == 40.0


def test_a_new_budget_is_noticed() -> None:
    pages = blank_pages(1200)
    intervals = given_each_tick(FixedInterval(), pages, [10] * 400 + [60] * 1200)
    assert intervals[399] == 14.0
    assert intervals[-1] == 2.0


# -------------------------------------------------------------------------------------------- Nutch


def test_the_vector_of_nutch() -> None:
    """Days, first visit at 0: next visit and interval after each."""
    policy, pages = Nutch(), blank_pages(1)
    course = [
        (0.0, UNKNOWN, 30.0, 30.0),
        (30.0, UNCHANGED, 42.0, 63.0),
        (63.0, UNCHANGED, 63.0, 107.1),
        (107.1, CHANGED, 50.4, 157.5),
        (157.5, UNCHANGED, 70.56, 212.94),
    ]
    for at, changed, interval, due in course:
        policy.learn(visited(0, at=at, changed=changed))
        assert policy.interval_.values[0] == pytest.approx(interval, abs=1e-9)
        assert due_days(policy, pages)[0] == pytest.approx(due, abs=1e-9)


def test_nutch_without_synchronisation() -> None:
    policy = Nutch(sync_delta=False, inc_rate=1.0, dec_rate=0.5, first_days=1.0)
    for at, changed in ((0.0, UNKNOWN), (1.0, UNCHANGED), (3.0, UNCHANGED), (7.0, CHANGED)):
        policy.learn(visited(0, at=at, changed=changed))
    assert due_days(policy, blank_pages(1))[0] == 9.0


def test_nutch_keeps_to_its_limits() -> None:
    policy, blank = Nutch(min_days=1.0, max_days=40.0, first_days=2.0), blank_pages(1)
    for at in range(9):
        policy.learn(visited(0, at=at, changed=CHANGED))
    assert policy.interval_.values[0] == 1.0
    policy.learn(visited(0, at=500.0, changed=UNCHANGED))
    assert policy.interval_.values[0] == 40.0
    assert due_days(policy, blank)[0] == pytest.approx(500 + 40 - 0.3 * 492)


def test_nutch_takes_due_pages_by_score_then_what_comes_due_next() -> None:
    last = (-40.0, -31.0, -35.0, -1.0, -2.0)
    pages = replace(pages_last_visited(*last), demand=np.array([1.0, 5.0, 1.0, 100.0, 0.0]))
    order = [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 1], [1, 1, 1, 1, 1]]
    for visits, expected in enumerate(order, start=1):
        assert Nutch().expected(pages, float(visits)).tolist() == expected


# ------------------------------------------------------------------------------------- StormCrawler


@pytest.mark.parametrize(
    ("changed", "minutes"),
    [
        (UNCHANGED, [1440, 2160, 3240, 4860, 7290, 10935, 16402, 20160, 20160]),
        (CHANGED, [1440, 750, 405, 232, 146, 103, 81, 70, 65, 62, 61, 60, 60]),
    ],
)
def test_the_vectors_of_stormcrawler(changed: int, minutes: list[int]) -> None:
    policy, pages, at = StormCrawler(), blank_pages(1), 0.0
    for number, expected in enumerate(minutes):
        policy.learn(visited(0, at=at, changed=changed if number else UNKNOWN))
        due = due_days(policy, pages)[0]
        assert (due - at) * 1440 == pytest.approx(expected, abs=1e-6)
        at = due


def test_stormcrawler_takes_the_oldest_due_first() -> None:
    policy, pages = StormCrawler(), pages_last_visited(-2, -2, -2, -1, -1)
    policy.learn(visited(0, at=-2.0, changed=CHANGED))  # due after 750 minutes
    policy.learn(visited(1, at=-2.0, changed=UNCHANGED))  # after 2160
    assert policy.expected(pages, 1.0).tolist() == [1, 0, 0, 0, 0]
    assert policy.expected(pages, 2.0).tolist() == [1, 0, 1, 0, 0]
    assert policy.expected(pages, 4.0).tolist() == [1, 1, 1, 0.5, 0.5]


# ------------------------------------------------------------------------------------ both adaptive


@pytest.mark.parametrize(("make", "first_days"), [(Nutch, 30.0), (StormCrawler, 1.0)])
class TestAdaptive:
    def test_new_pages_are_due_since_they_were_added(self, make: Peer, first_days: float) -> None:
        pages = replace(pages_last_visited(np.nan, -5.0), added=days(-7.0, -8.0))
        assert due_days(make(), pages).tolist() == [-7.0, first_days - 5.0]

    def test_a_failed_visit_waits_for_the_same_interval(
        self, make: Peer, first_days: float
    ) -> None:
        policy = make()
        policy.learn(visited(0, 1, at=0.0))
        policy.learn(visited(0, 1, at=1.0, changed=CHANGED))
        interval = policy.interval_.values[0]
        policy.learn(visited(1, at=9.0, status=Status.TIMEOUT))
        assert policy.interval_.values.tolist() == [interval, interval]
        assert due_days(policy, blank_pages(2)) == pytest.approx([1 + interval, 9 + interval])
        policy.learn(visited(7, at=9.0, status=Status.GONE))
        assert due_days(policy, replace(blank_pages(1), ids=np.array([7]))) == 9 + first_days

    def test_a_dropped_visit_changes_nothing(self, make: Peer, first_days: float) -> None:
        policy = make()
        policy.learn(visited(0, at=0.0))
        dropped = visited(0, at=3.0, changed=CHANGED)
        policy.learn(replace(dropped, made=np.zeros(1, dtype=np.bool_)))
        assert due_days(policy, blank_pages(1))[0] == first_days

    def test_a_page_twice_in_a_batch_is_learnt_from_twice(
        self, make: Peer, first_days: float
    ) -> None:
        one, two = make(), make()
        batch = visited(0, 1, at=1.0).join(visited(0, at=2.0, changed=UNCHANGED))
        one.learn(batch)
        two.learn(batch.take(np.array([0, 1])))
        two.learn(batch.take(np.array([2])))
        assert np.array_equal(one.due_.values, two.due_.values)

    def test_pages_come_and_go(self, make: Peer, first_days: float) -> None:
        policy, pages = make(), some_pages(30)
        every, some = np.arange(30), np.arange(0, 30, 4)
        policy.learn(some_outcomes(pages.take(some), seed=1))
        policy.learn(some_outcomes(pages, seed=2))
        whole = policy.due(pages)
        for rows in (some, every[::-1], every[5:]):
            assert np.array_equal(policy.due(pages.take(rows)), whole[rows])
        assert np.array_equal(policy.due(pages), whole)


# ----------------------------------------------------------------------------------- in proportion


def test_visits_follow_the_chance_of_change_within_a_day() -> None:
    survival = GammaSurvival(np.full(3, 1.0), np.array([1.0, 3.0, 9.0]))  # 1/2, 1/4, 1/10
    pages = replace(blank_pages(3), survival=survival)
    assert ChangeProportional().expected(pages, 0.85) == pytest.approx([0.5, 0.25, 0.1])
    assert ChangeProportional().expected(pages, 1.7) == pytest.approx([1.0, 0.5, 0.2])
    assert ChangeProportional().expected(pages, 2.1) == pytest.approx([1.0, 0.55 / 0.7, 0.22 / 0.7])
    assert ChangeProportional().expected(blank_pages(4), 1.0) == pytest.approx([0.25] * 4)


def test_visits_follow_clicks_or_impressions() -> None:
    pages = replace(
        blank_pages(4), demand=np.array([0.0, 3.0, 1.0, 0.0]), impressions=np.arange(4.0)
    )
    assert DemandProportional().expected(pages, 1.0).tolist() == [0, 0.75, 0.25, 0]
    assert DemandProportional().expected(pages, 3.0).tolist() == [0.5, 1, 1, 0.5]
    assert ImpressionProportional().expected(pages, 0.6) == pytest.approx([0, 0.1, 0.2, 0.3])


# ------------------------------------------------------------------------------------------- shares


def test_ties_are_told_apart_by_the_next_column() -> None:
    order, then = np.array([1, 1, 0, 2, 1]), np.array([5, 4, 9, 0, 4])
    assert first(order, 2.0).tolist() == [1 / 3, 1 / 3, 1, 0, 1 / 3]
    assert first(order, 2.0, then).tolist() == [0, 0.5, 1, 0, 0.5]
    assert first(order, 2.0, then, -np.arange(5)).tolist() == [0, 0, 1, 0, 1]


@pytest.mark.parametrize("visits", [1.0, 100.0, 9_999.5, 19_999.0])
def test_the_cut_is_right_whatever_a_sample_says(visits: float) -> None:
    n = 20_000
    random = np.random.default_rng(1).integers(0, 300, n)
    misleading = np.where(np.arange(n) % 4, 1000 + np.arange(n), -np.arange(n))
    for order in (random, misleading, -misleading, np.arange(n), np.zeros(n), np.arange(n) % 2):
        expected = first(order, visits)
        cut = np.sort(order)[int(np.ceil(visits)) - 1]
        assert np.all(expected[order < cut] == 1)
        assert np.all(expected[order > cut] == 0)
        assert np.ptp(expected[order == cut]) == 0
        assert expected.sum() == pytest.approx(visits)


def test_weights_far_apart_are_shared_exactly() -> None:
    weights = np.array([1e300, 1.0, 1e-300, 3e-300])
    assert in_proportion(weights, 2.4) == pytest.approx([1.0, 1.0, 0.1, 0.3])
