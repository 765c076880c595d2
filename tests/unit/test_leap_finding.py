"""leap where new pages are to be found: one price, and no visit lost for want of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from salticus.allocate.leap import Leap
from salticus.predict.poisson import PoissonSurvival
from salticus.testing import a_tick, blank_pages
from salticus.types import KINDS, Floats, Harvest, Pages, Prospects

HOUR, DAY = np.timedelta64(1, "h"), np.timedelta64(1, "D")
PER_TICK = 2.0


def pages_beside_a_source(remaining: Floats, *, each: float = 100.0) -> Pages:
    """A source that was just read, pages found on it that nobody visited yet, and ten offers whose
    copies are an hour old; people want them all."""
    tick, many = a_tick(), len(remaining)
    n = 1 + many + 10
    gaps = 2.0 ** np.arange(14) / 24.0
    curves = np.full((1, 14), each)
    kind = np.full(n, KINDS.index("offer"), dtype=np.int8)
    kind[0], kind[1 : 1 + many] = KINDS.index("source"), KINDS.index("article")
    blank = blank_pages(n)
    just = np.full(n, np.datetime64(tick.start.replace(tzinfo=None), "us") - HOUR)
    just[1 : 1 + many] = np.datetime64("NaT")
    zeros = np.zeros(n)
    prospects = Prospects(
        rate=zeros + (np.arange(n) == 0),
        profit=zeros + each,
        decay=zeros + 1.0,
        remaining=np.concatenate([[np.nan], remaining, np.full(10, np.nan)]),
        entries=zeros,
        span=zeros,
        usual=zeros,
        looks=zeros + 9.0,
        row=np.where(np.arange(n) == 0, 0, -1),
        harvest=Harvest(gaps, gaps[None] * 0.01, curves),
    )
    pages = replace(blank, tick=tick, kind=kind, last_visit=just, last_answer=just)
    survival = PoissonSurvival(np.full(n, 0.02))
    demand = np.where(np.arange(n) == 0, 0.0, 1.0)
    return replace(pages, demand=demand, survival=survival, prospects=prospects)


def test_a_found_page_is_worth_the_clicks_to_come_and_no_more() -> None:
    remaining = np.array([0.5, 3.0, 0.0])
    worth, _ = Leap().worth(pages_beside_a_source(remaining))
    assert worth[1:4] == pytest.approx(remaining), "a copy that lasts for a year adds nothing"


def test_the_first_price_is_not_above_what_there_is() -> None:
    """Before anything is known of the price, pages worth little are visited all the same."""
    policy = Leap()
    policy.pace(PER_TICK)
    expected = policy.expected(pages_beside_a_source(np.empty(0)), PER_TICK)
    assert expected.sum() == pytest.approx(PER_TICK)


def test_visits_are_kept_for_six_hours_and_more_are_made_at_any_price() -> None:
    pages = pages_beside_a_source(np.empty(0))
    policy = Leap()
    policy.pace(PER_TICK)
    policy.price_, policy._each = 50.0, 100.0
    six_hours = PER_TICK / pages.tick.days / 4.0
    assert policy.expected(pages, six_hours).sum() == 0.0, "they are kept for what may come"
    policy.adopt()
    policy.price_ = 50.0
    assert policy.expected(pages, six_hours + 3.0).sum() == pytest.approx(3.0)


def test_a_source_that_was_looked_at_twice_is_tried_again_as_custom_has_it() -> None:
    """At a price above what is supposed of it nobody would ever learn what it is worth."""
    pages = pages_beside_a_source(np.empty(0))
    assert pages.prospects is not None
    usual, once = np.full(len(pages), 0.5 / 24.0), np.ones(len(pages))
    failed = replace(pages, last_answer=pages.last_answer - HOUR)
    for some, looks, days, tried in (
        (pages, once, usual, 1.0),
        (pages, once, 4 * usual, 0.0),
        (pages, once + 1, usual, 0.0),
        (failed, once, usual, 0.0),
    ):
        policy = Leap()
        policy.pace(100.0)
        policy.price_, policy._each = 50.0, 100.0
        due = replace(some, prospects=replace(pages.prospects, looks=looks, usual=days))
        visits = 10.0  # of which one is for such sources
        assert policy.expected(due, visits)[0] == tried


def test_the_price_follows_fast_at_first_and_slowly_later() -> None:
    """Pages that were never visited make it high; once they are held it must fall."""
    pages, falls = pages_beside_a_source(np.empty(0)), []
    for days in (0.5, 30.0):
        policy = Leap()
        policy.pace(PER_TICK)
        policy.price_, policy._each, policy.days_ = 50.0, 0.0, days
        policy.expected(pages, PER_TICK)
        policy.adopt()
        falls.append(np.log(50.0 / policy.price_) / pages.tick.days)
    assert falls == pytest.approx([16.0, 1.2]), "a day; at most, twice as fast as it follows"
