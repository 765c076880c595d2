"""The InstaCrawl gate: the higher the quantile of the score, the likelier a request is sent."""

from __future__ import annotations

from salticus.allocate.gate.base import Decisions, a_share, decided, scored
from salticus.allocate.gate.stream import GAMMA, by_quantiles, new_book, restored, stored
from salticus.errors import ConfigError
from salticus.types import Floats
from salticus.types.state import State


class InstaCrawl:
    """Sends a request of quantile i of n with probability p_i = min(1, (i/n)·γ).

    Han et al. 2019, §6.1.2, eq. 1; the first quantile is the lowest. Quantiles are those of the
    last `memory` requests, of which about a thousand scores are kept; scores that are equal are in
    the quantile of their middle. γ is solved anew for every request so that `share` of all
    requests is sent: from how often each quantile came of late, and from what is owed. No request
    is hopeless: γ is never below half the share, so p_i ≥ share/2n. (A share of 0 sends nothing.)

    Cost: one search among the kept scores a request, in constant memory.

    >>> import numpy as np
    >>> gate = InstaCrawl(share=0.2)
    >>> chance = np.arange(5000) * 0.618 % 1
    >>> sent = gate.send(np.arange(5000) % 7 / 7, chance).sent
    >>> bool(abs(sent.mean() - 0.2) < 0.01)
    True
    """

    def __init__(self, *, share: float = 0.2, quantiles: int = 20, memory: int = 20_000) -> None:
        if quantiles < 1 or memory < 1:
            raise ConfigError("a gate needs at least one quantile, and a memory of one request")
        self.share = a_share(share)
        self.quantiles = quantiles
        self.memory = memory
        self.book_ = new_book(share, memory, quantiles)

    @property
    def gamma_(self) -> float:
        """The resource factor γ of the last request."""
        return float(self.book_.numbers[GAMMA])

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        return decided(by_quantiles(self.book_, scored(scores), chances), chances)

    def state(self) -> State:
        return stored(self.book_)

    def restore(self, state: State) -> None:
        self.book_ = restored(self.book_, state)
