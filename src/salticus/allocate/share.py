"""Ways to share visits out among pages: the first of an order, or in proportion to a weight."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from salticus.types import Floats, Ints

_SAMPLE = 4096


def first(order: NDArray[Any], visits: float, *then: NDArray[Any]) -> Floats:
    """One visit for each of the pages that come first, the lowest `order` before the others.

    Pages that tie at the cut are told apart by the next column of `then`. Those that tie in all of
    them share what is left equally, so that pages that are alike get alike and the spacing decides.
    Sums to `visits`, or to the number of pages. Columns hold no NaN. Cost: linear.

    >>> first(np.array([3, 1, 2, 2, 9]), 2.0)
    array([0. , 1. , 0.5, 0.5, 0. ])
    >>> first(np.array([3, 1, 2, 2, 9]), 2.0, np.array([0, 0, 8, 7, 0]))
    array([0., 1., 0., 1., 0.])
    """
    if visits >= len(order):
        return np.ones(len(order))
    if visits <= 0:
        return np.zeros(len(order))
    cut = ranked(order, math.ceil(visits) - 1)
    expected: Floats = (order < cut).astype(np.float64)
    tied = np.flatnonzero(order == cut)
    left = visits - float(np.count_nonzero(expected))
    expected[tied] = first(then[0][tied], left, *then[1:]) if then else left / len(tied)
    return expected


def ranked(order: NDArray[Any], rank: int) -> Any:
    """The value that sorting would put at `rank`. Cost: linear.

    A sample tells between which values it lies, so that only the rows between them are put in
    order: at ten million pages several times as fast as to partition all of them.
    """
    low, high = _around(order, rank)
    below = int(np.count_nonzero(order < low))
    few = order[(order >= low) & (order <= high)]
    if not below <= rank < below + len(few):
        return np.partition(order, rank)[rank]
    return low if low == high else np.partition(few, rank - below)[rank - below]


def _around(order: NDArray[Any], rank: int) -> tuple[Any, Any]:
    """Two values between which that of `rank` almost surely lies."""
    sample = np.sort(order[:: max(1, len(order) // _SAMPLE)])
    near = rank * len(sample) / len(order)
    apart = 4 * math.sqrt(near * (1 - near / len(sample))) + 4
    low, high = int(near - apart), int(near + apart)
    least = order.min() if low <= 0 else sample[low]
    return least, order.max() if high >= len(sample) else sample[high]


def in_turn(order: Ints, burden: Floats, visits: float) -> Floats:
    """A visit for each of the rows, in their order, until the visits are used up by their burdens;
    for the last one what is left, if that is less.

    >>> in_turn(np.array([2, 0, 1]), np.array([4.0, 1.0, 1.0]), 1.5)
    array([0.5, 0. , 1. ])
    >>> in_turn(np.array([0, 2, 1]), np.array([4.0, 1.0, 1.0]), 1.5)
    array([1., 0., 0.])
    """
    expected, each = np.zeros(len(burden)), burden[order]
    expected[order] = np.clip(visits - (np.cumsum(each) - each), 0.0, 1.0)
    return expected


def in_proportion(weights: Floats, visits: float) -> Floats:
    """Visits in proportion to `weights`, none above one; what is cut goes to the other pages.

    min(1, c·w) with the c at which they sum to `visits` (water filling). Pages of weight 0 share
    equally what is left when all others have their visit. Each round is a Newton step from the
    left on a concave function of c, so a few rounds, each linear, are enough.

    >>> in_proportion(np.array([8.0, 1.0, 1.0, 0.0]), 2.0)
    array([1. , 0.5, 0.5, 0. ])
    """
    left = min(float(visits), float(len(weights)))
    positive = int(np.count_nonzero(weights > 0))
    if positive <= left:
        return np.where(weights > 0, 1.0, (left - positive) / max(1, len(weights) - positive))
    worth, full = weights.copy(), np.empty(0, dtype=np.int64)
    while True:
        total = float(worth.sum())
        over = np.flatnonzero(worth * left > total)
        if not len(over):
            break
        worth[over], left = 0.0, left - len(over)
        full = np.concatenate([full, over])
    expected = np.minimum(worth * (left / total), 1.0)
    expected[full] = 1.0
    return expected
