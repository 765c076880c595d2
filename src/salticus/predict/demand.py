"""Clicks (or impressions) a day of pages, from counts and from what a model says, together."""

from __future__ import annotations

import numpy as np

from salticus.predict.trust import GRID, NAMES, Trust, some_of
from salticus.types import Floats, Instant, Ints
from salticus.types.state import State, part_of

_LEAST = 1e-6  # clicks a day, so that nothing that happens was impossible
_SCALES = (0.1, 10.0)
_PULL = 20.0  # clicks that it takes to believe a scale


def rate_of(chance: Floats) -> Floats:
    """Clicks a day at which a day brings one with such a chance, −ln(1 − P)."""
    return -np.log1p(-np.clip(chance, 0.0, 1.0 - 1e-9))


class PooledDemand:
    """μ = (1 − w)·counts + w·s·model, clicks a day.

    A model says P(a click on the next UTC day), counts the clicks a day of late. The weight w of
    the model is learnt by how much was counted of a page (`Trust`), from the Poisson likelihood of
    each next day's clicks; its scale s, likewise, from the clicks that came over those that it
    said, since who is clicked at all is often clicked more than once.

    Cost: linear in pages, once a day.

    >>> pooled, now = PooledDemand(), np.datetime64("2026-01-02", "us")
    >>> none, said = np.zeros(2000), np.tile([0.5, 0.01], 1000)
    >>> pooled.learn((none, said), np.tile([1, 0], 1000), none.astype(int), now)
    >>> pooled.rates(none[:2], said[:2], np.zeros(2, dtype=int)).round(2)
    array([0.96, 0.02])
    """

    def __init__(self) -> None:
        self.trust_ = Trust()
        self.came_: Floats = np.zeros(len(NAMES))
        self.said_: Floats = np.zeros(len(NAMES))

    def rates(self, counts: Floats, model: Floats, known: Ints) -> Floats:
        """Clicks a day by counts and by a model (NaN: it has said nothing), of pages of which so
        many clicks are known."""
        weight = np.where(np.isnan(model), 0.0, self.trust_.weights(known))
        told = self._scaled(np.nan_to_num(model), known)
        return np.asarray((1.0 - weight) * counts + weight * told)

    def share(self, model: Floats, known: Ints) -> tuple[float, float]:
        """Of one page: clicks a day by the model, scaled, and the weight of that."""
        return float(self._scaled(model, known)[0]), float(self.trust_.weights(known)[0])

    def learn(self, said: tuple[Floats, Floats], came: Floats, known: Ints, now: Instant) -> None:
        """A day is over: what `rates` was given for it, and the clicks that came, page by page."""
        some = np.flatnonzero(~np.isnan(said[1]))
        some = some[some_of(len(some))]
        counts, model = (column[some] for column in said)
        came, known = came[some], known[some]
        told = self._scaled(model, known)
        losses = np.empty((len(some), len(GRID)))
        for k, weight in enumerate(GRID.tolist()):
            mean = np.maximum((1.0 - weight) * counts + weight * told, _LEAST)
            losses[:, k] = mean - came * np.log(mean)
        self.trust_.learn(known, losses, now)
        bucket = self.trust_.bucket(known)
        self.came_ = self.came_ + np.bincount(bucket, weights=came, minlength=len(NAMES))
        self.said_ = self.said_ + np.bincount(bucket, weights=model, minlength=len(NAMES))

    def _scaled(self, model: Floats, known: Ints) -> Floats:
        scale = np.clip((self.came_ + _PULL) / (self.said_ + _PULL), *_SCALES)
        return np.asarray(scale[self.trust_.bucket(known)] * model)

    def state(self) -> State:
        trust = {f"trust_{name}": column for name, column in self.trust_.state().items()}
        return {"came": self.came_, "said": self.said_, **trust}

    def restore(self, state: State) -> None:
        self.came_, self.said_ = state["came"], state["said"]
        self.trust_.restore(part_of(state, "trust_"))
