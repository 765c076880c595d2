"""Exploration: a share of the visits goes to pages that a coin chooses, whatever the policy thinks.

What a policy chooses tells of the pages that it likes. Only visits drawn with a known chance, the
same for all, tell of all pages without bias, and find what a policy has written off too soon.
"""

from __future__ import annotations

import numpy as np

from salticus.allocate.capacity import fitting, optional
from salticus.coins import coins
from salticus.types import Draw, Floats, Ints, Pages, Tick

_OTHERS = 2 << 32  # planner and spacing flip coins of the same seed, page and tick


class Explore:
    """Draws each page by a coin of its own, a hash of (seed, page, tick), all with one chance.

    The chance is such that the pages drawn cost `share` of the visits on average. It holds for all
    pages that may be visited and are not pinned, also for those that must be visited anyway: if the
    coin falls on one, that visit explores. The propensity is the chance. It is a little too high
    where more coins fall than the visits or a host's capacity have room for; then the lowest coins
    count.

    >>> from salticus.testing import a_tick, blank_pages
    >>> draw = Explore(0.02, seed=1).draw(blank_pages(1000), np.array([3]), 500, a_tick())
    >>> float(draw.propensity[0])
    0.01
    """

    def __init__(self, share: float = 0.0, *, seed: int = 0) -> None:
        self.share = share
        self.seed = seed

    def draw(self, pages: Pages, taken: Ints, visits: int, tick: Tick) -> Draw:
        """Rows to explore of all the `visits` of a tick, of which `taken` rows have theirs."""
        if self.share <= 0 or visits <= 0:
            return Draw(np.empty(0, dtype=np.int64), np.empty(0))
        chance = self.chance(pages, visits)
        coin = coins(self.seed + _OTHERS, pages.ids, tick.number)
        fallen = np.flatnonzero(coin < chance)
        fallen = fallen[np.argsort(coin[fallen], kind="stable")]
        anyway = np.isin(fallen, taken)
        more = fitting(pages, fallen[~anyway], visits, taken)
        rows = np.concatenate([fallen[anyway], more])
        return Draw(rows, chance[rows])

    def chance(self, pages: Pages, visits: int) -> Floats:
        """The probability with which each page is drawn in a tick of so many visits."""
        may = optional(pages) & (pages.capacity[pages.host] > 0)
        total = float(pages.cost[may].sum())
        return np.where(may, min(1.0, self.share * visits / max(total, 1e-300)), 0.0)
