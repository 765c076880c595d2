"""The contract of allocation: where the next visits buy the most."""

from __future__ import annotations

from typing import Protocol

from salticus.types import Floats, Outcomes, Pages


class Policy(Protocol):
    """Columns of all pages and visits to spend → expected visits per page in the coming tick.

    Laws: each in [0, 1]; they sum to `visits`, or to the number of pages if that is less; a
    permutation of the pages permutes the answer; pages that are alike get alike; never NaN; to be
    asked again in the same tick, or about some of the pages only, changes nothing.

    A policy that may leave visits unspent, as a cron job does, says so with a class attribute
    ``spends = False``; what it expects then sums to `visits` at most.
    """

    def expected(self, pages: Pages, visits: float) -> Floats: ...

    def learn(self, outcomes: Outcomes) -> None: ...
