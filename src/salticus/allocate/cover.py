"""How few sources show most of the pages: a greedy set cover."""

from __future__ import annotations

import heapq

import numpy as np

from salticus.types import Ints, distinct


def cover(source: Ints, page: Ints) -> tuple[Ints, Ints]:
    """Sources, each time the one that shows the most pages which none before it does, and how many
    those are (Lefortier et al. 2013, §3.1); those that add nothing come last.

    Gains only fall as pages are taken away, so only the best by what was known is counted anew.

    >>> [column.tolist() for column in cover(np.array([7, 7, 8, 8, 8, 9]), np.arange(6) % 4)]
    [[8, 7, 9], [3, 1, 0]]
    """
    of_pair, pages = distinct_pairs(source, page)
    names, begin = np.unique(of_pair, return_index=True)
    shown = np.split(pages, begin[1:])[: len(names)]
    left = np.ones(int(page.max(initial=-1)) + 1, dtype=np.bool_)
    heap = [(-len(some), k) for k, some in enumerate(shown)]
    heapq.heapify(heap)
    order, gains = [], []
    while heap:
        claim, best = heapq.heappop(heap)
        gain = int(np.count_nonzero(left[shown[best]]))
        if gain < -claim:
            heapq.heappush(heap, (-gain, best))
            continue
        left[shown[best]] = False
        order.append(names[best])
        gains.append(gain)
    return np.array(order, dtype=np.int64), np.array(gains, dtype=np.int64)


def distinct_pairs(source: Ints, page: Ints) -> tuple[Ints, Ints]:
    """Every source and page that a link joins, once, in order."""
    many = int(page.max(initial=-1)) + 1
    both = distinct(source * many + page)
    return both // many, both % many
