"""What is behind every index policy: the function g, and the pages that are worth their visit.

A visit τ days after the last one is worth V(τ) = μ[∫₀^τ S − τS(τ)]. With a constant change rate
that is (μ/Δ)·g(Δτ), so that `g_inverse` turns a price into an interval (ALGORITHMS §0).
"""

from __future__ import annotations

import math

import numpy as np

from salticus.allocate.share import first, ranked
from salticus.compiled import compiled
from salticus.types import Floats, Ints

_SMALL = 0.1  # below it series are exact to the last digits, above it closed forms are


def g(x: Floats) -> Floats:
    """g(x) = 1 − (1+x)·e^(−x): grows from 0 at 0 to 1 at infinity. Exact to 1e-14, relative.

    >>> g(np.array([0.0, 1e-8, 1.0, np.inf]))
    array([0.00000000e+00, 4.99999997e-17, 2.64241118e-01, 1.00000000e+00])
    """
    return _g(np.ascontiguousarray(x, dtype=np.float64))


def g_inverse(y: Floats) -> Floats:
    """The x at which g(x) = y: 0 up to y = 0, and infinity ("never") from y = 1 on.

    x = −1 − W₋₁(−(1−y)/e) with Lambert's W. Exact to 1e-14, relative.

    >>> g_inverse(np.array([0.0, 0.5, 1.0])).round(6)
    array([0.      , 1.678347,      inf])
    """
    return _g_inverse(np.ascontiguousarray(y, dtype=np.float64))


@compiled
def _g(x: Floats) -> Floats:
    out = np.empty_like(x)
    for k in range(len(x)):
        out[k] = g_at(x[k])
    return out


@compiled
def _g_inverse(y: Floats) -> Floats:
    out = np.empty_like(y)
    for k in range(len(y)):
        out[k] = g_inverse_at(y[k])
    return out


@compiled
def g_at(x: float) -> float:
    """`g` of one number, for compiled loops."""
    if x <= 0.0:
        return 0.0
    if math.isinf(x):
        return 1.0
    if x > _SMALL:
        return -math.expm1(-x) - x * math.exp(-x)
    tail = 1.0  # e^(−x)·(x²/2! + x³/3! + …): no two terms cancel
    for k in range(10, 2, -1):
        tail = 1.0 + tail * x / k
    return 0.5 * x * x * tail * math.exp(-x)


@compiled
def g_inverse_at(y: float) -> float:
    """`g_inverse` of one number, for compiled loops.

    With L = −ln(1−y) it solves x − ln(1+x) = L, which loses no digits at either end. The start is
    the series of W around its branch point, or x = L + ln(1+x) far from it; one or two steps of
    Halley's method follow, each of which triples the digits.
    """
    if y <= 0.0:
        return 0.0
    if y >= 1.0:
        return math.inf
    goal = -math.log1p(-y)
    p = math.sqrt(2.0 * goal)
    if p < 2.0:
        x = p * (1.0 + p * (1 / 3 + p * (1 / 36 + p * (-1 / 270 + p * _beyond(p)))))
    else:
        x = goal + math.log1p(goal + math.log1p(goal + math.log1p(goal)))
    if p < _SMALL:
        return x
    for _ in range(1 if p < 0.8 else 2):
        miss = x - math.log1p(x) - goal
        slope = x / (1.0 + x)
        x -= miss / (slope - 0.5 * miss / (slope * (1.0 + x) * (1.0 + x)))
    return x


@compiled
def _beyond(p: float) -> float:
    """The terms from p⁵ on of −1 − W₋₁(−e^(−1−p²/2)) (Corless et al. 1996)."""
    return 1 / 4320 + p * (1 / 17010 + p * (-139 / 5443200 + p * (1 / 204120)))


def cut(worth: Floats, visits: float) -> float:
    """The visit price at which `visits` pages are taken: the worth of the last of them.

    0 if there are visits for all pages, infinity if there are none. Cost: linear.

    >>> cut(np.array([3.0, 1.0, 2.0, 5.0]), 2.0)
    3.0
    """
    if visits <= 0:
        return math.inf
    return -float(ranked(-worth, math.ceil(visits) - 1)) if visits < len(worth) else 0.0


def take_best(worth: Floats, visits: float) -> Floats:
    """One visit for each page above the price; pages at the price share what is left.

    Sums to `visits`, or to the number of pages. Pages of infinite worth, such as those that were
    never visited, come first. Cost: linear.

    >>> take_best(np.array([3.0, 1.0, 2.0, 2.0]), 2.0)
    array([1. , 0. , 0.5, 0.5])
    """
    return first(-worth, visits)


def by_host(worth: Floats, host: Ints, room: Floats) -> Floats:
    """The best pages of every host, `room[host]` visits each; pages at a host's price share.

    The same as `take_best` for each host alone, for all hosts at once. Cost: linear.

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
    """`take_best` of some rows, into `out`."""
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
