"""Laws that every spacing obeys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from salticus.checks.samples import is_draw, some_outcomes, some_pages
from salticus.schedule.base import Spacing
from salticus.testing import a_tick
from salticus.types import Floats, Pages


def check_spacing(make: Callable[[], Spacing], *, seeds: int = 5) -> None:
    """Run all laws of `Spacing` on parts made by `make`; AssertionError names the law broken.

    >>> from salticus.schedule.even import Even
    >>> check_spacing(Even)
    """
    for seed in range(seeds):
        pages = replace(some_pages(60, hosts=4, seed=seed), cost=np.ones(60))
        expected = np.random.default_rng(seed).random(60)
        expected[:5] = 0.0
        for visits in (0, 1, 13, 60, 100):
            _draws(make(), pages, expected, visits)
            _keeps_within(make, pages, expected, visits)
        _does_not_mind_order(make, pages, expected)
        _is_repeatable(make, pages, expected)


def _draws(spacing: Spacing, pages: Pages, expected: Floats, visits: int) -> None:
    for number in range(3):
        draw = spacing.draw(pages, expected, visits, a_tick(number))
        is_draw(draw, pages)
        assert np.all(expected[draw.rows] > 0), "law: no visit where none is expected"
        assert len(draw.rows) <= visits, "law: never more visits than given"
        asked = min(visits, math.ceil(expected.sum() - 1e-9))
        assert len(draw.rows) == asked, "law: as many visits as expected, where hosts have room"
        again = spacing.draw(pages, expected, visits, a_tick(number))
        assert np.array_equal(again.rows, draw.rows), "law: to draw changes nothing"
        spacing.keep(pages, draw)
        spacing.learn(some_outcomes(pages, seed=number))


def _keeps_within(make: Callable[[], Spacing], pages: Pages, expected: Floats, visits: int) -> None:
    tight = replace(pages, capacity=np.array([0.0, 1.0, 3.0, 2.5]))
    draw = make().draw(tight, expected, visits, a_tick())
    load = np.bincount(tight.host[draw.rows], minlength=4)
    assert np.all(load <= np.ceil(tight.capacity)), "law: no host beyond its capacity"
    cost = np.random.default_rng(5).integers(1, 6, len(pages)).astype(np.float64)
    draw = make().draw(replace(pages, cost=cost), expected, visits, a_tick())
    assert cost[draw.rows].sum() <= visits, "law: no more than the visits given cover"


def _does_not_mind_order(make: Callable[[], Spacing], pages: Pages, expected: Floats) -> None:
    order = np.random.default_rng(3).permutation(len(pages))
    here = make().draw(pages, expected, 9, a_tick()).rows
    there = make().draw(pages.take(order), expected[order], 9, a_tick()).rows
    same = np.array_equal(np.sort(here), np.sort(order[there]))
    assert same, "law: depends on ids, not on the order of rows"


def _is_repeatable(make: Callable[[], Spacing], pages: Pages, expected: Floats) -> None:
    first, second = make(), make()
    for number in range(4):
        a = first.draw(pages, expected, 11, a_tick(number))
        b = second.draw(pages, expected, 11, a_tick(number))
        assert np.array_equal(np.sort(a.rows), np.sort(b.rows)), "law: one seed, one result"
        first.keep(pages, a)
        second.keep(pages, b)
