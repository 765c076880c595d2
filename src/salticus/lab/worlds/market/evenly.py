"""Chance without luck: draws whose shares come out right, however heavy a few of the drawn are."""

from __future__ import annotations

import numpy as np

from salticus.types import Floats, Ints

_GOLDEN = (5**0.5 - 1) / 2
_TIERS = 8  # of merchants, by place


def even(count: int, rng: np.random.Generator) -> Floats:
    """Numbers in [0, 1) of which every stretch is evenly spread: multiples of the golden ratio.

    >>> np.bincount((5 * even(60, np.random.default_rng(0))).astype(int)).tolist()
    [12, 12, 12, 12, 12]
    """
    return np.asarray((np.arange(count) * _GOLDEN + rng.random()) % 1.0, dtype=np.float64)


def _along(sizes: Ints, order: Ints) -> Floats:
    """A number in (0, 1) for each merchant that is uniform over the *offers*.

    Drawn one by one, a few big merchants would decide what most offers are like. So the merchants
    are laid along a line of offers in the given order; each gets the place of its middle.

    >>> _along(np.array([1, 1, 2]), np.array([2, 0, 1])).tolist()
    [0.625, 0.875, 0.25]
    """
    places = np.empty(len(sizes))
    places[order] = (np.cumsum(sizes[order]) - sizes[order] / 2) / sizes.sum()
    return places


def classes(weights: Floats, sizes: Ints, rng: np.random.Generator) -> Ints:
    """A class for each merchant, so that the classes hold their shares of the offers."""
    ends = np.cumsum(weights) / weights.sum()
    places = _along(sizes, rng.permutation(len(sizes)))
    return np.searchsorted(ends[:-1], places, side="right")


def even_places(sizes: Ints, group: Ints, rng: np.random.Generator) -> Floats:
    """Places along the line of offers that are evenly spread within every group of merchants."""
    line = np.lexsort((rng.random(len(sizes)), group))
    turn = np.empty(len(sizes))
    turn[line] = even(len(sizes), rng)
    return _along(sizes, np.argsort(turn))


def dealt(weights: Floats, sizes: Ints, places: Floats, rng: np.random.Generator) -> Ints:
    """The same, so that the classes hold their shares of the offers at all `places` alike.

    Merchants come in order of place, beginning anywhere; each goes to the class that lacks most.
    """
    tier = (_TIERS * places).astype(np.int64)
    order = np.roll(np.lexsort((rng.random(len(sizes)), tier)), rng.integers(len(sizes)))
    classes, given, total = np.empty(len(sizes), dtype=np.int64), np.zeros(len(weights)), 0
    for merchant in order:
        total += sizes[merchant]
        classes[merchant] = chosen = int(np.argmax(weights * total - given))
        given[chosen] += sizes[merchant]
    return classes
