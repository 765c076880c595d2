"""What happens to offers, before it is a price: rows of (offer, hour, kind, amount)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from salticus.types import Bools, Codes, Columns, Ints


class MarketEventKind(IntEnum):
    """What an event does to the value of its offer."""

    BIRTH = 0
    MOVE = 1  # the regular price is drawn anew
    SALE = 2  # the discount changes by `amount` thousandths
    STOCK = 3  # so many reasons more (or fewer) to be out of stock
    DEATH = 4


@dataclass(frozen=True, slots=True)
class MarketEvents(Columns):
    """Events as columns; `row` is the offer's place in its block, `hour` the hour of the log."""

    row: Ints
    hour: Ints
    kind: Codes
    amount: Ints

    @classmethod
    def of(
        cls, row: Ints, hour: Ints, kind: MarketEventKind, amount: Ints | int = 0
    ) -> MarketEvents:
        """Events of one kind."""
        n = len(row)
        return cls(row, hour, np.full(n, kind, dtype=np.int8), np.full(n, amount, dtype=np.int64))

    @classmethod
    def spell(
        cls, row: Ints, start: Ints, end: Ints, kind: MarketEventKind, amount: Ints | int
    ) -> MarketEvents:
        """A state that begins and ends: an event and its opposite."""
        return cls.of(row, start, kind, amount).join(cls.of(row, end, kind, -np.asarray(amount)))

    def lived(self, born: Ints, dies: Ints, hours: int) -> MarketEvents:
        """Those within an offer's life and the log, with its birth and death, in order of time."""
        within = (self.hour > born[self.row]) & (self.hour < np.minimum(dies, hours)[self.row])
        rows = np.arange(len(born))
        seen = self.take(within).join(MarketEvents.of(rows, born, MarketEventKind.BIRTH))
        gone: Bools = dies < hours
        seen = seen.join(MarketEvents.of(rows[gone], dies[gone], MarketEventKind.DEATH))
        return seen.take(np.lexsort((seen.kind != MarketEventKind.BIRTH, seen.hour, seen.row)))
