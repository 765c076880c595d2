"""Exploration: visits drawn with a known chance, above 0 for all, tell of all pages without bias,
and find what a policy has written off too soon."""

from __future__ import annotations

import numpy as np

from salticus.allocate.capacity import fitting, optional
from salticus.types import Bools, Draw, Floats, Grant, Pages, Purpose, Tick
from salticus.types.coins import coins

_OTHERS = 2 << 32  # planner and spacing flip coins of the same seed, page and tick
_LEAST = 0.05  # p(1 − p) is taken for at least this; it is 0.25 at most


class Explore:
    """Draws each page by a coin of its own, a hash of (seed, page, tick).

    The chances are in the proportion √((1 + μ²)(p(1 − p) + 0.05)), with μ the demand of a page over
    the mean and p the probability that it has changed: where a visit tells most about freshness,
    counted by pages and by clicks alike (Neyman 1934). As each visit has its chance as a
    propensity, figures weighted by that are right even if the predictor is not.

    Together the pages drawn cost `share` of the visits on average. If the coin falls on a page that
    must be visited anyway, that visit explores. Chances are a little too high where more coins fall
    than the visits or a host's capacity have room for; then the lowest coins count.

    >>> from salticus.testing import a_grant, a_tick, blank_pages
    >>> draw = Explore(0.02, seed=1).draw(blank_pages(1000), a_grant(500), a_tick())
    >>> float(draw.propensity[0].round(6))
    0.01
    """

    purpose = Purpose.EXPLORE

    def __init__(self, share: float = 0.0, *, seed: int = 0) -> None:
        self.share = share
        self.seed = seed

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        visits, taken = grant.visits, grant.taken
        if self.share <= 0 or visits <= 0:
            return Draw(np.empty(0, dtype=np.int64), np.empty(0))
        chance = self.chance(pages, grant)
        coin = coins(self.seed + _OTHERS, pages.ids, tick.number)
        fallen = np.flatnonzero(coin < chance)
        fallen = fallen[np.argsort(coin[fallen] / chance[fallen], kind="stable")]
        anyway = np.isin(fallen, taken)
        more = fitting(pages, fallen[~anyway], visits, taken)
        rows = np.concatenate([fallen[anyway], more])
        return Draw(rows, chance[rows])

    def chance(self, pages: Pages, grant: Grant) -> Floats:
        """The probability with which each page is drawn in a tick that may spend the grant."""
        visits: float = grant.visits
        if pages.prospects is not None:  # visits may be kept for a day, and are shared once
            visits = min(visits, grant.per_tick)
        wanted = _telling(pages)
        wanted[~explorable(pages)] = 0.0
        wanted /= max(float(wanted @ pages.cost), 1e-300)
        return _capped(wanted, pages.cost, self.share * visits)


def explorable(pages: Pages) -> Bools:
    """The pages on which a coin may fall: those that are optional, on hosts that take visits."""
    found, room = optional(pages), pages.capacity > 0
    return found if room.all() else found & room[pages.host]


def _telling(pages: Pages) -> Floats:
    """How much a visit to each page tells about freshness, by pages and by clicks together."""
    mean = float(pages.demand.mean()) if len(pages) else 0.0
    weight = pages.demand / mean if mean > 0 else 0.0 * pages.demand
    weight *= weight  # in place from here on: there may be millions of pages
    weight += 1.0
    if pages.survival is not None:
        spread = 1.0 - pages.stale
        spread *= pages.stale
        spread += _LEAST
        weight *= spread
    return np.sqrt(weight, out=weight)


def _capped(wanted: Floats, cost: Floats, total: float) -> Floats:
    """Chances of 1 at most in the proportions wanted; they cost `total`, if that many can be had.

    >>> _capped(np.array([0.6, 0.3, 0.1]), np.ones(3), 2.0).round(3)
    array([1.  , 0.75, 0.25])
    """
    chance = np.minimum(wanted * total, 1.0)
    while (full := chance >= 1.0).any() and not (full | (wanted <= 0)).all():
        left = total - float(cost[full].sum())
        scale = max(left, 0.0) / float((wanted * cost)[~full].sum())
        more = np.where(full, 1.0, np.minimum(wanted * scale, 1.0))
        if np.array_equal(more, chance):
            break
        chance = more
    return chance
