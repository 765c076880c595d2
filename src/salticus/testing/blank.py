"""Inputs for tests of parts: a tick, and pages of which nothing is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from salticus.allocate.base import Policy, Stepwise
from salticus.types import NEVER, Floats, Grant, Ints, Pages, Tick, instant

START = datetime(2026, 1, 1, tzinfo=UTC)


def blank_pages(n: int, *, hosts: int = 1) -> Pages:
    """`n` pages never visited, spread over `hosts` hosts, all alike.

    >>> len(blank_pages(3))
    3
    """
    ones = np.ones(n)
    return Pages(
        tick=a_tick(),
        ids=np.arange(n, dtype=np.int64),
        host=np.arange(n, dtype=np.int64) % hosts,
        kind=np.full(n, -1, dtype=np.int8),
        rule=np.full(n, -1, dtype=np.int64),
        merchant=np.full(n, -1, dtype=np.int64),
        category=np.full(n, -1, dtype=np.int64),
        added=np.full(n, np.datetime64(0, "us")),
        last_visit=np.full(n, NEVER),
        last_answer=np.full(n, NEVER),
        demand=ones,
        impressions=ones,
        cost=ones,
        max_interval=np.full(n, np.inf),
        interval=np.full(n, np.nan),
        min_interval=np.zeros(n),
        open=np.ones(n, dtype=np.bool_),
        capacity=np.full(hosts, np.inf),
    )


def a_grant(visits: int, *, taken: Ints | None = None) -> Grant:
    """So many visits, all of which may start at once."""
    release = np.full(visits, instant(START))
    none = np.empty(0, dtype=np.int64)
    return Grant(release, float(visits), taken=none if taken is None else taken)


def a_step(policy: Policy, pages: Pages, visits: float) -> Floats:
    """What a policy expects of a tick, which it goes through as in a crawl."""
    if isinstance(policy, Stepwise):
        policy.begin(pages)
    expected = policy.expected(pages, visits)
    if isinstance(policy, Stepwise):
        policy.adopt()
    return expected


def a_tick(number: int = 0, length: timedelta = timedelta(hours=2)) -> Tick:
    """The tick of that number, counted from the start of 2026."""
    return Tick(number, START + number * length, START + (number + 1) * length)
