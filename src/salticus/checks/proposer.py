"""Laws that every proposer of visits obeys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from salticus.allocate.base import Proposer, Urgent
from salticus.allocate.capacity import fitting
from salticus.checks.samples import is_draw, remembered, some_pages
from salticus.testing import a_grant, a_tick
from salticus.types import Draw, Grant, Ints, Pages


def check_proposer(make: Callable[[], Proposer], *, seeds: int = 5) -> None:
    """Run all laws of `Proposer` on parts made by `make`; AssertionError names the law broken.

    >>> from salticus.allocate.limits import Pins
    >>> check_proposer(Pins)
    """
    for seed in range(seeds):
        for visits in (0, 1, 13, 100, 500):
            check_draw(make, pages_to_propose(seed), visits)


def pages_to_propose(seed: int) -> Pages:
    """Pages of all sorts and costs, some with a maximum interval, some pinned, some shut, on hosts
    of which one takes nothing and others little."""
    rng, n = np.random.default_rng(seed), 80
    return replace(
        some_pages(n, hosts=4, seed=seed),
        capacity=np.array([0.0, 3.0, 2.5, 40.0]),
        max_interval=np.where(rng.random(n) < 0.3, 5.0 * rng.random(n) + 0.1, np.inf),
        interval=np.where(rng.random(n) < 0.2, 3.0 * rng.random(n), np.nan),
        open=rng.random(n) < 0.9,
    )


def check_draw(make: Callable[[], Proposer], pages: Pages, visits: int) -> None:
    """The laws of `Proposer` on pages of your own: with all of so many visits left, and with some
    taken by others."""
    everything = np.flatnonzero(pages.open)
    none = everything[:0]
    for taken in (none, np.sort(fitting(pages, everything[::2], visits // 2, none))):
        grant = a_grant(visits, taken=taken)
        _changes_nothing(make(), pages, grant)
        first, second = (make().draw(pages, grant, pages.tick) for _ in range(2))
        assert _alike(first, second), "law: one seed, one draw"
        for number in range(3):
            proposer, tick = make(), a_tick(number)
            draw = proposer.draw(replace(pages, tick=tick), grant, tick)
            _is_sound(draw, pages, grant, charged=proposer.purpose.charged)
            urgent = draw.reserve == 0 or isinstance(proposer, Urgent)
            assert urgent, "law: only one that is given the purse sets visits aside"


def _is_sound(draw: Draw, pages: Pages, grant: Grant, *, charged: bool) -> None:
    is_draw(draw, pages)
    assert pages.open[draw.rows].all(), "law: only pages that are open"
    assert len(draw.due) in (0, len(draw.rows)), "law: a time for each visit, or for none"
    assert 0 <= draw.reserve <= 1, "law: a share is set aside"
    together: Ints = np.union1d(grant.taken, draw.rows)
    if charged:
        cost = float(pages.cost[together].sum())
        assert cost <= grant.visits, "law: no more than the grant covers, beside what is taken"
    load = np.bincount(pages.host[together], minlength=len(pages.capacity))
    assert np.all(load <= np.ceil(pages.capacity)), "law: no host beyond what it can take"


def _changes_nothing(proposer: Proposer, pages: Pages, grant: Grant) -> None:
    before, columns = remembered(proposer), _columns(pages)
    first = proposer.draw(pages, grant, pages.tick)
    proposer.draw(replace(pages, tick=a_tick(7)), grant, a_tick(7))
    again = proposer.draw(pages, grant, pages.tick)
    assert _alike(first, again), "law: to be asked changes nothing"
    assert remembered(proposer) == before, "law: to be asked changes nothing that is remembered"
    assert _columns(pages) == columns, "law: the pages stay as they are"


def _alike(first: Draw, second: Draw) -> bool:
    pairs = ((getattr(first, f.name), getattr(second, f.name)) for f in fields(Draw))
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)  # NaT too


def _columns(pages: Pages) -> list[bytes]:
    columns = (getattr(pages, f.name) for f in fields(pages))
    return [column.tobytes() for column in columns if isinstance(column, np.ndarray)]
