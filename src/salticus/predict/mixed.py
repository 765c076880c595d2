"""The rhythm of pages with the word of a model beside it.

A model tells how likely a page is still unchanged at a few times ahead. Between them, and beyond,
the merchant's own time runs (`Week`), and S = (b/(b + Ω))^a passes through the first and the last
of them: chances that fall with age, as after a burst of changes, give a small a; chances that do
not, a large one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from salticus.errors import InputError
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.types import Floats, Ints
from salticus.types.dates import HOUR_US
from salticus.types.state import State, part_of, places

_SHAPES = (0.05, 50.0)
_LEAST = 1e-7  # of a hazard, so that no page is thought dead for ever
_HALVINGS = 50


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

    def take_up(self, curves: RhythmSurvival, ids: Ints, hazards: Floats, hours: Ints) -> None:
        """What a model says of pages (ids ascending): its hazards in the stretches that end so
        many hours ahead. InputError if they are no probabilities."""
        if wrong := np.count_nonzero(~((hazards >= 0) & (hazards < 1)).all(axis=1)):
            raise InputError(f"what it says of {wrong} of {len(ids)} pages is no probability")
        stays = np.cumsum(-np.log1p(-hazards), axis=1)
        near, far = (self._mixed(curves, stays[:, k], int(hours[k])) for k in (0, -1))
        place = self.told_.rows(ids)
        self.told_["shape"][place], self.told_["days"][place] = gamma_through(near, far)
        self.told_["level"][place] = far[1] / (hours[-1] / 24.0)

    def blend(self, curves: RhythmSurvival, ids: Ints) -> RhythmSurvival:
        """The curves of pages, the rhythm's where nothing was told. Their change rate is that of
        the days which the model foresees."""
        row, told = places(self.told_.ids, ids)
        if not told.any():
            return curves
        a, b, level = (self.told_[name][row] for name in ("shape", "days", "level"))
        unasked = ~told | np.isnan(level)
        return replace(
            curves,
            a=np.where(unasked, curves.a, a),
            b=np.where(unasked, curves.b, b),
            level=np.where(unasked, curves.a / curves.b, level),
        )

    def _mixed(self, curves: RhythmSurvival, stays: Floats, hours: int) -> tuple[Floats, Floats]:
        """Own time until an edge, and −ln S there of model and rhythm together."""
        start = np.full(len(stays), curves.now)
        own = self.week_.between(curves.row, start, start + hours * HOUR_US)
        own = np.maximum(own, 1e-6)
        rhythm = curves.a * np.log1p(own / curves.b)
        told, known = (np.log(np.maximum(each, _LEAST)) for each in (stays, rhythm))
        return own, np.exp(self.trust * told + (1 - self.trust) * known)

    def state(self) -> State:
        told = {f"told_{name}": column for name, column in self.told_.state().items()}
        return {**super().state(), **told}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.told_.restore(part_of(state, "told_"))


def gamma_through(near: tuple[Floats, Floats], far: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The Gamma(a, b) whose −ln S is as given at two own ages; pairs of (own age, −ln S).

    Where the hazard rises with age no Gamma does that: the nearest, a = 50, then has the far one.

    >>> a, b = gamma_through((np.array([1.0]), np.array([2 * np.log1p(1 / 3)])),
    ...                      (np.array([14.0]), np.array([2 * np.log1p(14 / 3)])))
    >>> a.round(6), b.round(6)
    (array([2.]), array([3.]))
    """
    (x, small), (y, large) = near, far
    small, large = np.maximum(small, _LEAST), np.maximum(large, 2 * _LEAST)
    ratio = np.clip(small / large, 0.0, 1.0)
    low, high = np.full(len(x), np.log(1e-6)), np.full(len(x), np.log(1e6))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        b = np.exp(middle)
        steep = np.log1p(x / b) / np.log1p(y / b) > ratio
        low, high = np.where(steep, middle, low), np.where(steep, high, middle)
    b = np.exp(high)
    a = np.clip(large / np.log1p(y / b), *_SHAPES)
    return a, np.asarray(y / np.expm1(np.minimum(large / a, 500.0)))
