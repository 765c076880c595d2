"""The rhythm of pages with the word of a model beside it."""

from __future__ import annotations

import numpy as np

from salticus.errors import InputError
from salticus.predict.curve import LearntSurvival, gamma_through
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.types import Floats, Ints
from salticus.types.state import State, part_of, places

HOUR_US = 3_600_000_000
_LEAST = 1e-7


class Mixed(Rhythm):
    """`Rhythm`, with chances that a model has told of some pages.

    From what the model says of a page on, the page's curve goes through the chances of both at the
    first and the last of the model's edges: `trust` is the weight of the model's hazards,
    geometrically; the rest is the rhythm's.
    """

    def __init__(self, *, trust: float = 0.5) -> None:
        super().__init__()
        self.trust = trust
        self.told_ = Roster(shape=1.0, days=1.0, level=np.nan)

    def forget_told(self) -> None:
        """Nothing was told of any page."""
        self.told_ = Roster(**self.told_.defaults)

    def take_up(self, curves: RhythmSurvival, ids: Ints, hazards: Floats, hours: Ints) -> None:
        """What a model says of pages (ids ascending): its hazards in the stretches that end so
        many hours ahead. InputError if they are no probabilities."""
        if not ((hazards >= 0) & (hazards < 1)).all():
            wrong = int(np.count_nonzero(~((hazards >= 0) & (hazards < 1)).all(axis=1)))
            raise InputError(f"what it says of {wrong} of {len(ids)} pages is no probability")
        stays = np.cumsum(-np.log1p(-hazards), axis=1)
        near, far = (self._mixed(curves, stays[:, k], int(hours[k])) for k in (0, -1))
        shape, days = gamma_through(near, far)
        place = self.told_.rows(ids)
        self.told_["shape"][place], self.told_["days"][place] = shape, days
        self.told_["level"][place] = far[1] / (hours[-1] / 24.0)

    def blend(self, curves: RhythmSurvival, ids: Ints) -> LearntSurvival:
        """The curves of pages, the rhythm's where nothing was told."""
        row, told = places(self.told_.ids, ids)
        if not told.any():
            a, b, level = curves.a, curves.b, np.full(len(ids), np.nan)
        else:
            a, b, level = (self.told_[name][row] for name in ("shape", "days", "level"))
        unasked = ~told | np.isnan(level)
        return LearntSurvival(
            a=np.where(unasked, curves.a, a),
            b=np.where(unasked, curves.b, b),
            row=curves.row,
            last=curves.last,
            now=curves.now,
            table=curves.table,
            level=np.where(unasked, curves.a / curves.b, level),
        )

    def _mixed(self, curves: RhythmSurvival, stays: Floats, hours: int) -> tuple[Floats, Floats]:
        """Own time until an edge, and −ln S there of model and rhythm together."""
        start = np.full(len(stays), curves.now)
        own = self.week_.between(curves.row, start, start + hours * HOUR_US)
        own = np.maximum(own, 1e-6)
        theirs = curves.a * np.log1p(own / curves.b)
        return own, np.exp(
            self.trust * np.log(np.maximum(stays, _LEAST))
            + (1 - self.trust) * np.log(np.maximum(theirs, _LEAST))
        )

    def state(self) -> State:
        told = {f"told_{name}": column for name, column in self.told_.state().items()}
        return {**super().state(), **told}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.told_.restore(part_of(state, "told_"))
