"""Demand from counts: it recovers what is there, forgets nothing over a restart, and is robust."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.signals.demand import Demand
from salticus.types import Counts, Floats, Ints

DAY = np.datetime64("2026-01-01", "us")
HOUR = np.timedelta64(1, "h")
PAGES = np.arange(1, 201)
ADDED = np.repeat(DAY, len(PAGES))
ONES = np.ones(len(PAGES))


def counts(page: Ints, hour: Ints, clicks: Ints, shown: Ints, last: int = 1) -> Counts:
    return Counts(page, DAY + hour * HOUR, clicks, shown, last)


def poisson(days: int, rate: Floats, shown: Floats, seed: int = 1) -> Counts:
    """Counts of all pages, a row a page and day."""
    chance = np.random.default_rng(seed)
    page, day = np.tile(PAGES, days), np.repeat(np.arange(days), len(PAGES))
    clicks, views = (chance.poisson(np.tile(each, days)) for each in (rate, shown))
    return counts(page, 24 * day, clicks, views)


def rates(demand: Demand, days: int) -> tuple[Floats, Floats]:
    return demand.rates(PAGES, ADDED, ONES, DAY + 24 * days * HOUR)


def test_nothing_counted_is_what_was_given() -> None:
    given_ = np.linspace(0, 3, len(PAGES))
    clicks, shown = Demand().rates(PAGES, ADDED, given_, DAY)
    assert clicks.tolist() == given_.tolist()
    assert not shown.any()


def test_rates_are_recovered_and_impressions_help() -> None:
    chance = np.random.default_rng(2)
    shown = chance.lognormal(1.0, 1.5, len(PAGES))
    rate = shown * 0.05
    both, alone = Demand(), Demand()
    told = poisson(20, rate, shown)
    both.learn(told)
    alone.learn(counts(told.page, 24 * np.repeat(np.arange(20), 200), told.clicks, 0 * told.clicks))
    errors = [np.abs(np.log(rates(d, 20)[0] / rate)).mean() for d in (both, alone)]
    assert errors[0] < 0.55
    assert errors[0] < 0.95 * errors[1], "impressions tell more of pages that are seldom clicked"
    assert abs(rates(both, 20)[0].sum() / rate.sum() - 1) < 0.1


@settings(max_examples=25)
@given(st.integers(10_000, 10**15), st.integers(0, 199))
def test_a_flood_of_clicks_on_one_page_takes_nothing_away(flood: int, row: int) -> None:
    usual = poisson(10, np.full(len(PAGES), 0.5), np.full(len(PAGES), 9.0))
    calm, flooded = Demand(), Demand()
    calm.learn(usual)
    flooded.learn(usual)
    one = np.array([row + 1]), np.array([200]), np.array([flood]), np.array([0])
    flooded.learn(counts(*one, last=2))
    before, after = rates(calm, 10)[0], rates(flooded, 10)[0]
    others = np.arange(len(PAGES)) != row
    assert after[row] <= 150 * before.max(), "no page counts for more than a hundred of the busiest"
    change = after[others] / before[others]
    assert np.all((change > 0.5) & (change < 3.0)), "the others stay about what they were"


@given(st.lists(st.integers(1, 199), max_size=5, unique=True), st.integers(0, 3))
def test_batches_and_restarts_make_no_difference(cuts: list[int], restart: int) -> None:
    told = poisson(1, np.full(200, 2.0), np.full(200, 5.0))
    whole, parts = Demand(), Demand()
    whole.learn(told)
    for number, rows in enumerate(np.split(np.arange(200), sorted(cuts))):
        if number == restart:
            again = Demand()
            again.restore(parts.state())
            parts = again
        parts.learn(told.take(rows))
    for mine, other in zip(rates(whole, 3), rates(parts, 3), strict=True):
        assert mine.tobytes() == other.tobytes()
    assert parts.mark_ == 1


@given(st.floats(0, 400), st.integers(0, 50))
def test_rates_are_never_negative_nor_none(days: float, clicks: int) -> None:
    demand = Demand()
    demand.learn(counts(np.array([3]), np.array([0]), np.array([clicks]), np.array([0])))
    when = DAY + np.timedelta64(int(days * 86_400e6), "us")
    found, shown = demand.rates(PAGES, ADDED, ONES, when)
    assert np.all((found > 0) & np.isfinite(found) & (shown >= 0))
