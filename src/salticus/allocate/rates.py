"""Visits of a tick shared out at one visit price: the formulas of LambdaCrawl and its kin.

What a page asks for at a price Λ is that at which one more visit buys the same everywhere,
μ·dF/dρ = Λ, within [0, 1]: the optimum for the objective named. `discrete`, `continuous`, `fixed`
and `harmonic` take the worth μ of a visit to each page (demand / cost, at least 0; only ratios
matter) and how the page changes; `spend` finds the price at which all ask for what there is, and
`spend_by_host` one for each host. Cost: linear, ten to thirty passes over two columns, no sorting.

A page's visits ρ grow with s = 1/√Λ. Its numbers a and b and the form say how:

    LINE      ρ = a·s − b
    HARMONIC  ρ = b/2·(√(1 + 4(a·s)²) − 1)
    FIXED     ρ = b / g⁻¹(1/(a·s)²) with g(x) = 1 − (1+x)e^(−x), and 0 up to a·s = 1

each within [low, 1]. A page with a = 0 asks for nothing at any price; all others have b > 0, but
for LINE, where b may be 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from salticus.types import Floats, Ints
from salticus.types.compiled import compiled

LINE, HARMONIC, FIXED = 0, 1, 2
LEAST, MOST = 1e-6, 1.0 - 1e-3  # chances: at 1 the formula is 0/0, there it is all or nothing
_SLOWEST, _FASTEST = 1e-12, 1e9  # changes a tick: beyond, only rounding would tell pages apart
_DEAREST = 1e300

_BLOCK = 512  # sums of blocks are added up, so that rounding does not grow with the pages
_PASSES = 200
_SAMPLE = 4096
_EXACT = 1e-13  # of the visits: what may be amiss before rounding is shared out
_FEW = 1e-200  # visits that are none
_MUCH = 1e100
_RAMP = 1e-10  # FIXED leaps to b/26 within rounding of a·s = 1; here it climbs that far in this
_STEEP = 1.0 / (25.61414656703702 * _RAMP)


class Asking(NamedTuple):
    """Pages that compete for visits: the form, and the numbers a and b of each."""

    form: int
    a: Floats
    b: Floats


def discrete(worth: Floats, chance: Floats) -> Asking:
    """Binary freshness, in steps: Σ μ·ρ/(p + ρ(1−p)), where p is the chance of change in a tick.

    ρ = (√(μp/Λ) − p)/(1−p) (Azar et al. 2018; Han et al. 2020, Table 2; ALGORITHMS §2.2). It is
    a = √(μp)/(1−p) and b = p/(1−p), the odds.

    >>> spend(discrete(np.array([1.0, 1.0, 9.0]), np.array([0.0, 0.5, 0.5])), 0.8)
    array([0. , 0. , 0.8])
    """
    return Asking(LINE, *_odds(_column(worth), _column(chance)))


def continuous(worth: Floats, changes: Floats) -> Asking:
    """Binary freshness, visits and changes at random times: Σ μ·ρ/(ρ + Δ), Δ changes a tick.

    ρ = √(μΔ/Λ) − Δ (Azar et al. 2018; ALGORITHMS §2.1).
    """
    return Asking(LINE, *_roots(_column(worth), _column(changes), 0.5))


def fixed(worth: Floats, changes: Floats) -> Asking:
    """Binary freshness, visits at fixed intervals: Σ μ·(ρ/Δ)(1 − e^(−Δ/ρ)), Δ changes a tick.

    ρ = Δ/g⁻¹(ΛΔ/μ) (Cho and Garcia-Molina 2003; ALGORITHMS §3).
    """
    return Asking(FIXED, *_roots(_column(worth), _column(changes), -0.5))


def harmonic(worth: Floats, changes: Floats) -> Asking:
    """Harmonic staleness, visits at random times: −Σ μ·ln(1 + Δ/ρ), Δ changes a tick.

    ρ = (Δ/2)(√(1 + 4μ/(ΛΔ)) − 1) (Kolobov et al. 2019; ALGORITHMS §4.1).
    """
    return Asking(HARMONIC, *_roots(_column(worth), _column(changes), -0.5))


def proportional(weights: Floats) -> Asking:
    """Visits in proportion to a weight, none above one.

    >>> spend(proportional(np.array([8.0, 1.0, 1.0, 0.0])), 2.0)
    array([1. , 0.5, 0.5, 0. ])
    """
    return Asking(LINE, _column(weights), np.zeros(len(weights)))


def _column(values: Floats) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)


@compiled
def _odds(worth: Floats, chance: Floats) -> tuple[Floats, Floats]:
    a, b = np.zeros(len(worth)), np.ones(len(worth))
    for i in range(len(worth)):
        if worth[i] > 0.0 and chance[i] > 0.0:
            p = min(max(chance[i], LEAST), MOST)
            b[i] = p / (1.0 - p)
            a[i] = math.sqrt(min(worth[i], _DEAREST) * p) / (1.0 - p)
    return a, b


@compiled
def _roots(worth: Floats, changes: Floats, power: float) -> tuple[Floats, Floats]:
    """a = √μ·Δ^power, power ±1/2, and b = Δ; a = 0 without worth or change."""
    a, b = np.zeros(len(worth)), np.ones(len(worth))
    for i in range(len(worth)):
        if worth[i] > 0.0 and changes[i] > 0.0:
            b[i] = min(max(changes[i], _SLOWEST), _FASTEST)
            root = math.sqrt(b[i])
            a[i] = math.sqrt(min(worth[i], _DEAREST)) * (root if power > 0.0 else 1.0 / root)
    return a, b


def spend(asking: Asking, visits: float, *, floor: float = 0.0) -> Floats:
    """Expected visits, in [0, 1], that sum to `visits` (or to the number of pages, if less).

    No page gets less than `floor` of an equal share. Pages that ask for nothing at any price share
    equally what is left when all others have a full visit.
    """
    return _spend(asking, float(floor), float(visits))


def spend_by_host(asking: Asking, host: Ints, room: Floats, *, floor: float = 0.0) -> Floats:
    """Expected visits that sum to ``room[host]`` on each host, which has a price of its own.

    >>> half = np.full(3, 0.5)
    >>> spend_by_host(discrete(np.ones(3), half), np.array([0, 0, 1]), np.array([0.5, 0.25]))
    array([0.25, 0.25, 0.25])
    """
    return _spend_by_host(asking, float(floor), np.ascontiguousarray(host), _column(room))


def g_inverse(y: Floats) -> Floats:
    """The x at which g(x) = 1 − (1+x)e^(−x) is y: 0 up to y = 0, infinity ("never") from 1 on.

    x = −1 − W₋₁(−(1−y)/e) with Lambert's W (ALGORITHMS §0). Exact to 1e-13, relative.

    >>> g_inverse(np.array([0.0, 0.5, 1.0])).round(6)
    array([0.      , 1.678347,      inf])
    """
    return _g_inverse(np.ascontiguousarray(y, dtype=np.float64))


@compiled
def _g_inverse(y: Floats) -> Floats:
    x = np.zeros(len(y))
    for k in range(len(y)):
        if y[k] >= 1.0:
            x[k] = math.inf
        elif y[k] > 0.0:
            x[k] = _root(-math.log1p(-y[k]))
    return x


def intervals(rates: Floats, demand: Floats, price: float) -> Floats:
    """Days between visits that a visit price buys under known change rates: τ = g⁻¹(ΛΔ/μ)/Δ.

    A page is due when V(τ) = μ[∫₀^τ S − τS(τ)] reaches the price Λ; infinity if it never does
    (ALGORITHMS §0 and §3).

    >>> intervals(np.array([1.0, 1.0, 0.0]), np.array([2.0, 0.4, 9.0]), 0.5).round(3)
    array([0.961,   inf,   inf])
    """
    days = np.full(len(rates), np.inf)
    some = np.flatnonzero((rates > 0.0) & (demand > 0.0))
    days[some] = g_inverse(price * rates[some] / demand[some]) / rates[some]
    return days


@compiled
def inverse_g(z: float) -> float:
    """x with g(x) = 1/z², for z > 1: exact also where 1/z² is nearly 1."""
    near = z < 1.5
    return _root(math.log(z / (z - 1.0) * (z / (z + 1.0))) if near else -math.log1p(-1.0 / (z * z)))


@compiled
def _root(goal: float) -> float:
    """The x at which x − ln(1+x) = `goal`, so that 1 − g(x) = e^(−goal).

    The start is the series of W around its branch point, or x = goal + ln(1+x) far from it; one or
    two steps of Halley's method follow, each of which triples the digits.
    """
    p = math.sqrt(2.0 * goal)
    if p < 2.0:
        x = p * (1.0 + p * (1 / 3 + p * (1 / 36 + p * (-1 / 270 + p * _beyond(p)))))
    else:
        x = goal + math.log1p(goal + math.log1p(goal + math.log1p(goal)))
    if p < 0.1:
        return x
    for _ in range(1 if p < 0.8 else 2):
        miss, slope = x - math.log1p(x) - goal, x / (1.0 + x)
        x -= miss / (slope - 0.5 * miss / (slope * (1.0 + x) * (1.0 + x)))
    return x


@compiled
def _beyond(p: float) -> float:
    """The terms from p⁵ on of −1 − W₋₁(−e^(−1−p²/2)) (Corless et al. 1996)."""
    return 1 / 4320 + p * (1 / 17010 + p * (-139 / 5443200 + p * (1 / 204120)))


@compiled
def asked(form: int, a: float, b: float, s: float) -> float:
    """Visits that a page asks for, not yet within its limits."""
    x = min(a * s, _MUCH)
    if form == LINE:
        return x - b
    if form == HARMONIC:
        return b * x * (2.0 * x / (1.0 + math.sqrt(1.0 + 4.0 * x * x)))
    if x < 1.0 + _RAMP:
        return b * _STEEP * (x - 1.0)
    return b / inverse_g(x)


@compiled
def needed(form: int, a: float, b: float, rate: float) -> float:
    """The s at which a page asks for `rate`: the inverse of `asked`."""
    if form == LINE:
        return (rate + b) / a
    if form == HARMONIC:
        return math.sqrt(rate / b) * math.sqrt(rate / b + 1.0) / a
    x = b / rate
    if x * _STEEP * _RAMP > 1.0:
        return (1.0 + 1.0 / (x * _STEEP)) / a
    g = x * x * (0.5 - x / 3.0) if x < 1e-5 else -math.expm1(math.log1p(x) - x)
    return 1.0 / (a * math.sqrt(g))


@compiled
def total(pages: Asking, low: float, s: float) -> float:
    """Visits that all pages ask for."""
    form, a, b = pages
    every = 0.0
    for start in range(0, len(a), _BLOCK):
        block = 0.0
        for i in range(start, min(start + _BLOCK, len(a))):
            block += min(max(asked(form, a[i], b[i], s), low), 1.0)
        every += block
    return every


@compiled
def bounds(pages: Asking, rate: float) -> tuple[float, float]:
    """An s below which no page asks for `rate`, and one above which all do; not quite the closest,
    since `needed` and `asked` round apart."""
    form, a, b = pages
    first, last = math.inf, 0.0
    for i in range(len(a)):
        if a[i] > 0.0:
            s = needed(form, a[i], b[i], rate)
            first, last = min(first, s), max(last, s)
    return first * (1.0 - 1e-9), last * (1.0 + 1e-9)


@compiled
def squeeze(pages: Asking, low: float, visits: float, s: float, end: float) -> float:
    """A point on the way from `s` to `end`, as near to `s` as may be, on the other side of the s
    at which `visits` are asked for."""
    width = 1e-15
    while width < 1e-3:
        near = s * (1.0 - width) if end < s else s * (1.0 + width)
        if near <= end if end < s else near >= end:
            break
        off = total(pages, low, near) - visits
        if off <= 0.0 if end < s else off >= 0.0:
            return near
        width *= 30.0
    return end


@compiled
def guess(pages: Asking, low: float, visits: float, lo: float, hi: float) -> float:
    """Where to begin: among many pages, about where a sample of them has its price."""
    form, a, b = pages
    stride = len(a) // _SAMPLE
    if stride > 8:
        some = Asking(form, a[::stride].copy(), b[::stride].copy())
        for _ in range(14):
            s = math.sqrt(lo) * math.sqrt(hi)
            more = total(some, low, s) * len(a) > visits * len(some.a)
            lo, hi = (lo, s) if more else (s, hi)
    return math.sqrt(lo) * math.sqrt(hi)


@compiled
def close_in(pages: Asking, low: float, visits: float, lo: float, hi: float) -> tuple[float, float]:
    """An s at which too few visits are asked for, and one close above it at which too many are.

    Secant steps, which are exact once both points lie on one piece of a LINE; a geometric halving
    whenever a step leaves the bracket, or two have not halved what is amiss.
    """
    s, before, was, earlier = guess(pages, low, visits, lo, hi), 0.0, -visits, math.inf
    for _ in range(_PASSES):
        off = total(pages, low, s) - visits
        if abs(off) <= _EXACT * visits:
            far = squeeze(pages, low, visits, s, lo if off > 0.0 else hi)
            return min(s, far), max(s, far)
        lo, hi = (lo, s) if off > 0.0 else (s, hi)
        if hi - lo <= 4e-16 * hi:
            break
        slow = abs(off) > 0.5 * earlier
        step = off * (s - before) / (was - off) if was != off else math.inf
        before, was, earlier, s = s, off, abs(was), s + step
        if slow or not lo < s < hi:
            s = math.sqrt(lo) * math.sqrt(hi)
    return lo, hi


@compiled
def between(pages: Asking, low: float, visits: float, lo: float, hi: float) -> Floats:
    """What pages ask for from `lo` to `hi`, mixed so that it sums to `visits`."""
    form, a, b = pages
    few, many = total(pages, low, lo), total(pages, low, hi)
    part = min(max((visits - few) / (many - few), 0.0), 1.0) if many > few else 0.0
    rates = np.empty(len(a))
    for i in range(len(a)):
        least = min(max(asked(form, a[i], b[i], lo), low), 1.0)
        most = min(max(asked(form, a[i], b[i], hi), low), 1.0)
        rates[i] = least + part * (most - least)
    return rates


@compiled
def _spend(pages: Asking, floor: float, visits: float) -> Floats:
    n, some = len(pages.a), 0
    for i in range(n):
        some += pages.a[i] > 0.0
    if visits >= n or visits < _FEW:
        return np.full(n, 1.0 if visits >= n else 0.0)
    low = floor * visits / n
    left = visits - low * (n - some)
    if left >= some:
        return np.where(pages.a > 0.0, 1.0, (visits - some) / max(n - some, 1))
    lo, hi = bounds(pages, left / some)
    lo, hi = close_in(pages, low, visits, lo, hi)
    return between(pages, low, visits, lo, hi)


@compiled
def rows_by_host(host: Ints, hosts: int) -> tuple[Ints, Ints]:
    """The rows host by host, and where those of each begin; the last entry is their end."""
    begin = np.zeros(hosts + 1, dtype=np.int64)
    for i in range(len(host)):
        begin[host[i] + 1] += 1
    begin = np.cumsum(begin)
    rows, place = np.empty(len(host), dtype=np.int64), begin[:-1].copy()
    for i in range(len(host)):
        rows[place[host[i]]] = i
        place[host[i]] += 1
    return rows, begin


@compiled
def _spend_by_host(pages: Asking, floor: float, host: Ints, room: Floats) -> Floats:
    rows, begin = rows_by_host(host, len(room))
    rates = np.zeros(len(host))
    for h in range(len(room)):
        own = rows[begin[h] : begin[h + 1]]
        if len(own):
            mine = Asking(pages.form, pages.a[own], pages.b[own])
            rates[own] = _spend(mine, floor, room[h])
    return rates
