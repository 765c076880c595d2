"""Chance without a stream: hashes of (seed, page, tick).

Order, restarts and partitions do not change a decision, because no draw depends on another.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from salticus.types import Floats, Ints

_MASK = (1 << 64) - 1
_BLOCK = 1 << 15  # ids at a time, so that what lies between stays in the processor's cache


def coins(seed: int, ids: Ints, tick: int) -> Floats:
    """A number in [0, 1) for each id, uniform and independent across seeds, ids and ticks.

    >>> coins(7, np.array([1, 2]), 0) == coins(7, np.array([2, 1]), 0)[::-1]
    array([ True,  True])
    """
    salt = _salt(seed, tick)
    chances = np.empty(len(ids))
    for start in range(0, len(ids), _BLOCK):
        some = ids[start : start + _BLOCK].astype(np.uint64) + salt
        mixed = _mix(_mix(some) ^ salt) >> np.uint64(11)
        np.multiply(mixed, 2.0**-53, out=chances[start : start + _BLOCK])
    return chances


@lru_cache(maxsize=64)
def _salt(seed: int, tick: int) -> np.uint64:
    number = (seed * 0x9E3779B97F4A7C15 + tick + 1) & _MASK
    return np.uint64(_mix(np.array([number], np.uint64))[0])


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014); wraps around on purpose."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
