"""The uniform gate: every request with the same probability."""

from __future__ import annotations

import numpy as np

from salticus.allocate.gate.base import Decisions, a_share, decided, scored
from salticus.types import Floats


class UniformGate:
    """Sends every request with probability p_u = `share`, whatever its score.

    The baseline of Han et al. 2019, §6.1.3.

    >>> UniformGate(share=0.5).send(np.array([0.9, 0.1]), np.array([0.7, 0.2])).sent
    array([False,  True])
    """

    def __init__(self, *, share: float = 0.2) -> None:
        self.share = a_share(share)

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        return decided(np.full(len(scored(scores)), self.share), chances)
