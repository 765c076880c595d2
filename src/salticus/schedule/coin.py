"""Coin spacing: every visit is a coin of its own, and yet exactly so many are made."""

from __future__ import annotations

import math

import numpy as np

from salticus.schedule.base import Spacing
from salticus.schedule.even import highest, paid
from salticus.types import Draw, Floats, Pages, Tick
from salticus.types.coins import coins

_OTHERS = 1 << 32  # the planner flips coins of the same seed, page and tick


class Coin(Spacing):
    """Draws as many pages as visits, each with the probability expected of it, tick by tick anew.

    Pareto sampling (Rosén 1997): with u a hash of (seed, page, tick) and π the expected visits,
    those with the smallest odds ratio u(1 − π) / (1 − u)π are visited. π = 1 is always drawn,
    π = 0 never. For equal π the probability is exact. Otherwise it is off by less than 0.001 where
    Σπ(1 − π) is above 5, as it is for more than a few pages; by 0.005 above 2, 0.02 above 1, and
    about 0.08 at worst. If the sum of `expected` is not the number drawn, π is scaled to it first.
    The propensity is π; where a host is full it is only near.

    Coins of rate ρ keep a page that changes at rate Δ fresh for ρ/(ρ + Δ) of the time, less than
    visits at even intervals do. Cost: linear in pages as long as no host is full.

    >>> from salticus.testing import a_tick, blank_pages
    >>> draw = Coin(seed=1).draw(blank_pages(4), np.array([1.0, 0.5, 0.5, 0.0]), 2, a_tick())
    >>> 0 in draw.rows, 3 in draw.rows, len(draw.rows)
    (True, False, 2)
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def draw(self, pages: Pages, expected: Floats, visits: int, tick: Tick) -> Draw:
        total = float(expected.sum())
        wanted = min(visits, math.ceil(total - 1e-9))
        some = np.flatnonzero(expected > 0)
        chance = np.clip(expected[some] * (wanted / max(total, 1e-300)), 1e-300, 1.0)
        score = np.full(len(pages), -np.inf)
        score[some] = _score(chance, coins(self.seed + _OTHERS, pages.ids[some], tick.number))
        near = -1.0 - 6.0 / math.sqrt(wanted + 1.0)  # a ratio below 1, u < π, is as common
        rows = paid(score, highest(score, expected > 0, wanted, pages, near=near), visits, pages)
        return Draw(rows, chance[np.searchsorted(some, rows)], expected=expected)


def _score(chance: Floats, u: Floats) -> Floats:
    """The order of drawing, highest first: pages that are certain, then by the odds ratio."""
    u = np.maximum(u, 2.0**-54)
    with np.errstate(over="ignore"):
        ratio = u * (1.0 - chance) / ((1.0 - u) * chance)
    return np.where(chance >= 1.0 - 1e-12, 1.0 - u, -ratio)
