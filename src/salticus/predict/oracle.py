"""The change rates that pages will turn out to have: what better estimates could bring at most."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from salticus.predict.poisson import PoissonSurvival
from salticus.types import Floats, Ints, Outcomes, Pages, Survival

_LEAST = 1e-4  # changes a day: a page that will not change may still be visited some time


class Oracle:
    """Knows how often each page changes on average, and nothing of when.

    `ids` are ascending, `rates` changes a day. It learns nothing, for it knows.
    """

    def __init__(self, ids: Ints, rates: Floats) -> None:
        self.ids = ids
        self.rates = np.maximum(rates, _LEAST)

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return PoissonSurvival(self.rates[np.searchsorted(self.ids, pages.ids)])

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing."""
