"""What hosts can take: no policy may ask for more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from salticus.allocate.base import Policy
from salticus.types import Floats, Ints, Pages


def less(pages: Pages, taken: Ints) -> Pages:
    """The same pages with the capacity that is left once `taken` rows are visited."""
    used = np.bincount(pages.host[taken], minlength=len(pages.capacity))
    return replace(pages, capacity=np.maximum(pages.capacity - used, 0.0))


def within_capacity(policy: Policy, pages: Pages, visits: float, taken: Ints) -> Floats:
    """What the policy expects of the pages not `taken`, with no host above its capacity.

    A host that the policy would overfill gets exactly its capacity, and the policy spends the rest
    on the other hosts' pages, as if each full host had a local price of its own (Kolobov et al.
    2019; ALGORITHMS §4.2). Sums to `visits` when the hosts have room; where pages cost more than
    1, to as many as `visits` cover at the mean cost.

    Cost: one call of the policy as long as no host is full, otherwise one more for each round in
    which further hosts fill up.
    """
    room = pages.capacity
    visits = visits / float(pages.cost.mean()) if len(pages) else 0.0
    if not len(taken) and np.isinf(room).all():
        return policy.expected(pages, visits) if visits > 0 else np.zeros(len(pages))
    expected = np.zeros(len(pages))
    free = np.ones(len(pages), dtype=np.bool_)
    free[taken] = False
    left = float(visits)
    while left > 1e-9 and free.any():
        part = policy.expected(pages if free.all() else pages.take(free), left)
        load = np.bincount(pages.host[free], weights=part, minlength=len(room))
        full = load > room + 1e-9
        if not full.any():
            expected[free] = part
            break
        filled = full[pages.host] & free
        share = room / np.maximum(load, 1e-300)
        expected[filled] = (part * share[pages.host[free]])[full[pages.host[free]]]
        left -= float(expected[filled].sum())
        free &= ~filled
    return expected
