"""The contract of prediction: how likely is a page still what we hold?"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from salticus.types import Outcomes, Pages, Survival


class Predictor(Protocol):
    """History and metadata → probability that each page is unchanged, ahead of its last visit.

    A predictor meets pages, and learns what group each belongs to, in `survival`; what it learns of
    a page that it has not met yet counts for that page alone.

    Laws: the survival laws; recovers a known rate under every spacing of the visits; failed and
    dropped visits teach nothing; the order of pages does not matter.
    """

    def survival(self, pages: Pages, now: datetime) -> Survival:
        """The curves of all pages; they hold until the next `learn`."""

    def learn(self, outcomes: Outcomes) -> None: ...
