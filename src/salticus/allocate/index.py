"""The best pages of every host by the worth of a visit, as compiled loops."""

from __future__ import annotations

import math

import numpy as np

from salticus.types import Floats, Ints
from salticus.types.compiled import compiled


def by_host(worth: Floats, host: Ints, room: Floats) -> Floats:
    """The best pages of every host, `room[host]` visits each; pages at a host's price share.

    The same as `share.first` for each host alone, highest worth first, for all hosts at once. Pages
    of infinite worth, such as those that were never visited, come first. Cost: linear.

    >>> by_host(np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 0, 0, 1]), np.array([1.5, 9.0]))
    array([1. , 0. , 0.5, 1. ])
    """
    return _by_host(worth, host, room)


@compiled
def _by_host(worth: Floats, host: Ints, room: Floats) -> Floats:
    ends = np.zeros(len(room) + 1, dtype=np.int64)
    for h in host:
        ends[h + 1] += 1
    ends = np.cumsum(ends)
    free, rows = ends.copy(), np.empty(len(worth), dtype=np.int64)
    for row in range(len(worth)):
        rows[free[host[row]]] = row
        free[host[row]] += 1
    out = np.zeros(len(worth))
    for h in range(len(room)):
        _take(worth, rows[ends[h] : ends[h + 1]], room[h], out)
    return out


@compiled
def _take(worth: Floats, rows: Ints, visits: float, out: Floats) -> None:
    """The best of some rows, into `out`."""
    if visits >= len(rows):
        out[rows] = 1.0
        return
    if visits <= 0.0:
        return
    price = np.partition(-worth[rows], math.ceil(visits) - 1)[math.ceil(visits) - 1]
    above = tied = 0
    for row in rows:
        above += -worth[row] < price
        tied += -worth[row] == price
    for row in rows:
        if -worth[row] < price:
            out[row] = 1.0
        elif -worth[row] == price:
            out[row] = (visits - above) / tied
