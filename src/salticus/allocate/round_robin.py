"""Round robin: the page that has waited longest comes next."""

from __future__ import annotations

import numpy as np

from salticus.allocate.share import first
from salticus.types import Floats, Outcomes, Pages


class RoundRobin:
    """The oldest visit first, and pages never visited before all others.

    What a queue does to which every page returns once it is visited. Cost: linear in pages.

    >>> from dataclasses import replace
    >>> from salticus.testing import blank_pages
    >>> last_visit = np.array(["2026-01-02", "NaT", "2026-01-01"], dtype="M8[us]")
    >>> RoundRobin().expected(replace(blank_pages(3), last_visit=last_visit), visits=2.0)
    array([0., 1., 1.])
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return first(pages.last_visit.view(np.int64), visits)  # NaT is the lowest integer

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing to learn: the pages know when they were last visited."""
