"""The hard threshold: the requests with the highest scores, and no others."""

from __future__ import annotations

from salticus.allocate.gate.base import Decisions, a_share, decided, scored
from salticus.allocate.gate.stream import by_threshold, new_book, restored, stored
from salticus.errors import ConfigError
from salticus.types import Floats
from salticus.types.state import State


class ThresholdGate:
    """Sends a request if its score is among the highest `share` of late.

    "The simplest way" of Han et al. 2019, §6.1.2, and its danger: a page whose score stays low may
    never be visited, so a wrong prediction is never found out. `floor` is the probability of the
    requests below the threshold; with it, nothing is hopeless. The threshold is the quantile that
    holds the share; scores that tie there are sent by chance. Cost: as InstaCrawl.

    >>> import numpy as np
    >>> gate, scores = ThresholdGate(share=0.5), np.tile([0.1, 0.9], 50)
    >>> gate.send(scores, np.full(100, 0.5)).sent[-4:]
    array([False,  True, False,  True])
    """

    def __init__(self, *, share: float = 0.2, floor: float = 0.0, memory: int = 20_000) -> None:
        if not 0.0 <= floor <= share or memory < 1:
            raise ConfigError("a threshold's floor is at most its share, its memory one or more")
        self.share = a_share(share)
        self.floor = floor
        self.memory = memory
        self.book_ = new_book(share, memory, 1)

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        return decided(by_threshold(self.book_, scored(scores), chances, self.floor), chances)

    def state(self) -> State:
        return stored(self.book_)

    def restore(self, state: State) -> None:
        self.book_ = restored(self.book_, state)
