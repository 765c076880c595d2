"""Coin spacing: each page with its own probability, and exactly so many visits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.config import Budget
from salticus.schedule.coin import Coin
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.testing import START, a_tick, blank_pages
from salticus.types import DAY, Bools, Floats, Purpose, instant


def drawn(expected: Floats, visits: int, *, ticks: int, seed: int = 0) -> Bools:
    """Who was drawn in which tick, a row a tick."""
    pages, coin = blank_pages(len(expected)), Coin(seed=seed)
    hits = np.zeros((ticks, len(expected)), dtype=np.bool_)
    for number in range(ticks):
        hits[number, coin.draw(pages, expected, visits, a_tick(number)).rows] = True
    return hits


def test_equal_pages_are_drawn_equally_often() -> None:
    often = drawn(np.full(5, 0.4), 2, ticks=4000).mean(axis=0)
    assert np.abs(often - 0.4).max() < 0.03  # four standard errors


def test_many_pages_are_drawn_as_often_as_expected() -> None:
    """200 pages of each probability: the error of sampling is far below 0.01, and so is ours."""
    chances = np.linspace(0.05, 0.95, 10) ** 2
    chances *= round(chances.sum()) / chances.sum()
    expected = np.repeat(chances, 200)
    often = drawn(expected, round(expected.sum()), ticks=200).reshape(200, 10, 200).mean((0, 2))
    assert np.abs(often - chances).max() < 0.01


@pytest.mark.parametrize(
    ("chances", "visits", "most"),
    [((0.9, 0.6, 0.5), 2, 0.02), ((0.99, 0.7, 0.2, 0.05, 0.06), 2, 0.08)],
)
def test_a_handful_of_pages_is_off_by_as_much_as_stated(
    chances: tuple[float, ...], visits: int, most: float
) -> None:
    """Exact is another thing: Σπ(1 − π) is 0.6 and 0.5 here, one choice or less in all."""
    often = drawn(np.array(chances), visits, ticks=4000).mean(axis=0)
    error = np.abs(often - chances).max()
    assert error < most + 0.02
    assert most < 0.05 or error > 0.03, "the worst case is not the one stated"


def test_certain_pages_are_always_drawn_and_impossible_ones_never() -> None:
    hits = drawn(np.array([1.0, 0.0, 0.5, 0.5, 1.0]), 3, ticks=300)
    assert hits[:, [0, 4]].all()
    assert not hits[:, 1].any()
    assert np.all(hits.sum(axis=1) == 3)


def test_coins_have_no_memory() -> None:
    hits = drawn(np.full(400, 0.3), 120, ticks=300).astype(np.float64)
    assert abs(np.corrcoef(hits[1:].ravel(), hits[:-1].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(hits[:, 1:].ravel(), hits[:, :-1].ravel())[0, 1]) < 0.02
    gaps = np.concatenate([np.diff(np.flatnonzero(page)) for page in hits.T])
    assert gaps.std() == pytest.approx(np.sqrt(0.7) / 0.3, rel=0.05)  # geometric, not even


@given(st.data())
def test_the_number_drawn_is_exact(data: st.DataObject) -> None:
    chance = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-9, 1.0))
    expected = np.array(data.draw(st.lists(chance, min_size=1, max_size=30)))
    visits = data.draw(st.integers(0, 40))
    draw = Coin(seed=2).draw(blank_pages(len(expected)), expected, visits, a_tick(5))
    assert len(draw.rows) == min(visits, int(np.ceil(expected.sum() - 1e-9)))
    assert len(np.unique(draw.rows)) == len(draw.rows)
    assert np.all(expected[draw.rows] > 0)
    assert np.all((draw.propensity > 0) & (draw.propensity <= 1))


def test_the_propensity_is_what_was_expected() -> None:
    expected = np.array([0.25, 0.75, 0.5, 0.5])
    draw = Coin().draw(blank_pages(4), expected, 2, a_tick())
    assert np.allclose(draw.propensity, expected[draw.rows])
    draw = Coin().draw(blank_pages(4), expected, 1, a_tick())
    assert np.allclose(draw.propensity, expected[draw.rows] / 2), "scaled to the number drawn"


def test_full_hosts_leave_their_visits_to_others() -> None:
    pages = replace(blank_pages(60, hosts=3), capacity=np.array([2.0, 100.0, 0.0]))
    for number in range(20):
        rows = Coin().draw(pages, np.full(60, 0.2), 12, a_tick(number)).rows
        load = np.bincount(pages.host[rows], minlength=3)
        assert load[0] <= 2
        assert load[2] == 0
        assert len(rows) == 12


def test_when_in_the_tick_is_another_coin() -> None:
    """The planner has the same seed: pages that are drawn must not all come early in the tick."""
    pages = blank_pages(2000, hosts=2000)
    draw = Coin(seed=7).draw(pages, np.full(2000, 0.1), 200, a_tick())
    grant = Ledger(Budget.parse(2400)).grant(pages, a_tick())
    due = Planner(seed=7).plan(pages, [(Purpose.POLICY, draw)], a_tick(), grant).due
    place = (due - instant(START)) / (DAY / 12)
    assert abs(place.mean() - 0.5) < 0.1
    assert place.max() > 0.9
