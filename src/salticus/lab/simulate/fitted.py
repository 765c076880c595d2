"""A fitted rhythm as simulations have it: it knows itself when pages answered last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from salticus.models.traits import Traits
from salticus.predict.fitted import Fitted, FittedSurvival
from salticus.predict.kin import Kin
from salticus.predict.roster import Roster
from salticus.predict.worth import between
from salticus.types import Floats, Ints, Outcomes, Pages, Times
from salticus.types.dates import DAY_US
from salticus.types.state import State, part_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSurvival(FittedSurvival):
    """A fitted curve that knows when each page answered last: `seen`, µs since 1970."""

    seen: Ints

    def own(self, ages: Floats) -> Floats:
        """Own time since `seen`, days; `ages` count from the last answer, or what the world calls
        one: a page that says it is gone is as old as its last value."""
        late = np.where((self.last >= 0) & (self.seen < self.last), self.last - self.seen, 0)
        return self._own_since(self.last - late, np.ascontiguousarray(ages + late / DAY_US))

    def rates(self) -> Floats:
        """Changes a day, at the pace of the day that ends now."""
        now = np.full(len(self.row), self.now)
        pace = np.maximum(between(self.table, self.row, now - DAY_US, now), 1e-3)
        assert self.level is not None
        return np.asarray(self.level * pace)

    def since(self, last: Times) -> SeenSurvival:
        late = last.view(np.int64)
        return replace(self, last=late, seen=np.where(late > self.last, late, self.seen))


class FittedReplay(Fitted):
    """`Fitted`, in a world in which a page that says it is gone counts as answering.

    Its pages are as old as the last answer that brought a value.
    """

    def __init__(self, traits: Traits, kin: Kin) -> None:
        super().__init__(traits, kin)
        self.answered_ = Roster(seen=-1.0)

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        answers = outcomes.take(outcomes.answered)
        rows, at = self.answered_.rows(answers.page), answers.at.view(np.int64)
        np.maximum.at(self.answered_["seen"], rows, at.astype(np.float64))

    def _curves(self, rows: Ints | slice, pages: Pages, now: datetime) -> SeenSurvival:
        plain = super()._curves(rows, pages, now)
        seen = self.answered_.get("seen", pages.ids)
        since = np.where(seen < 0, np.maximum(plain.last, 0), seen.astype(np.int64))
        return SeenSurvival(
            a=plain.a,
            b=plain.b,
            row=plain.row,
            last=plain.last,
            now=plain.now,
            table=plain.table,
            level=plain.level,
            kin=plain.kin,
            news=plain.news,
            seen=since,
        )

    def state(self) -> State:
        answered = {f"answered_{name}": c for name, c in self.answered_.state().items()}
        return {**super().state(), **answered}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.answered_.restore(part_of(state, "answered_"))
