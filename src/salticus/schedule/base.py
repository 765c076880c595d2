"""The contract of spacing: expected visits become the visits of this tick."""

from __future__ import annotations

from typing import Protocol

from salticus.types import Draw, Floats, Outcomes, Pages, Tick


class Spacing(Protocol):
    """Turns expected visits per page into visits.

    Laws: draws as many rows as `expected` sums to, rounded up, but none beyond what `visits` cover
    of their `pages.cost`, and fewer only if there is no more room on the hosts; no row twice; none
    where nothing is expected; no host beyond `pages.capacity`; depends on ids, not on the order of
    rows; the same seed draws the same visits. `draw` changes nothing, so that it may be asked what
    it would draw; `keep` says that this is what is done. Who has no memory inherits the others.
    """

    def draw(self, pages: Pages, expected: Floats, visits: int, tick: Tick) -> Draw: ...

    def keep(self, pages: Pages, draw: Draw) -> None:
        """The visits drawn of these pages will be made."""

    def learn(self, outcomes: Outcomes) -> None:
        """Give back the visits that were dropped."""
