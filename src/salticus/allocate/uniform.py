"""The uniform policy."""

from __future__ import annotations

import numpy as np

from salticus.types import Floats, Outcomes, Pages


class Uniform:
    """Every page gets the same share of the visits.

    The baseline of Cho and Garcia-Molina (2003), and what a cron job over a list does.

    >>> from salticus.testing import blank_pages
    >>> Uniform().expected(blank_pages(4), visits=2.0)
    array([0.5, 0.5, 0.5, 0.5])
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return np.full(len(pages), min(1.0, visits / max(1, len(pages))))

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing to learn."""
