"""Links on sources: how many appear, how long they stand, from visits that see only some."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.predict.links import LinkRates, SourceVisits
from salticus.types import Floats

HERE = np.array([0])


def visits(rng: np.random.Generator, rate: float, vanish: float, gaps: Floats) -> SourceVisits:
    """What visits at these gaps see of a source whose links stand for 1/vanish days on average."""
    before = min(10 / vanish, 100.0)
    born = rng.uniform(-before, gaps.sum(), rng.poisson(rate * (before + gaps.sum())))
    ends = born + rng.exponential(1 / vanish, len(born))
    there, told = (born <= 0) & (ends > 0), []
    for at in np.cumsum(gaps):
        now = (born <= at) & (ends > at)
        told.append([(now & ~there).sum(), (now & there).sum(), (there & ~now).sum()])
        there = now
    return SourceVisits(np.zeros(len(gaps), dtype=np.int64), gaps, *np.array(told, dtype=float).T)


@pytest.mark.parametrize(("vanish", "appear"), [(0.01, 80), (1.0, 100), (3.0, 150)])
def test_rates_are_recovered_from_seven_visits_that_saw_fifty_links(
    vanish: float, appear: float
) -> None:
    """Alone in the world, so that nothing but the source's own visits tells of it. So many links
    appear that hardly ever fewer than fifty are seen: to choose among worlds would be a bias."""
    rng = np.random.default_rng(7)
    off = []
    while len(off) < 300:
        rate = float(np.exp(rng.normal(np.log(40.0), 0.5)))
        gaps = rng.exponential(1.0, 7)
        found = visits(rng, rate, vanish, gaps * (appear / rate / gaps.sum()))
        if found.new.sum() >= 50:
            rates = LinkRates()
            rates.learn(found)
            off.append(rates.links(HERE, HERE).rate[0] / rate - 1.0)
    assert np.median(np.abs(off)) < 0.10
    assert abs(np.median(off)) < 0.04, "links that vanish between two visits bias nothing"


def test_what_was_seen_in_thirty_hours_is_not_spread_over_a_week() -> None:
    rates = LinkRates()
    hours = np.full(3, 10.0 / 24.0)
    rates.learn(SourceVisits(np.zeros(3, int), hours, np.full(3, 50.0), np.full(3, 9.0), hours * 0))
    assert rates.links(HERE, HERE).rate[0] == pytest.approx(50 / (10 / 24), rel=0.05)


def test_links_that_are_all_gone_at_the_next_visit_may_still_have_stood_for_hours() -> None:
    """Else a source that is looked at daily is believed to show any number of links a day."""
    rates, days = LinkRates(), np.ones(7)
    rates.learn(SourceVisits(np.zeros(7, int), days, 20.0 * days, 0.0 * days, 20.0 * days))
    told = rates.links(HERE, HERE)
    assert 4.0 < told.vanish[0] < 9.0
    assert 20.0 < told.rate[0] < 10 * 20.0


@given(st.integers(1, 10), st.integers(1, 30))
def test_only_the_last_visits_count(kept: int, visits_made: int) -> None:
    rates, last = LinkRates(visits=kept), LinkRates(visits=kept)
    told = SourceVisits(
        np.full(visits_made, 3),
        np.linspace(0.1, 2.0, visits_made),
        np.arange(visits_made) * 1.0,
        np.ones(visits_made),
        np.ones(visits_made),
    )
    rates.learn(told)
    last.learn(told.take(np.arange(visits_made)[-kept:]))
    three = np.array([3])
    one, other = rates.links(three, HERE), last.links(three, HERE)
    assert one.rate == pytest.approx(other.rate)
    assert one.vanish == pytest.approx(other.vanish)


def test_a_new_source_is_taken_for_one_like_those_of_its_group() -> None:
    rng = np.random.default_rng(2)
    rates, busy, slow = LinkRates(), 60.0, 2.0
    for source in range(40):
        found = visits(rng, busy if source % 2 else slow, 0.5, np.full(7, 0.5))
        rates.learn(SourceVisits(found.source + source, *list(columns(found))[1:]))
    ids = np.arange(42)
    told = rates.links(ids, ids % 2)
    assert told.rate[41] == pytest.approx(busy, rel=0.3)
    assert told.rate[40] == pytest.approx(slow, rel=0.5)
    assert told.error[41] > 3 * told.error[39]


def columns(found: SourceVisits) -> list[Floats]:
    return [found.source, found.days, found.new, found.kept, found.gone]  # type: ignore[list-item]


@given(st.data())
def test_whatever_was_seen_rates_are_numbers_above_nothing(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 20))
    some = st.lists(st.integers(0, 1000).map(float), min_size=n, max_size=n).map(np.array)
    days = st.lists(st.floats(0.0, 1000.0), min_size=n, max_size=n).map(np.array)
    source = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    rates = LinkRates()
    parts = (data.draw(days), data.draw(some), data.draw(some), data.draw(some))
    rates.learn(SourceVisits(np.array(source, dtype=np.int64), *parts))
    ids = np.arange(6)
    told = rates.links(ids, ids % 2)
    for column in (told.rate, told.error, told.vanish):
        assert np.all(np.isfinite(column))
        assert np.all(column > 0.0)


def test_a_restored_one_says_the_same() -> None:
    rng = np.random.default_rng(3)
    rates, other = LinkRates(), LinkRates()
    rates.learn(visits(rng, 9.0, 1.0, np.full(9, 0.7)))
    other.restore(rates.state())
    more = visits(rng, 20.0, 1.0, np.full(3, 0.2))
    for each in (rates, other):
        each.learn(more)
    assert rates.links(HERE, HERE).rate.tolist() == other.links(HERE, HERE).rate.tolist()
