"""Fakes and makers for tests of parts: a tick, blank pages, a still world, a store in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from salticus.allocate.base import Policy, Stepwise
from salticus.store.memory.store import MemoryStore
from salticus.types import NEVER, Floats, Grant, Ints, Outcomes, Pages, Plan, Tick, Times, instant
from salticus.types.coins import coins

__all__ = ["START", "MemoryStore", "StillWorld", "a_grant", "a_step", "a_tick", "blank_pages"]

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
    none = np.empty(0, dtype=np.int64)
    release = np.full(visits, instant(START))
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


class StillWorld:
    """A world whose pages never change and always answer, at the moment they are due.

    A share `drop` of the visits, by a hash of the visit, is dropped. `times` and `rows` tell what
    was visited when.
    """

    def __init__(self, pages: Pages, *, drop: float = 0.0) -> None:
        self._pages = pages.answered(pages.last_visit.copy())
        self.drop = drop
        self.rows: list[Ints] = []
        self._times: list[Times] = []

    @property
    def times(self) -> Times:
        """When every visit was made."""
        return np.concatenate([np.empty(0, dtype="M8[us]"), *self._times])

    def times_of(self, row: int) -> Times:
        """When the page in that row was visited."""
        rows = np.concatenate([np.empty(0, dtype=np.int64), *self.rows])
        return np.asarray(self.times[rows == row])

    async def pages(self, tick: Tick) -> Pages:
        return replace(self._pages, tick=tick)

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        rows = self._pages.rows(plan.page)
        made = coins(0, plan.visit, 0) >= self.drop
        yield replace(
            Outcomes.dropped(plan, NEVER),
            at=plan.due,
            made=made,
            status=np.zeros(len(plan), dtype=np.int8),
            changed=np.zeros(len(plan), dtype=np.int8),
            since=self._pages.last_answer[rows],
        )
        self._pages.last_visit[rows[made]] = plan.due[made]
        self.rows.append(rows[made])
        self._times.append(plan.due[made])

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        for outcomes in list[Outcomes]():
            yield outcomes
