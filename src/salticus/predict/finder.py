"""What sources promise: how many new pages, and how much these are wanted, learnt as they come."""

from __future__ import annotations

import numpy as np

from salticus.predict.harvest import GAPS, Finds, HeldPages, Yields
from salticus.predict.interest import Interest, Prior, ages, interest
from salticus.predict.links import VISITS, LinkRates, Links, SourceVisits
from salticus.types import Floats, Harvest, Ints

FIRST_DAY = Prior(profit=1.0, decay=1.0)
"""Without clicks every new page is worth one, of which half come in 17 hours."""


class Finder:
    """Learns what visits to sources find, and how often people click on what was found.

    Sources are numbered from 0. A page counts for the source on which it was seen first. Its age is
    counted from the middle of the time in which its link appeared. Nothing is known of a page while
    no copy of it is held: clicks are counted, and pages watched, only then.

    Cost: linear in visits, clicks and pages watched; `solve` in sources.
    """

    def __init__(
        self, sources: int, *, resolution: float, prior: Prior = FIRST_DAY, visits: int = VISITS
    ) -> None:
        self.prior = prior
        self.edges = ages(resolution)
        self.rates = LinkRates(visits=visits)
        self.group: Ints = np.zeros(sources, dtype=np.int64)
        bins = len(self.edges) - 1
        self.clicks_: Floats = np.zeros((sources, bins))
        self.watched_: Floats = np.zeros((sources, bins))
        self.finds = Finds(sources, resolution=resolution)
        self.yields = Yields(sources, resolution=resolution, prior=prior)
        self.solve()

    def met(self, source: Ints, shown: Floats) -> None:
        """Learn how many links sources showed at their first visits; these are old."""
        self.finds.met(source, shown)

    def visited(self, found: SourceVisits) -> None:
        """Learn what visits to sources found; no source twice."""
        self.rates.learn(found)
        self.finds.learn(found.source, found.days, found.new)

    def watch(self, pages: HeldPages, days: float) -> None:
        """Learn how often pages were clicked in so many days."""
        bins = np.searchsorted(self.edges, pages.age, side="right") - 1
        fits = np.flatnonzero((bins >= 0) & (bins < self.clicks_.shape[1]))
        at = pages.source[fits], bins[fits]
        np.add.at(self.clicks_, at, pages.clicks[fits])
        np.add.at(self.watched_, at, days / np.diff(self.edges)[bins[fits]])
        self.yields.watch(pages, days)

    def solve(self) -> None:
        """Work out what all that was learnt says of each source."""
        every = np.arange(len(self.clicks_))
        self.links_: Links = self.rates.links(every, self.group)
        self.interest_: Interest = interest(self.clicks_, self.watched_, self.edges, self.prior)
        self.yields.solve()
        self.harvest_ = Harvest(self.finds.gaps, self.finds.solve(), self.yields.by_gap(GAPS))
