"""What hosts can take: no policy may ask for more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from salticus.allocate.base import ByHost, Policy
from salticus.types import Bools, Floats, Ints, Pages, instant
from salticus.types.arrays import cut
from salticus.types.state import covered, later, rank_within


def less(pages: Pages, taken: Ints) -> Pages:
    """The same pages with the capacity that is left once `taken` rows are visited."""
    return replace(pages, capacity=_room(pages, taken)) if len(taken) else pages


def _room(pages: Pages, taken: Ints) -> Floats:
    used = np.bincount(pages.host[taken], minlength=len(pages.capacity))
    return np.maximum(pages.capacity - used, 0.0)


def fitting(pages: Pages, rows: Ints, visits: int, taken: Ints) -> Ints:
    """Those of the rows, from the first on, for which there is room and budget beside `taken`.

    >>> from salticus.testing import blank_pages
    >>> pages = replace(blank_pages(6, hosts=2), capacity=np.array([1.0, 9.0]))
    >>> fitting(pages, np.array([0, 2, 3, 5]), 3, np.array([1]))
    array([0, 3])
    """
    if not len(rows):
        return rows
    room = np.ceil(_room(pages, taken))
    rows = rows[rank_within(pages.host[rows]) < room[pages.host[rows]]]
    return rows[: covered(pages.cost[rows], visits - float(pages.cost[taken].sum()))]


def optional(pages: Pages) -> Bools:
    """The pages that policy and exploration may choose: open, without a fixed interval, and not
    visited so lately that their minimum interval lasts into the tick."""
    found = pages.open & np.isnan(pages.interval)
    if pages.min_interval.any():
        spaced = np.flatnonzero(pages.min_interval)
        until = later(pages.last_visit[spaced], pages.min_interval[spaced])
        found[spaced] &= ~(until > instant(pages.tick.start))
    return found


def free(pages: Pages, taken: Ints) -> Bools:
    """The pages that a policy decides on: those that it may choose and that are not `taken`."""
    found = optional(pages)
    found[taken] = False
    return found


def within_capacity(policy: Policy, pages: Pages, visits: float, taken: Ints) -> Floats:
    """What the policy expects of the pages that are free, with no host above its capacity.

    A host that the policy would overfill gets exactly its capacity, at a price of its own; the
    policy spends the rest on the other hosts' pages at one price (Kolobov et al. 2019; ALGORITHMS
    §4.2). A host that is full at one price stays so at a lower one: hence the rounds end at the
    optimum. Sums to `visits` when the hosts have room; where pages cost more than 1, to as many as
    `visits` cover at the mean cost.

    Cost: one call of the policy for each round in which hosts fill up, and one for all full hosts
    together, or for each of them if the policy is not `ByHost`.
    """
    room, rest = pages.capacity, free(pages, taken)
    if not np.all(room > 0):
        rest &= room[pages.host] > 0
    expected = np.zeros(len(pages))
    full = np.zeros(len(room), dtype=np.bool_)
    some = _only(pages, rest)
    left = visits / float(some.cost.mean()) if len(some) else 0.0
    while left > 1e-9 and len(some):
        part = policy.expected(some, left)
        over = np.bincount(some.host, weights=part, minlength=len(room)) > room + 1e-9
        if not over.any():
            expected[rest] = part
            break
        full |= over
        left -= float(room[over].sum())
        rest &= ~over[pages.host]
        some = _only(pages, rest)
    if full.any():
        filled = full[pages.host] & free(pages, taken)
        expected[filled] = _locally(policy, pages.take(filled), room)
    return expected


def _only(pages: Pages, rows: Bools) -> Pages:
    """The given rows, to look at while the pages are as they are; no copy if they are all."""
    return pages if rows.all() else _Glance.of(pages, rows)


class _Glance(Pages):
    """Rows of other pages, each column cut when it is first looked at: to copy those that nobody
    looks at would be the largest part of a plan."""

    _pages: Pages
    _rows: Bools
    _many: int
    _cut: dict[int, NDArray[Any]]  # by the column, as a host may be a merchant, too

    @classmethod
    def of(cls, pages: Pages, rows: Bools) -> Pages:
        self, kept = object.__new__(cls), np.flatnonzero(rows)
        own: dict[str, Any] = {"_pages": pages, "_rows": rows.copy(), "_many": len(kept)}
        for name in ("survival", "prospects"):
            part = getattr(pages, name)
            own[name] = None if part is None else part.take(kept)
        self.__dict__.update(own, tick=pages.tick, capacity=pages.capacity, _cut={})
        return self

    def __len__(self) -> int:
        return len(self.ids) if "ids" in self.__dict__ else self._many

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_") or name not in self.columns():
            raise AttributeError(name)
        column = getattr(self._pages, name)
        if id(column) not in self._cut:
            self._cut[id(column)] = cut(column, np.flatnonzero(self._rows))
        self.__dict__[name] = self._cut[id(column)]
        return self._cut[id(column)]


def _locally(policy: Policy, pages: Pages, room: Floats) -> Floats:
    """What the policy expects of each host's pages with just that host's room to spend."""
    if isinstance(policy, ByHost):
        return policy.expected_by_host(pages, room)
    expected = np.zeros(len(pages))
    order = np.argsort(pages.host, kind="stable")
    starts = np.flatnonzero(np.diff(pages.host[order])) + 1
    for rows in np.split(order, starts):
        mine = np.sort(rows)
        expected[mine] = policy.expected(pages.take(mine), float(room[pages.host[mine[0]]]))
    return expected
