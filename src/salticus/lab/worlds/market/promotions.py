"""Campaigns of merchants: when they run and how much cheaper things are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.lab.worlds.market.presets import Preset
from salticus.types import Ints

DISCOUNTS = (50, 100, 150, 200, 250, 300, 400, 500)
"""Usual discounts, in thousandths."""

_LENGTH = (3, 11)  # days, half-open


@dataclass(frozen=True, slots=True)
class Promotions:
    """Campaigns ordered by merchant, from local midnight to local midnight.

    Those of merchant m are ``first[m]`` to ``first[m + 1]``; `start` and `end` are local days.
    """

    first: Ints
    start: Ints
    end: Ints
    discount: Ints

    def of(self, merchant: Ints) -> tuple[Ints, Ints]:
        """Pairs of (place in `merchant`, campaign) for all campaigns of these merchants."""
        many = (self.first[1:] - self.first[:-1])[merchant]
        row = np.repeat(np.arange(len(merchant)), many)
        number = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        return row, self.first[merchant[row]] + number


def promotions_of(
    preset: Preset, merchants: int, days: int, rng: np.random.Generator
) -> Promotions:
    """Draw the campaigns of all merchants: a Poisson process for each."""
    many = rng.poisson((days + 2) / preset.promotion_days, merchants)
    start = rng.integers(0, days + 2, int(many.sum()))
    return Promotions(
        first=np.concatenate([[0], np.cumsum(many)]),
        start=start,
        end=start + rng.integers(*_LENGTH, len(start)),
        discount=rng.choice(DISCOUNTS, len(start)),
    )
