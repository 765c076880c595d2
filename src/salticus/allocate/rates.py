"""Visits of a tick shared out at one visit price: the formulas of LambdaCrawl and its kin.

Each function here takes the worth of a visit to each page (demand / cost, at least 0) and how the
page changes, and says what it asks for at any price; `spend` finds the price at which all ask for
what there is, and `spend_by_host` one for each host. What pages ask for is that at which one more
visit buys the same everywhere, μ·dF/dρ = Λ, within [0, 1]: the optimum for the objective named.
Only ratios of worth matter. Cost: linear, ten to thirty passes over two columns, no sorting.
"""

from __future__ import annotations

import math

import numpy as np

from salticus.allocate import response
from salticus.allocate.response import FIXED, HARMONIC, LINE, Asking
from salticus.types import Floats, Ints
from salticus.types.compiled import compiled

LEAST, MOST = 1e-6, 1.0 - 1e-3  # chances: at 1 the formula is 0/0, there it is all or nothing
_SLOWEST, _FASTEST = 1e-12, 1e9  # changes a tick: beyond, only rounding would tell pages apart
_DEAREST = 1e300


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
    return response.spend(asking, float(floor), float(visits))


def spend_by_host(asking: Asking, host: Ints, room: Floats, *, floor: float = 0.0) -> Floats:
    """Expected visits that sum to ``room[host]`` on each host, which has a price of its own.

    >>> half = np.full(3, 0.5)
    >>> spend_by_host(discrete(np.ones(3), half), np.array([0, 0, 1]), np.array([0.5, 0.25]))
    array([0.25, 0.25, 0.25])
    """
    return response.spend_by_host(asking, float(floor), np.ascontiguousarray(host), _column(room))
