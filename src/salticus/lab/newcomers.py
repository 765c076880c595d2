"""How soon offers are visited that nobody has clicked yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from salticus.lab.worlds.mall.audit import CopyHistory
from salticus.lab.worlds.mall.shoppers import Shopping
from salticus.types import Floats, Ints, instant
from salticus.types.arrays import DAY


@dataclass(frozen=True)
class Newcomers:
    """Offers (`rows` of the mall) that a crawl was told of as the `span` began, what it saw of
    them, and what people clicked."""

    copies: CopyHistory
    rows: Ints
    clicked: Shopping
    span: tuple[datetime, datetime]

    def delays(self) -> dict[str, float | None]:
        """Median days until the first and the second answer of the offers that nobody had clicked
        until then (those without one: to the end of the span); and the same where an offer counts
        as often as it is clicked in all the span."""
        found: dict[str, float | None] = {}
        for number, word in enumerate(("first", "second")):
            days, clicks = self._delays(number)
            found[f"unclicked offers until the {word} visit"] = len(days)
            found[f"days until the {word} visit"] = weighted_median(days, np.ones(len(days)))
            found[f"days until the {word} visit by later clicks"] = weighted_median(days, clicks)
        return found

    def _delays(self, number: int) -> tuple[Floats, Floats]:
        """Days until an answer (0 = the first), and later clicks, of each that counts."""
        start, end = map(instant, self.span)
        answered = np.array([held is not None for held in self.copies.held], dtype=np.bool_)
        people = self.clicked.between(*self.span)
        days, clicks = [], []
        for row in self.rows.tolist():
            at = np.sort(self.copies.at[answered & (self.copies.rows == row)])
            mine = people.take(people.row == row)
            reached = at[number] if len(at) > number else end
            if len(at) and not (mine.at < reached).any():
                days.append(float((reached - start) / DAY))
                clicks.append(float(mine.clicks.sum()))
        return np.array(days), np.array(clicks)


def weighted_median(values: Floats, weights: Floats) -> float | None:
    """The least value up to which half of the weight lies; None without any weight.

    >>> weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0]))
    2.0
    """
    if not weights.sum() > 0:
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
