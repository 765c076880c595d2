"""Pages and outcomes to check laws on, all from a seed, and laws that several suites share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from salticus.predict.gamma import GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.testing import START, blank_pages
from salticus.types import DAY, NEVER, Draw, Floats, Outcomes, Pages, Status, Times, instant
from salticus.types.state import Remembers, pack, unpack

T = TypeVar("T")


def some_pages(n: int, *, hosts: int = 3, seed: int = 0) -> Pages:
    """Pages of all sorts: heavy-tailed demand and change rates, some never visited, gaps in ids."""
    rng = np.random.default_rng(seed)
    last = instant(START) - (rng.random(n) * 10 * DAY).astype("m8[us]")
    return replace(
        blank_pages(n, hosts=hosts),
        ids=np.cumsum(rng.integers(1, 9, n)),
        host=rng.integers(0, hosts, n),
        last_visit=(last := np.where(rng.random(n) < 0.2, NEVER, last)),
        last_answer=last,
        demand=rng.pareto(1.5, n) * (rng.random(n) < 0.8),
        impressions=rng.pareto(1.2, n) * 10,
        cost=rng.choice([1.0, 1.0, 5.0], n),
        survival=GammaSurvival(rng.pareto(1.0, n) + 0.01, 1.0 + 9.0 * rng.random(n)),
    )


def extreme_pages() -> Iterator[Pages]:
    """Pages at the ends of what can be: never or always changing, wanted by nobody, one alone."""
    pages = some_pages(9, seed=3)
    for rate in (0.0, 1e-12, 1e3, 1e12):
        yield replace(pages, survival=PoissonSurvival(np.full(9, rate)))
    mixed = np.array([0.0, 0.0, 1e-9, 0.1, 0.1, 1.0, 40.0, 1e9, 1e9])
    yield replace(pages, survival=PoissonSurvival(mixed))
    yield replace(pages, demand=np.zeros(9), impressions=np.zeros(9))
    yield replace(pages, demand=np.array([1e12] + [1e-12] * 8), survival=PoissonSurvival(mixed))
    yield pages.answered(np.full(9, NEVER))
    yield replace(pages, last_answer=np.full(9, NEVER))
    yield pages.answered(np.full(9, instant(START)))
    yield pages.take(np.arange(1))


def restarted(old: object, new: T) -> T | None:
    """`new` with what `old` remembers, as after a restart; None if they remember nothing."""
    if not (isinstance(old, Remembers) and isinstance(new, Remembers)):
        return None
    new.restore(unpack(pack({"part": old.state()})).get("part", {}))
    return new


def remembered(part: object) -> bytes:
    """What a part would keep over a restart."""
    return pack({"part": part.state()}) if isinstance(part, Remembers) else b""


def is_draw(draw: Draw, pages: Pages) -> None:
    """The laws of every draw, of a spacing or a proposer."""
    assert len(np.unique(draw.rows)) == len(draw.rows), "law: no row twice"
    assert np.all((draw.rows >= 0) & (draw.rows < len(pages))), "law: rows of these pages"
    assert draw.propensity.shape == draw.rows.shape, "law: a propensity for each visit"
    assert np.all((draw.propensity > 0) & (draw.propensity <= 1)), "law: propensities in (0, 1]"


def some_outcomes(pages: Pages, *, seed: int = 0) -> Outcomes:
    """One visit a page with every kind of end: changed, unchanged, unknown, failed, dropped."""
    rng = np.random.default_rng(seed)
    n = len(pages)
    status = rng.choice([Status.OK, Status.NOT_MODIFIED, Status.TIMEOUT], n).astype(np.int8)
    changed = np.where(status == Status.OK, rng.integers(-1, 2, n), 0).astype(np.int8)
    since = instant(START) - (rng.random(n) * DAY).astype("m8[us]")
    return Outcomes.known(
        visit=np.arange(n),
        page=pages.ids,
        at=instant(START),
        made=rng.random(n) < 0.9,
        status=status,
        changed=np.where(status == Status.TIMEOUT, -1, changed).astype(np.int8),
        since=np.where(changed == -1, NEVER, since),
    )


def failed_outcomes(pages: Pages) -> Outcomes:
    """Visits that failed, and visits that were dropped: nothing is learnt from them."""
    every = some_outcomes(pages)
    return replace(
        every,
        status=np.full_like(every.status, Status.TIMEOUT),
        changed=np.where(every.made, -1, 0).astype(np.int8),
        since=np.full_like(every.since, instant(START) - DAY),
    )


def poisson_outcomes(
    pages: Pages, rate: float, *, visits: int, spacing: str, seed: int
) -> Iterator[Outcomes]:
    """Visits of pages that change `rate` times a day at random, about one visit a day each.

    `spacing`: "even" (daily), "poisson" (at random), "bursts" (six quick ones, then a long gap).
    """
    rng = np.random.default_rng(seed)
    n = len(pages)
    at = np.zeros(n)
    for number in range(visits):
        since, at = at, at + _gaps(spacing, number, n, rng)
        changed = rng.random(n) < -np.expm1(-rate * (at - since))
        seen = {"since": _time(since), "changed": changed}
        yield Outcomes.known(visit=np.arange(n), page=pages.ids, at=_time(at), **seen)


def _gaps(spacing: str, number: int, n: int, rng: np.random.Generator) -> Floats:
    if spacing == "even":
        return np.ones(n)
    if spacing == "poisson":
        return rng.exponential(1.0, n)
    return np.full(n, 3.0 if number % 6 == 0 else 0.2)


def _time(days: Floats) -> Times:
    return np.asarray(instant(START) + (days * DAY.astype(np.int64)).astype("m8[us]"))
