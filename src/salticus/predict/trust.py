"""How far a model is trusted beside history: learnt from how well both predicted what came."""

from __future__ import annotations

import numpy as np

from salticus.types import NEVER, Floats, Instant, Ints, days_between
from salticus.types.state import State

GRID: Floats = np.linspace(0.0, 1.0, 11)
"""Weights that are tried: 0 is history alone, 1 the model alone."""

KNOWN = (1, 2, 5, 10, 30)
"""Where buckets of known observations begin; the first bucket holds pages without any."""

NAMES = ("0", "1", "2-4", "5-9", "10-29", "30+")

_PULL = 50.0  # outcomes that it takes to believe a bucket more than all of them together
_FIRST = 5.0  # outcomes that the weight before any is worth
_ROWS = 20_000  # outcomes that are weighed at a time: of more, every second, third, …


class Trust:
    """The weight of a model's word against history's, by how much is known of a page.

    For every weight of `GRID` the losses are summed that predictions mixed with it would have had,
    older ones counting for less (`memory_days`). A bucket's weight is the one of least loss, drawn
    to that of all buckets while there are few outcomes, and at first to `usual`.

    Laws: a model that predicts worse than history by more than chance gets weight 0, one that needs
    no history 1; the order of outcomes learnt at one time does not matter.

    >>> trust = Trust()
    >>> trust.weights(np.array([0, 7]))
    array([0.5, 0.5])
    >>> now = np.datetime64("2026-01-01", "us")
    >>> trust.learn(np.full(100, 7), np.tile(GRID, (100, 1)), now)  # the model only adds to it
    >>> trust.weights(np.array([0, 7]))
    array([0., 0.])
    """

    def __init__(self, *, usual: float = 0.5, memory_days: float = 30.0) -> None:
        self.usual = usual
        self.memory_days = memory_days
        self.losses_: Floats = np.zeros((len(NAMES), len(GRID)))
        self.outcomes_: Floats = np.zeros(len(NAMES))
        self.until_: Instant = NEVER
        self._weights = self._best()

    def weights(self, known: Ints) -> Floats:
        """The weight of the model for pages of which so many observations are known."""
        return np.asarray(self._weights[self.bucket(known)])

    def learn(self, known: Ints, losses: Floats, now: Instant) -> None:
        """Outcomes of pages with so many known observations; their losses, rows × `GRID`."""
        if not len(known):
            return
        if not np.isnat(self.until_) and now > self.until_:
            kept = float(np.exp(-days_between(self.until_, now) / self.memory_days))
            self.losses_, self.outcomes_ = self.losses_ * kept, self.outcomes_ * kept
        self.until_ = now if np.isnat(self.until_) else max(self.until_, now)
        bucket, new = self.bucket(known), np.empty_like(self.losses_)
        for weight, column in enumerate(losses.T):
            new[:, weight] = np.bincount(bucket, weights=column, minlength=len(NAMES))
        self.losses_ = self.losses_ + new
        self.outcomes_ = self.outcomes_ + np.bincount(bucket, minlength=len(NAMES))
        self._weights = self._best()

    @staticmethod
    def bucket(known: Ints) -> Ints:
        """The place in `NAMES` of so many known observations."""
        return np.searchsorted(KNOWN, known, side="right")

    def by_known(self) -> dict[str, float]:
        """The weight by number of known observations, for people."""
        return dict(zip(NAMES, self._weights.round(3).tolist(), strict=True))

    def _best(self) -> Floats:
        """Per bucket the weight of least loss."""
        before = _FIRST * (GRID - self.usual) ** 2
        mean = (self.losses_.sum(axis=0) + before) / (self.outcomes_.sum() + _FIRST)
        return np.asarray(GRID[np.argmin((self.losses_ + _PULL * mean).round(9), axis=1)])

    def state(self) -> State:
        return {
            "losses": self.losses_,
            "outcomes": self.outcomes_,
            "until": np.array(self.until_),
        }

    def restore(self, state: State) -> None:
        self.losses_, self.outcomes_ = state["losses"], state["outcomes"]
        self.until_ = np.datetime64(state["until"].item(), "us")
        self._weights = self._best()


def some_of(rows: int) -> slice:
    """Which of so many outcomes to weigh: all, or evenly spread ones of many."""
    return slice(None, None, max(1, -(-rows // _ROWS)))
