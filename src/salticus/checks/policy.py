"""Laws that every policy obeys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from salticus.allocate.base import Policy, Thrifty
from salticus.allocate.capacity import within_capacity
from salticus.checks.samples import extreme_pages, remembered, restarted, some_outcomes, some_pages
from salticus.errors import InputError
from salticus.predict.poisson import PoissonSurvival
from salticus.testing import a_step
from salticus.types import Floats, Pages

_SLACK = 1e-6
_close = partial(np.allclose, atol=_SLACK)


def check_policy(make: Callable[[], Policy], *, seeds: int = 5) -> None:
    """Run all laws of `Policy` on policies made by `make`; AssertionError names the law broken.

    A policy with ``spends = False`` may leave visits unspent; all others spend exactly.

    >>> from salticus.allocate.baselines import Uniform
    >>> check_policy(Uniform)
    """
    for seed in range(seeds):
        pages = some_pages(50, seed=seed)
        for visits in (0.0, 0.3, 7.0, 25.5, 50.0, 80.0):
            check_answer(make, pages, visits)
            _survives_learning(make(), pages, visits)
            _answers_again(make(), pages, visits)
            _remembers(make, pages, visits)
        check_hosts(make, pages, 20.0)
        check_nan(make, pages)
    for pages in extreme_pages():
        check_answer(make, pages, 2.5)
    none = some_pages(1, seed=0).take(np.empty(0, dtype=np.int64))
    assert make().expected(none, 5.0).shape == (0,), "law: no pages, no visits"


def check_answer(make: Callable[[], Policy], pages: Pages, visits: float) -> None:
    """The laws of a single answer, on pages of your own."""
    expected = make().expected(pages, visits)
    _spends(make(), expected, pages, visits)
    order = np.random.default_rng(3).permutation(len(pages))
    moved = make().expected(pages.take(order), visits)
    assert _close(moved, expected[order]), "law: a permutation of the pages permutes the answer"
    both = make().expected(_twins(pages), 2 * visits)
    assert _close(both[::2], both[1::2]), "law: pages that are alike get alike"


def _twins(pages: Pages) -> Pages:
    """Every page twice, one after the other, the second under an id of its own."""
    both = pages.take(np.repeat(np.arange(len(pages)), 2))
    return replace(both, ids=2 * both.ids + np.tile([0, 1], len(pages)))


def check_hosts(make: Callable[[], Policy], pages: Pages, visits: float) -> None:
    """As the loop asks it, no host gets more than it can take, and others get what is left."""
    pages = replace(pages, cost=np.ones(len(pages)))
    held = np.bincount(pages.host, minlength=len(pages.capacity))
    rooms: list[Floats] = [
        1.5 * np.arange(len(held), dtype=np.float64),
        held / 4.0,
        np.where(held > 2, 1.0, np.inf),
    ]
    for room in rooms:
        tight = replace(pages, capacity=room)
        policy = make()
        expected = within_capacity(policy, tight, visits, np.empty(0, dtype=np.int64))
        load = np.bincount(tight.host, weights=expected, minlength=len(room))
        assert np.all(load <= room + _SLACK * (1 + room)), "law: no host beyond its capacity"
        most = min(visits, float(np.minimum(room, held).sum()))
        _spends(policy, expected, pages, most)


def check_growth(make: Callable[[], Policy], pages: Pages, fewer: float, more: float) -> None:
    """More visits never lower the share of any page. Not of the laws of all policies."""
    before, after = make().expected(pages, fewer), make().expected(pages, more)
    assert np.all(after >= before - _SLACK), "law: more visits never lower a page's share"


def check_nan(make: Callable[[], Policy], pages: Pages) -> None:
    """A number that is missing is an InputError that names the page, or it is not even read."""
    row = len(pages) // 2
    for column in ("demand", "impressions", "survival"):
        spoilt = _answered(make(), _with_value(pages, column, row, np.nan))
        if isinstance(spoilt, str):
            assert f"of page {pages.ids[row]} " in spoilt, "law: NaN is rejected by name"
            continue
        for value in (0.01, 100.0):
            known = make().expected(_with_value(pages, column, row, value), len(pages) / 3)
            assert _close(known, spoilt), f"law: NaN in {column} is rejected"


def _with_value(pages: Pages, column: str, row: int, value: float) -> Pages:
    """The same pages with `value` in one row of demand, impressions, or change rates."""
    if column == "survival":
        rates = np.full(len(pages), 0.5)
        rates[row] = value
        return replace(pages, survival=PoissonSurvival(rates))
    changed = getattr(pages, column).copy()
    changed[row] = value
    return replace(pages, **{column: changed})


def _answered(policy: Policy, pages: Pages) -> Floats | str:
    """What the policy expects, or why it refuses to answer."""
    try:
        return policy.expected(pages, len(pages) / 3)
    except InputError as error:
        return str(error)


def _spends(policy: Policy, expected: Floats, pages: Pages, visits: float) -> None:
    assert expected.shape == (len(pages),), "law: one number for each page"
    assert np.all(np.isfinite(expected)), "law: never NaN nor infinite"
    inside = (expected >= -_SLACK) & (expected <= 1 + _SLACK)
    assert np.all(inside), "law: each page's expected visits are in [0, 1]"
    wanted = min(visits, len(pages))
    got, slack = float(expected.sum()), _SLACK * max(1.0, wanted)
    shown = f"({got} expected of {wanted} on {len(pages)} pages)"
    assert got < wanted + slack, f"law: the visits are spent exactly, never more {shown}"
    if not isinstance(policy, Thrifty) or policy.spends:
        assert got > wanted - slack, f"law: the visits are spent exactly {shown}"


def _survives_learning(policy: Policy, pages: Pages, visits: float) -> None:
    a_step(policy, pages, visits)
    policy.learn(some_outcomes(pages, seed=1))
    policy.learn(some_outcomes(pages, seed=2).take(np.empty(0, dtype=np.int64)))
    _spends(policy, policy.expected(pages, visits), pages, visits)


def _answers_again(policy: Policy, pages: Pages, visits: float) -> None:
    """As hosts fill up, a policy is asked about the pages of the others, in the same tick; and
    whoever looks ahead asks it about other ticks."""
    policy.learn(some_outcomes(pages, seed=3))
    before = remembered(policy)
    expected = policy.expected(pages, visits)
    some = np.arange(0, len(pages), 3)
    _spends(policy, policy.expected(pages.take(some), 5.0), pages.take(some), 5.0)
    assert _close(policy.expected(pages, visits), expected), (
        "law: to be asked again, or about some of the pages, changes nothing"
    )
    later = replace(pages.tick, number=pages.tick.number + 7)
    _spends(policy, policy.expected(replace(pages, tick=later), visits), pages, visits)
    assert before == remembered(policy), "law: to be asked changes nothing"


def _remembers(make: Callable[[], Policy], pages: Pages, visits: float) -> None:
    """A policy that keeps something is the same after a restart."""
    old = make()
    a_step(old, pages, visits)
    old.learn(some_outcomes(pages, seed=4))
    if new := restarted(old, make()):
        for policy in (old, new):
            policy.learn(some_outcomes(pages, seed=5))
        before, after = (policy.expected(pages, visits) for policy in (old, new))
        assert _close(before, after), "law: restored from its state, a policy decides alike"
