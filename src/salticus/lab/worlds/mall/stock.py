"""The truth of a mall: which page has which value when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import msgspec
import numpy as np

from salticus.types import Instant, Ints, Times, instant, moment


class MallPage(msgspec.Struct, frozen=True):
    """What a mall knows of a page besides its value. `shop` numbers the port that serves it."""

    page_id: str
    shop: int
    path: str
    title: str
    brand: str | None = None
    category: str | None = None
    currency: str = "EUR"
    language: str = "en"
    condition: str = "new"
    kind: str = "offer"
    markup: str = "jsonld"


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """Pages and their change points.

    The change points of page `row` are ``offsets[row]`` to ``offsets[row + 1]`` of `times` and
    `values`, sorted by time. A value holds from its time until the next one; None = gone. Before
    its first change point a page does not exist.
    """

    pages: Sequence[MallPage]
    offsets: Ints
    times: Times
    values: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.pages)

    @property
    def shops(self) -> int:
        """Number of shops."""
        return 1 + max((page.shop for page in self.pages), default=-1)

    def point(self, row: int, when: Instant) -> int:
        """Index of the change point in force; -1 before the first."""
        low, high = int(self.offsets[row]), int(self.offsets[row + 1])
        passed = int(np.searchsorted(self.times[low:high], when, side="right"))
        return low + passed - 1 if passed else -1

    def value(self, row: int, when: datetime) -> str | None:
        """The value of one page; None if it is gone or not born yet."""
        point = self.point(row, instant(when))
        return None if point < 0 else self.values[point]

    def values_at(self, when: datetime) -> Ints:
        """For all pages, the index into `values` of the value in force; -1 before the first."""
        passed = np.concatenate([[0], np.cumsum(self.times <= instant(when))])
        counts = passed[self.offsets[1:]] - passed[self.offsets[:-1]]
        return np.where(counts > 0, self.offsets[:-1] + counts - 1, -1).astype(np.int64)

    def texts_at(self, when: datetime) -> list[str | None]:
        """For all pages, the value in force; None if it is gone or not born yet."""
        return [None if point < 0 else self.values[point] for point in self.values_at(when)]

    def history(self, row: int) -> list[tuple[datetime, str | None]]:
        """The change points of one page, oldest first."""
        span = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return [(moment(t), v) for t, v in zip(self.times[span], self.values[span], strict=True)]


def offer_text(price: str | Decimal, currency: str, availability: str) -> str:
    """The canonical value of an offer.

    >>> offer_text("19.90", "eur", "InStock"), offer_text("2E+1", "EUR", "OutOfStock")
    ('19.9 EUR InStock', '20 EUR OutOfStock')
    """
    return f"{Decimal(price).normalize():f} {currency.upper()} {availability}"


def offsets_of(rows: Ints, pages: int) -> Ints:
    """Where the change points of each page begin, given the page of each in order.

    >>> offsets_of(np.array([0, 0, 2]), 3)
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=pages))]).astype(np.int64)
