"""The rhythm of pages with the forecast of a model beside it.

A model tells how likely a page is still unchanged at a few times ahead. Between them, and beyond,
the merchant's own time runs (`Week`), and S = (b/(b + Ω))^a passes through the first and the last
of them: chances that fall with age, as after a burst of changes, give a small a; chances that do
not, a large one. So the model's forecast is a Gamma as the rhythm's is, and both are mixed by
their a and b.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from salticus.errors import InputError
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.predict.spans import Spans, answered
from salticus.predict.trust import GRID, Trust, some_of
from salticus.types import Floats, Ints, Ints32, Outcomes
from salticus.types.dates import HOUR_US
from salticus.types.state import Remembers, State, part_of, places

_SHAPES = (0.05, 50.0)
_LEAST = 1e-7  # of a hazard, so that no page is thought dead for ever
_HALVINGS = 50
_BLOCK = 50_000  # pages that are blended at a time: all at once they need a dozen columns


class GammaForecast(NamedTuple):
    """What a model says of pages: the Gamma(a, b) of their own time, the mean changes a day of the
    days that it foresees, and how many spans between answers were known when it was asked."""

    a: Floats
    b: Floats
    level: Floats
    known: Ints32


class Mixed(Rhythm):
    """`Rhythm`, with chances that a model has told of some pages.

    From what the model says of a page on, the page's curve is a Gamma between both: its a, b and
    change rate are mixed geometrically, with the weight of the model that `trust_` has learnt for
    pages of which as much is known. Laws: at weight 0 it is the rhythm, at weight 1 the model.

    What stands beside the model may be another rhythm: a class that inherits from this one first
    and from the other second mixes with that, whose arguments are `history`.

    Cost: as `Rhythm`; beside that linear in the pages of which something was told.
    """

    def __init__(self, **history: Any) -> None:
        super().__init__(**history)
        self.trust_ = Trust()
        self.told_ = Roster(shape=1.0, days=1.0, level=np.nan, known=np.int32(0))
        self.answers_ = Roster(spans=np.int32(0))

    def set_hazards(self, curves: RhythmSurvival, ids: Ints, hazards: Floats, hours: Ints) -> None:
        """What a model says of pages (ids ascending): its hazards in the stretches that end so
        many hours ahead. InputError if they are no probabilities."""
        if wrong := np.count_nonzero(~((hazards >= 0) & (hazards < 1)).all(axis=1)):
            raise InputError(f"what it says of {wrong} of {len(ids)} pages is no probability")
        stays = np.maximum(np.cumsum(-np.log1p(-hazards), axis=1), _LEAST)
        near, far = (self._point(curves, stays[:, k], int(hours[k])) for k in (0, -1))
        if len(hours) == 1:  # of one stretch nothing says that its hazard is not constant
            near = far[0] / 2, far[1] / 2
        place = self.told_.rows(ids)
        self.told_["shape"][place], self.told_["days"][place] = gamma_through(near, far)
        self.told_["level"][place] = stays[:, -1] / (hours[-1] / 24.0)
        self.told_["known"][place] = self.answers_.get("spans", ids)

    def blend(self, curves: RhythmSurvival, ids: Ints) -> RhythmSurvival:
        """The curves of pages (ids ascending), the rhythm's where nothing was told."""
        row, told = self.told_.places(ids)
        if not told.any():
            return curves
        a, b, level = curves.a.copy(), curves.b.copy(), curves.rates().copy()
        for low in range(0, len(ids), _BLOCK):
            some = low + np.flatnonzero(told[low : low + _BLOCK])
            said = self._forecast(row[some])
            weight = np.where(np.isnan(said.level), 0.0, self._weights(said))
            hoped = np.where(weight > 0, said.level, 1.0)
            for column, model in ((level, hoped), (a, said.a), (b, said.b)):
                column[some] = _between(column[some], model, weight)
        return replace(curves, a=a, b=b, level=level)

    def learn(self, outcomes: Outcomes) -> None:
        spans = answered(outcomes)
        if len(spans):
            self._weigh(spans)
            rows = self.answers_.rows(spans.page)
            np.add.at(self.answers_["spans"], rows, 1)
        super().learn(outcomes)

    def _weigh(self, spans: Spans) -> None:
        """How well rhythm and model together have predicted what these spans found."""
        row, told = places(self.told_.ids, spans.page)
        some = np.flatnonzero(told & places(self.pages_.ids, spans.page)[1])
        some = some[~np.isnan(self.told_["level"][row[some]])]
        some = some[some_of(len(some))]
        if not len(some):
            return
        spans, said = spans.take(some), self._forecast(row[some])
        mine = self.pages_.rows(spans.page)
        own, known = self._own_time(mine, spans), self._gamma(mine)
        losses = np.empty((len(some), len(GRID)))
        for k, weight in enumerate(GRID.tolist()):
            a, b = _between(known[0], said.a, weight), _between(known[1], said.b, weight)
            hazard = np.maximum(a * np.log1p(own / b), _LEAST)
            losses[:, k] = np.where(spans.changed, -np.log(-np.expm1(-hazard)), hazard)
        self.trust_.learn(said.known.astype(np.int64), losses, spans.end.max())

    def _forecast(self, rows: Ints) -> GammaForecast:
        """What was told of the pages in these rows."""
        told = self.told_
        return GammaForecast(
            told["shape"][rows], told["days"][rows], told["level"][rows], told["known"][rows]
        )

    def _weights(self, said: GammaForecast) -> Floats:
        return self.trust_.weights(said.known.astype(np.int64))

    def _point(self, curves: RhythmSurvival, stays: Floats, hours: int) -> tuple[Floats, Floats]:
        """Own time until an edge, and −ln S there."""
        start = np.full(len(stays), curves.now)
        own = self.week_.between(curves.row, start, start + hours * HOUR_US)
        return np.maximum(own, 1e-6), stays

    def state(self) -> State:
        parts: dict[str, Remembers] = {
            "told": self.told_,
            "answers": self.answers_,
            "trust": self.trust_,
        }
        kept = {
            f"{name}_{column}": values
            for name, part in parts.items()
            for column, values in part.state().items()
        }
        return {**super().state(), **kept}

    def restore(self, state: State) -> None:
        super().restore(state)
        if "trust_losses" in state:  # an older crawl kept no more than the rhythm
            self.told_.restore(part_of(state, "told_"))
            self.answers_.restore(part_of(state, "answers_"))
            self.trust_.restore(part_of(state, "trust_"))


def _between(one: Floats, other: Floats, weight: Floats | float) -> Floats:
    """Between the two on a scale of ratios; exactly one of them at weight 0 or 1.

    >>> _between(np.array([1.0, 2.0, 3.0]), np.full(3, 4.0), np.array([0.5, 0.0, 1.0]))
    array([2., 2., 4.])
    """
    inside = np.power(one, 1.0 - weight) * np.power(other, weight)
    return np.where(weight <= 0.0, one, np.where(weight >= 1.0, other, inside))


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
