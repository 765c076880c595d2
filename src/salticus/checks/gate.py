"""Laws that every gate obeys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from salticus.allocate.gate.base import Gate
from salticus.checks.samples import restarted
from salticus.types import Floats
from salticus.types.coins import coins

_SHARES = (0.0, 0.05, 0.2, 0.8, 1.0)
_REQUESTS = 20_000
_POINT = 0.01


def check_gate(make: Callable[[float], Gate]) -> None:
    """Run all laws of `Gate` on gates that `make` makes for a share; AssertionError names the law
    broken.

    >>> from salticus.allocate.gate.uniform import UniformGate
    >>> check_gate(lambda share: UniformGate(share=share))
    """
    for seed, scores in enumerate(_streams()):
        chances = coins(seed, np.arange(_REQUESTS), 0)
        for share in _SHARES:
            _holds(make(share), scores, chances, share)
        _needs_no_batches(make, scores, chances)
        _remembers(make, scores, chances)
    assert len(make(0.2).send(np.empty(0), np.empty(0))) == 0, "law: no requests, no decisions"


def _streams() -> list[Floats]:
    """Scores of all sorts: skewed, mostly equal, all equal, drifting, jumping."""
    rng, n = np.random.default_rng(0), _REQUESTS
    late = np.arange(n) >= n // 2
    return [
        rng.beta(0.3, 5.0, n),
        np.where(rng.random(n) < 0.1, 0.7, 0.0),
        np.full(n, 0.5),
        rng.random(n) + np.arange(n) / 2000,
        rng.random(n) ** np.where(late, 4.0, 1.0) - late,
    ]


def _holds(gate: Gate, scores: Floats, chances: Floats, share: float) -> None:
    decisions = gate.send(scores, chances)
    p = decisions.propensity
    assert p.shape == decisions.sent.shape == scores.shape, "law: one decision a request"
    assert np.all((p >= 0) & (p <= 1)), "law: propensities are in [0, 1]"
    below = np.array_equal(decisions.sent, chances < p)
    assert below, "law: a request is sent if its chance is below its propensity"
    sent = float(decisions.sent.mean())
    assert abs(sent - share) < _POINT, f"law: the share is held within a point ({sent} of {share})"


def _needs_no_batches(make: Callable[[float], Gate], scores: Floats, chances: Floats) -> None:
    whole = make(0.2).send(scores[:300], chances[:300]).propensity
    gate, parts = make(0.2), []
    for start, end in ((0, 1), (1, 2), (2, 50), (50, 50), (50, 300)):
        parts.append(gate.send(scores[start:end], chances[start:end]).propensity)
    assert np.array_equal(whole, np.concatenate(parts)), "law: one by one is as good as in a batch"


def _remembers(make: Callable[[float], Gate], scores: Floats, chances: Floats) -> None:
    old = make(0.2)
    old.send(scores[:3000], chances[:3000])
    if new := restarted(old, make(0.2)):
        before, after = (g.send(scores[3000:], chances[3000:]).propensity for g in (old, new))
        assert np.array_equal(before, after), "law: restored from its state, a gate decides alike"
