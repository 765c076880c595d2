"""What visits to sources bring: links by the time since the last, clicks by how long they stood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.allocate.finding import _net, page_worth, source_worth
from salticus.predict.finder import ModelFinder
from salticus.predict.harvest import CLASSES, GAPS, Finds, HeldPages, Yields
from salticus.predict.interest import Prior
from salticus.predict.links import SourceVisits
from salticus.types import Floats, Harvest, Ints, Prospects
from salticus.types.prospects import own_time

HOUR = 1.0 / 24.0


def prospects(harvest: Harvest, rows: int) -> Prospects:
    """So many sources with the first of the curves."""
    blank = [np.zeros(rows)] * 8
    return Prospects(*blank, np.zeros(rows, dtype=np.int64), harvest)


@given(rate=st.floats(0.1, 100.0), profit=st.floats(0.1, 100.0), decay=st.floats(0.2, 20.0))
def test_where_links_stay_and_interest_decays_the_worth_is_echos(
    rate: float, profit: float, decay: float
) -> None:
    """λP/m·g(mτ), as near as curves on doubling gaps tell."""
    gaps = HOUR * 2.0 ** np.arange(GAPS)
    each = profit * -np.expm1(-decay * gaps) / (decay * gaps)
    told = prospects(Harvest(gaps, rate * gaps[None], each[None]), 40)
    ages = np.geomspace(0.2, 20.0, 40) / decay
    ages = ages[ages > 2.0 * HOUR]
    worth, finds = source_worth(told, np.arange(len(ages)), ages, 0.0)
    x = decay * ages
    echo = rate * profit / decay * (1.0 - (1.0 + x) * np.exp(-x))
    assert worth == pytest.approx(echo, rel=0.2, abs=0.01 * rate * profit / decay)
    assert finds == pytest.approx(rate * ages)


@given(st.data())
def test_a_dearer_visit_makes_no_source_worth_more_pages(data: st.DataObject) -> None:
    numbers = st.lists(st.floats(0.01, 50.0), min_size=GAPS, max_size=GAPS)
    gaps = HOUR * 2.0 ** np.arange(GAPS)
    finds = np.maximum.accumulate(np.array([data.draw(numbers)]), axis=1)
    harvest = Harvest(gaps, finds, np.array([data.draw(numbers)]))
    ages = np.geomspace(HOUR / 9, 400.0, 30)
    low, high = sorted(data.draw(st.tuples(st.floats(0.0, 60.0), st.floats(0.0, 60.0))))
    rows = np.arange(30)
    cheap, dear = (source_worth(prospects(harvest, 30), rows, ages, price) for price in (low, high))
    assert np.all(cheap[0] >= 0.0)
    assert np.all(dear[1] <= cheap[1])
    nothing, none = source_worth(prospects(harvest, 30), rows, ages, 51.0)
    assert not nothing.any(), "no page is worth as much"
    assert not none.any()
    assert 0.01 - 1e-9 <= page_worth(harvest) <= 50.0 + 1e-9


def test_a_page_that_may_stand_for_long_makes_a_source_worth_a_visit() -> None:
    """New pages are below the price, but half of them stand and are above it: who looks often sees
    which."""
    gaps = HOUR * 2.0 ** np.arange(GAPS)
    finds, each = 10.0 * gaps[None], np.where(np.arange(GAPS) < 5, 5.0, 20.0)[None]
    ages, row = np.array([2.0 * HOUR]), np.zeros(1, dtype=np.int64)
    for stays, better in ((0.5, True), (0.0, False)):
        harvest = Harvest(gaps, finds, each, stays=np.full(GAPS - 1, stays))
        harvest.each[0, 5:] = 1e4 if better else 20.0
        net = _net(harvest, row, 10.0)
        assert (net[0, 0] > 0.0) == better
        assert source_worth(prospects(harvest, 1), row, ages, 10.0)[1][0] == 0.0, "none at once"


@given(rows=st.lists(st.floats(0.01, 30.0), min_size=1, max_size=20), price=st.floats(0.0, 30.0))
def test_where_pages_are_worth_less_with_time_none_is_waited_for(
    rows: list[float], price: float
) -> None:
    gaps = HOUR * 2.0 ** np.arange(GAPS)
    each = np.array(rows)[:, None] * 0.9 ** np.arange(GAPS)
    harvest = Harvest(gaps, gaps * np.ones((len(rows), 1)), each, stays=np.ones(GAPS - 1))
    assert np.array_equal(_net(harvest, np.arange(len(rows)), price), np.maximum(each - price, 0.0))


def test_own_time_runs_when_links_appear() -> None:
    """Links that come by day only: a visit in the morning is to find few, one at night many."""
    part, every = Finds(20, shortest=HOUR, usual=HOUR), np.arange(20)
    start = np.datetime64("2026-01-05", "us")
    for hour in range(24 * 21):
        at = np.full(20, start + np.timedelta64(hour + 1, "h"))
        new = np.full(20, 5.0 if 8 <= hour % 24 < 20 else 0.0)
        part.learn(every, np.full(20, HOUR), new, at)
    week = part.week.table_[0]
    night, day = (
        own_time(week, np.datetime64(f"2026-02-03T{hour}", "us"), np.array([8.0 * HOUR]))[0]
        for hour in ("06", "18")
    )
    assert day == pytest.approx(16.0 * HOUR, rel=0.1)
    assert night < 0.1 * day
    assert own_time(week, start, np.array([7.0]))[0] == pytest.approx(7.0)


def test_echo_knows_found_pages_by_the_model_of_its_price() -> None:
    """P·e^(−m·age), whatever curves were measured; new pages are worth the profit itself."""
    finder, rng = ModelFinder(3, resolution=HOUR), np.random.default_rng(0)
    for hour in range(48):
        pages = HeldPages(
            source=np.arange(3),
            age=np.full(3, (hour + 0.5) * HOUR),
            standing=np.zeros(3, dtype=np.int64),
            since=np.full(3, (hour + 0.5) * HOUR),
            clicks=rng.poisson(9.0 * np.exp(-0.1 * hour), 3).astype(np.float64),
        )
        finder.watch(pages, HOUR)
    finder.solve()
    profit, decay, _ = finder.interest_
    every, old = np.arange(3), np.full(3, 0.3)
    assert np.array_equal(finder.remaining(every, 0.0 * old, 0.0 * old), profit)
    left = finder.remaining(every, old, 2.0 * old)
    assert left == pytest.approx(profit * np.exp(-decay * 0.9))
    assert finder.harvest_.finds[:, 0] == pytest.approx(finder.links_.rate * HOUR, rel=0.1)


def test_what_is_hoped_of_a_source_goes_by_the_pages_that_will_tell() -> None:
    """One that shows no link would be looked at for ever, to learn what its pages are worth."""
    finder, one = ModelFinder(2, resolution=HOUR), np.ones(2)
    for _ in range(7):
        finder.visited(SourceVisits(np.arange(2), 3.0 * one, np.array([9.0, 0.0]), one, 0.0 * one))
    finder.solve()
    busy, empty = finder.interest_.profit
    assert busy > 1.5 * empty > 0.0


def test_links_are_learnt_by_source_and_by_gap() -> None:
    """Half of the links are gone after 8 hours: visits after a day find less than after a third of
    it three times, and a source that is visited after a day only is known to have as many."""
    rng = np.random.default_rng(0)
    rate = np.geomspace(0.5, 20.0, 40)  # links an hour
    vanish = np.log(2.0) / 8.0
    part, every = Finds(40, shortest=HOUR, usual=HOUR), np.arange(40)
    for _ in range(120):
        hours = rng.choice([2.0, 8.0, 24.0], 40)
        hours[::5] = 24.0
        new = rng.poisson(rate * -np.expm1(-vanish * hours) / vanish)
        part.learn(every, hours * HOUR, new.astype(np.float64))
    told = part.solve()
    for place, hours in ((1, 2.0), (3, 8.0)):
        true = rate * -np.expm1(-vanish * hours) / vanish
        assert told[:, place] == pytest.approx(true, rel=0.35)
        assert np.median(np.abs(told[:, place] / true - 1.0)) < 0.1
    assert np.all(np.diff(told, axis=1) >= 0.0)


def test_what_a_source_showed_at_first_tells_of_it_until_it_is_visited() -> None:
    part = Finds(4, shortest=HOUR, usual=HOUR)
    part.met(np.arange(3), np.array([0.0, 10.0, 50.0]))
    part.learn(np.array([0]), np.array([1.0]), np.array([2.0]))
    first = part.solve()[:, 0]
    assert first[1] < first[2]
    assert first[1] == pytest.approx(first[2] * 11 / 51)
    part.learn(np.array([2]), np.array([1.0]), np.array([0.0]))
    assert part.solve()[2, 0] < 0.1 * first[2], "nothing new on it, for all it shows"


def a_watch(worth: Floats, pages: int, days: float, late: Floats) -> Yields:
    """Pages of sources whose links had stood for two hours; each gets so many clicks, half of them
    in the first 8 hours, and was visited `late` days after its link was last seen."""
    rng = np.random.default_rng(1)
    part = Yields(len(worth), resolution=HOUR, prior=Prior(1.0, 1.0))
    source: Ints = np.repeat(np.arange(len(worth)), pages)
    standing = np.full(len(source), part.standing(np.array([2.0 * HOUR]))[0])
    decay = np.log(2.0) / (8.0 * HOUR)
    for hour in range(int(days * 24)):
        since = np.full(len(source), (hour + 0.5) * HOUR)
        clicks = rng.poisson(
            worth[source] * np.exp(-decay * hour * HOUR) * -np.expm1(-decay * HOUR)
        )
        held = since >= late
        told = HeldPages(source, since, standing, since, clicks.astype(np.float64)).take(held)
        part.watch(told, HOUR)
    part.solve()
    return part


@pytest.mark.parametrize("latest", [0.0, 1.0])
def test_clicks_are_learnt_also_from_pages_that_were_visited_late(latest: float) -> None:
    worth = np.array([2.0, 8.0, 32.0])
    late = np.linspace(0.0, latest, 3 * 200)
    part = a_watch(worth, 200, 4.0, np.random.default_rng(2).permutation(late))
    two, none = np.full(3, 2.0 * HOUR), np.zeros(3)
    assert part.remaining(np.arange(3), two, none) == pytest.approx(worth, rel=0.12)
    assert part.remaining(np.arange(3), two, none + 8 * HOUR) == pytest.approx(worth / 2, rel=0.2)


def test_clicks_yet_to_come_become_fewer_and_end() -> None:
    part = a_watch(np.array([5.0]), 50, 2.0, np.zeros(50))
    since = np.linspace(0.0, 40.0, 400)
    for stood in HOUR * 2.0 ** np.arange(-1, CLASSES):
        left = part.remaining(np.zeros(400, dtype=np.int64), np.full(400, stood), since)
        assert np.all(np.diff(left) <= 1e-12)
        assert left[-1] == 0.0


def test_before_its_first_look_a_source_is_worth_what_it_ever_may_be() -> None:
    gaps = HOUR * 2.0 ** np.arange(GAPS)
    harvest = Harvest(gaps, 5.0 * gaps[None], 20.0 * np.exp(-gaps)[None])
    ages = np.append(gaps, np.inf)
    worth, finds = source_worth(prospects(harvest, len(ages)), np.arange(len(ages)), ages, 1.0)
    assert worth[-1] == pytest.approx(worth[:-1].max())
    assert worth[-1] > 10.0 * worth[-2] >= 0.0, "though after a month its pages are old"
    assert finds[-1] == 0.0, "all links are old"


def test_pages_fade_within_the_hour_and_old_links_are_supposed_to_be_as_good() -> None:
    """What links are worth that stand for long, only a look tells: to take them for old pages would
    mean never to find out that on some sources these are the best."""
    yields = Yields(1, resolution=HOUR, prior=Prior(1.0, 1.0))
    for hour in range(72):
        rate = 20.0 * -np.diff(np.exp(-2.0 * HOUR * np.array([hour, hour + 1.0])))[0]
        many = 200
        yields.watch(
            HeldPages(
                source=np.zeros(many, dtype=np.int64),
                age=np.full(many, (hour + 0.5) * HOUR),
                standing=np.zeros(many, dtype=np.int64),
                since=np.full(many, (hour + 0.5) * HOUR),
                clicks=np.full(many, rate),
            ),
            HOUR,
        )
    yields.solve()
    gaps = 5.0 / 1440.0 * 2.0 ** np.arange(GAPS)
    each = yields.by_gap(gaps)[0]
    short = gaps <= 2.0 * HOUR
    assert (np.diff(each[short]) < 0.0).all(), "below the hours by which clicks are counted"
    assert each[0] == pytest.approx(20.0, rel=0.1)
    assert each[~short] == pytest.approx(20.0, rel=0.1), "nobody has seen otherwise"
