"""Events become values: an offer's price, its discount, and whether it is in stock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.lab.worlds.market.events import MarketEventKind, MarketEvents
from salticus.types import Columns, Floats, Ints

GONE = -1
"""The code of an offer that is gone."""

_MOST = 800  # thousandths: no discount is greater
_CHEAPEST = 3  # of the smallest unit, so that a discounted price still differs


@dataclass(frozen=True, slots=True)
class PricePoints(Columns):
    """Change points: the offer has this value from `hour` on.

    `code` is 2 × price (in the smallest unit) + 1 if in stock, or GONE: equal codes, equal values.
    """

    row: Ints
    hour: Ints
    code: Ints


def points_of(
    events: MarketEvents, price: Floats, spread: float, rng: np.random.Generator
) -> PricePoints:
    """The change points that the events of a block lead to.

    `price` is the usual price of each offer, `spread` the standard deviation of the logarithm of
    its regular prices around it. A regular price is drawn anew at each move; a discount that ends
    leaves exactly the price that was there without it. Events that change nothing leave no point.
    """
    here = np.arange(len(events))
    birth = np.maximum.accumulate(np.where(events.kind == MarketEventKind.BIRTH, here, 0))
    moved = np.maximum.accumulate(np.where(events.kind <= MarketEventKind.MOVE, here, 0))
    level = np.exp(np.clip(rng.normal(0.0, spread, len(here)), -4 * spread, 4 * spread))[moved]
    regular = np.maximum(_CHEAPEST, np.rint(price[events.row] * level))
    discount = np.clip(_running(events, MarketEventKind.SALE, birth), 0, _MOST)
    now = np.maximum(1, np.rint(regular * (1000 - discount) / 1000)).astype(np.int64)
    code = 2 * now + (_running(events, MarketEventKind.STOCK, birth) <= 0)
    code[events.kind == MarketEventKind.DEATH] = GONE
    return _changes(events, code)


def _running(events: MarketEvents, kind: MarketEventKind, birth: Ints) -> Ints:
    """Sum of the amounts of a kind since the offer's birth."""
    total = np.cumsum(np.where(events.kind == kind, events.amount, 0))
    return np.asarray(total - total[birth], dtype=np.int64)


def _changes(events: MarketEvents, code: Ints) -> PricePoints:
    """The last state of each offer and hour, where it differs from the one before."""
    same = (events.row[1:] == events.row[:-1]) & (events.hour[1:] == events.hour[:-1])
    last = np.append(~same, True)[: len(code)]
    points = PricePoints(events.row[last], events.hour[last], code[last])
    differs = (points.row[1:] != points.row[:-1]) | (points.code[1:] != points.code[:-1])
    return points.take(np.insert(differs, 0, True)[: len(points)])
