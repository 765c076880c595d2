"""Policies and what hosts can take: one price for the rest, a local one for each full host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.allocate.baselines import DemandProportional, Uniform
from salticus.allocate.capacity import free, within_capacity
from salticus.allocate.lambdacrawl import LambdaCrawl
from salticus.checks.samples import some_pages
from salticus.testing import blank_pages
from salticus.types import Floats, Ints, Outcomes, Pages

NOBODY: Ints = np.empty(0, dtype=np.int64)


def tight(seed: int, n: int = 40, hosts: int = 5) -> Pages:
    """Pages on hosts of which some are full soon, one at once and one never."""
    rng = np.random.default_rng(seed)
    room = np.concatenate([[0.0, np.inf], rng.random(hosts - 2) * 4])
    pages = some_pages(n, hosts=hosts, seed=seed)
    return replace(pages, cost=np.ones(n), capacity=room)


class HostByHost:
    """LambdaCrawl for whoever cannot ask it about many hosts at once."""

    def __init__(self) -> None:
        self.inner = LambdaCrawl()
        self.seen: list[Ints] = []

    def expected(self, pages: Pages, visits: float) -> Floats:
        self.seen.append(pages.ids)
        return self.inner.expected(pages, visits)

    def learn(self, outcomes: Outcomes) -> None: ...


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.floats(0.0, 40.0))
def test_all_full_hosts_at_once_or_one_by_one_is_the_same(seed: int, visits: float) -> None:
    pages = tight(seed)
    once = within_capacity(LambdaCrawl(), pages, visits, NOBODY)
    assert once == pytest.approx(within_capacity(HostByHost(), pages, visits, NOBODY), abs=1e-7)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.floats(1.0, 30.0))
def test_a_full_host_has_a_local_price_and_the_others_a_common_one(
    seed: int, visits: float
) -> None:
    pages, policy = tight(seed), LambdaCrawl()
    expected = within_capacity(policy, pages, visits, NOBODY)
    load = np.bincount(pages.host, weights=expected, minlength=5)
    full = load >= pages.capacity - 1e-9
    assert not expected[pages.host == 0].any(), "a host without room gets nothing"
    for host in np.flatnonzero(full)[1:]:
        mine = pages.host == host
        alone = policy.expected(pages.take(mine), pages.capacity[host])
        assert expected[mine] == pytest.approx(alone, abs=1e-7)
    rest = ~full[pages.host]
    spent = float(expected[rest].sum())
    assert expected[rest] == pytest.approx(policy.expected(pages.take(rest), spent), abs=1e-7)


def test_within_a_full_host_the_policy_still_decides() -> None:
    """To cut what it asked for in proportion would leave 5/6 and 1/6."""
    pages = replace(
        blank_pages(4, hosts=2),
        host=np.array([0, 0, 1, 1]),
        demand=np.array([6.0, 0.5, 1.0, 1.0]),
        capacity=np.array([1.0, np.inf]),
    )
    expected = within_capacity(DemandProportional(), pages, 2.0, NOBODY)
    assert expected == pytest.approx([6 / 6.5, 0.5 / 6.5, 0.5, 0.5])


def test_a_policy_does_not_see_what_is_not_for_it_to_decide() -> None:
    pages = replace(
        blank_pages(6),
        open=np.array([True, False, True, True, True, True]),
        interval=np.array([np.nan, np.nan, 1.0, np.nan, np.nan, np.nan]),
        capacity=np.array([3.0]),
    )
    assert np.flatnonzero(free(pages, np.array([3]))).tolist() == [0, 4, 5]
    policy = HostByHost()
    expected = within_capacity(policy, pages, 2.0, np.array([3]))
    assert expected == pytest.approx([2 / 3, 0, 0, 0, 2 / 3, 2 / 3])
    assert [ids.tolist() for ids in policy.seen] == [[0, 4, 5]]


def test_dear_pages_are_counted_at_the_mean_of_those_that_may_be_chosen() -> None:
    pages = replace(
        blank_pages(4),
        cost=np.array([2.0, 2.0, 9.0, 9.0]),
        open=np.array([True, True, False, False]),
    )
    assert within_capacity(Uniform(), pages, 2.0, NOBODY) == pytest.approx([0.5, 0.5, 0, 0])


@pytest.mark.parametrize("visits", [0, 3])
def test_nothing_to_decide_is_nothing_expected(visits: float) -> None:
    shut = replace(blank_pages(3), open=np.zeros(3, dtype=np.bool_))
    assert not within_capacity(Uniform(), shut, visits, NOBODY).any()
    assert within_capacity(Uniform(), blank_pages(0), visits, NOBODY).shape == (0,)
