"""The contract of prediction: how likely is a page still what we hold?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from salticus.types import Columns, Floats, Outcomes, Pages, Survival


@dataclass(frozen=True, slots=True)
class Evidence(Columns):
    """What change rates rest on: Gamma(a, b) posteriors, and the priors that they began with.

    The mean a/b is that of the prior, a₀/b₀, at weight b₀/b, and for the rest what was seen of the
    page itself: a − a₀ changes in b − b₀ days, older ones counting for less.
    """

    a: Floats
    b: Floats
    prior_a: Floats
    prior_b: Floats


class Predictor(Protocol):
    """History and metadata → probability that each page is unchanged, ahead of its last visit.

    A predictor meets pages, and learns what group each belongs to, in `survival`; what it learns of
    a page that it has not met yet counts for that page alone.

    Laws: the survival laws; recovers a known rate under every spacing of the visits; failed and
    dropped visits teach nothing; the order of pages does not matter.

    For explanations a predictor may have ``evidence(ids) -> Evidence``, ``paces(ids)``, how fast
    the pages change in each of the 168 hours of the week from Monday 00:00 UTC on (1 on average),
    and ``contributions(page) -> list[tuple[str, float]]``, what each feature adds to a model's
    score of a page, the largest part first.
    """

    def survival(self, pages: Pages, now: datetime) -> Survival:
        """The curves of all pages; they hold until the next `learn`."""

    def learn(self, outcomes: Outcomes) -> None: ...
