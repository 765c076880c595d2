"""The contract of spacing: expected visits become the visits of this tick."""

from __future__ import annotations

from typing import Protocol

from salticus.types import Draw, Floats, Outcomes, Pages, Tick


class Spacing(Protocol):
    """Turns expected visits per page into visits.

    Laws: draws exactly `visits` rows, or as many as have `expected` > 0 and room on their host if
    that is fewer; no row twice; no host beyond `pages.capacity`; depends on ids, not on the order
    of rows; the same seed draws the same visits.
    """

    def draw(self, pages: Pages, expected: Floats, visits: int, tick: Tick) -> Draw: ...

    def learn(self, outcomes: Outcomes) -> None:
        """Give back the visits that were dropped."""
