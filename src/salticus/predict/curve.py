"""From the probabilities of a model to a curve for all ages: a Gamma in a merchant's own time.

A model tells how likely a page is still unchanged at a few times ahead. Between them, and beyond,
the merchant's own time runs (`predict.week`), and S = (b/(b + Ω))^a passes through the first and
the last of them: chances that fall with age, as after a burst of changes, give a small a; chances
that do not, a large one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from salticus.predict.rhythm import RhythmSurvival
from salticus.types import Bools, Floats, Ints

_SHAPES = (0.05, 50.0)
_LEAST = 1e-7  # of a hazard, so that no page is thought dead for ever
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class LearntSurvival(RhythmSurvival):
    """A curve with a change rate of its own: that of the days which the model foresees."""

    level: Floats

    def rates(self) -> Floats:
        return self.level

    def take(self, rows: Ints | Bools) -> LearntSurvival:
        cut = ("a", "b", "row", "last", "level")
        return replace(self, **{name: getattr(self, name)[rows] for name in cut})


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
