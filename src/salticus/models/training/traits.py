"""Traits fitted to visits: those by which the outcomes are foretold best, found one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from salticus.models.traits import Traits

_USUAL = Traits()
_BETTER = 1e-6  # of a log loss: what is no better than this is not believed

CHOICES: dict[str, tuple[float, ...]] = {
    "memory_days": (10.0, 20.0, 50.0, 150.0),
    "echo": (0.0, 0.3, 0.6, 1.0),
    "echo_days": (0.1, 0.3, 1.0),
    "regime": (1.0, 2.0, 4.0, math.inf),
    "regime_days": (6.0, 12.0),
    "kin_prior": (0.3, 1.0, math.inf),
    "merchant_prior": (3.0, math.inf),
}


def likeliest(loss: Callable[[Traits], float], *, rounds: int = 2) -> Traits:
    """The traits of least loss, one after another from the usual ones; twice, if that helps.

    >>> likeliest(lambda traits: abs(traits.memory_days - 18.0) + traits.echo).memory_days
    20.0
    """
    best = Traits()
    least = loss(best)
    known = {best: least}
    for _ in range(rounds):
        before = least
        for name in CHOICES:
            for traits in _others(best, name):
                if traits not in known:
                    known[traits] = loss(traits)
                if known[traits] < least - _BETTER:
                    best, least = traits, known[traits]
        if before - least < 10 * _BETTER:
            break
    return best


def _others(traits: Traits, name: str) -> Iterator[Traits]:
    """The traits with other values of one; what then means nothing is as usual."""
    for value in CHOICES[name]:
        other = replace(traits, **{name: value})
        if not other.echo:
            other = replace(other, echo_days=_USUAL.echo_days)
        if math.isinf(other.regime):
            other = replace(other, regime_days=_USUAL.regime_days)
        if other != traits:
            yield other
