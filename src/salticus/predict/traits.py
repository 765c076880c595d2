"""What is fitted of a rhythm: numbers that hold for a whole world, by the likelihood of visits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

_LEAST = 1e-6  # of a log loss: what is no better than this is not believed


@dataclass(frozen=True, slots=True)
class Traits:
    """How the pages of a world change; those given are `Rhythm`'s own.

    Evidence of a page's usual rate fades over `memory_days`. Round it the rate of the day is a
    Gamma of shape `regime` whose evidence fades over `regime_days`; infinite: it is always the
    usual. A change raises the changes expected soon by `echo` in all, of which 1/e are left after
    `echo_days` of own time. `kin_prior` and `merchant_prior` are the changes that it takes to
    believe the news of a day (see `News`).
    """

    memory_days: float = 50.0
    echo: float = 0.0
    echo_days: float = 0.1
    regime: float = math.inf
    regime_days: float = 6.0
    kin_prior: float = math.inf
    merchant_prior: float = math.inf

    def told(self) -> str:
        """What differs from the usual, in words.

        >>> Traits(memory_days=20.0, echo=0.6).told()
        'memory_days 20, echo 0.6'
        """
        usual = Traits()
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        other = [f"{name} {x:g}" for name, x in own.items() if x != getattr(usual, name)]
        return ", ".join(other) or "nothing that differs from the usual"


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
                if known[traits] < least - _LEAST:
                    best, least = traits, known[traits]
        if before - least < 10 * _LEAST:
            break
    return best


def _others(traits: Traits, name: str) -> Iterator[Traits]:
    """The traits with other values of one that matters."""
    if name == "echo_days" and not traits.echo:
        return
    if name == "regime_days" and math.isinf(traits.regime):
        return
    for value in CHOICES[name]:
        if value != getattr(traits, name):
            yield replace(traits, **{name: value})
