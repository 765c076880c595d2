"""When values change, and to what: moves, merchants' batches, bursts, sales, outages, promotions.

Everything is drawn for a block of offers at once, on a grid of offers × local days.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from salticus.lab.worlds.market.presets import Preset
from salticus.lab.worlds.market.scene import DISCOUNTS, Scene
from salticus.types import Bools, Codes, Columns, Floats, Ints

GONE = -1  # the code of an offer that is gone

PRICING = np.array([1.0] * 6 + [1.5, 2, 3, 4, 4, 4, 3.5, 3.5, 4, 3.5, 3, 2.5, 2, 2, 2, 1.5, 1.5, 1])
PRICING /= PRICING.sum()
"""When people change prices: share of each local hour."""

GAPS = {1: 0.5, 2: 0.3, 3: 0.2}  # share of each number of hours between the changes of a burst
SALES = {6: 0.15, 12: 0.15, 24: 0.4, 48: 0.2, 72: 0.1}  # the same of the lengths of flash sales
OUTAGE_HOURS = 72.0  # mean
_MOST = 800  # thousandths: no discount is greater
_CHEAPEST = 3  # of the smallest unit, so that a discounted price still differs


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


def events_of(scene: Scene, rng: np.random.Generator) -> MarketEvents:
    """All events of the offers of a block, in order of offer and time."""
    cut = scene.catalogue
    row, day = _triggers(scene, rng)
    hour = _hours(scene, row, day, rng)
    alive = hour > cut.born[row]  # a sale that began before its offer could not end
    row, hour = row[alive], hour[alive]
    batch = cut.merchants.period[cut.merchant[row]] > 0
    every = _own(scene.preset, row, hour, batch, rng).join(_promoted(scene, rng))
    return every.lived(cut.born, cut.dies, scene.calendar.hours)


# ---------------------------------------------------------------------------------------- triggers


def _triggers(scene: Scene, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Offer and local day of each trigger; offers of batch merchants have at most one a batch."""
    shops, merchant = scene.catalogue.merchants, scene.catalogue.merchant
    batch, other = (shops.period > 0)[merchant, None], (shops.period == 48)[merchant, None]
    expected = scene.rate[:, None] * scene.calendar.lively[scene.catalogue.country]
    expected *= _regimes(scene, rng)
    days = np.arange(expected.shape[1]) + shops.phase[merchant, None]
    expected *= np.where(other, 2.0 * (days % 2), 1.0)
    counts = rng.poisson(expected)
    np.minimum(counts, 1, out=counts, where=batch)
    row, day = np.nonzero(counts)
    often = counts[row, day]
    return np.repeat(row, often), np.repeat(day, often)


def _regimes(scene: Scene, rng: np.random.Generator) -> Floats:
    """A factor of the rate that holds for weeks and is then drawn anew; mean 1."""
    spread = scene.preset.regime_spread
    shifts = rng.random((len(scene), scene.calendar.days + 2)) < 1 / scene.preset.regime_days
    shifts[:, 0] = True
    drawn = np.exp(rng.normal(-(spread**2) / 2, spread, int(shifts.sum())))
    return np.asarray(drawn[np.cumsum(shifts) - 1].reshape(shifts.shape), dtype=np.float64)


def _hours(scene: Scene, row: Ints, day: Ints, rng: np.random.Generator) -> Ints:
    """Hour of the log of each trigger: the batch's hour, local midnight, or when people work."""
    merchant = scene.catalogue.merchant[row]
    shops = scene.catalogue.merchants
    own = np.searchsorted(np.cumsum(PRICING)[:-1], rng.random(len(row)), side="right")
    own = np.where(rng.random(len(row)) < scene.preset.midnight, 0, own)
    local = np.where(shops.period[merchant] > 0, shops.hour[merchant], own)
    return scene.calendar.utc_hour(shops.zone[merchant], day, local)


# --------------------------------------------------------------------------- what a trigger starts


def _own(
    preset: Preset, row: Ints, hour: Ints, batch: Bools, rng: np.random.Generator
) -> MarketEvents:
    """Moves, bursts of moves, flash sales and outages."""
    coin = rng.random(len(row))
    flash = coin < preset.flash
    outage = ~flash & (coin < preset.flash + preset.outage)
    move = ~flash & ~outage
    burst = move & ~batch & (rng.random(len(row)) < preset.burst)
    events = MarketEvents.of(row[move], hour[move], MarketEventKind.MOVE)
    events = events.join(_bursts(row[burst], hour[burst], preset.burst_length, rng))
    rows, start = row[flash], hour[flash]
    end = start + rng.choice([*SALES], len(start), p=[*SALES.values()])
    discount = rng.choice(DISCOUNTS, len(start))
    events = events.join(MarketEvents.spell(rows, start, end, MarketEventKind.SALE, discount))
    rows, start = row[outage], hour[outage]
    end = start + 1 + rng.exponential(OUTAGE_HOURS, len(start)).astype(np.int64)
    return events.join(MarketEvents.spell(rows, start, end, MarketEventKind.STOCK, 1))


def _bursts(row: Ints, hour: Ints, length: float, rng: np.random.Generator) -> MarketEvents:
    """Further moves after those given, one to three hours apart."""
    many = rng.geometric(1 / max(length, 1.0), len(row))
    gaps = rng.choice([*GAPS], int(many.sum()), p=[*GAPS.values()])
    walked = np.cumsum(gaps)
    first = np.cumsum(many) - many
    begun = np.repeat(hour - walked[first] + gaps[first], many)
    return MarketEvents.of(np.repeat(row, many), begun + walked, MarketEventKind.MOVE)


def _promoted(scene: Scene, rng: np.random.Generator) -> MarketEvents:
    """Sales of the offers that take part in their merchant's promotions.

    An offer joins one with the preset's probability × r/(r + mean rate): what is promoted is what
    changes anyway.
    """
    row, campaign = scene.promotions.of(scene.catalogue.merchant)
    liveliness = scene.rate / (scene.rate + scene.preset.rate)
    joins = rng.random(len(row)) < scene.preset.promotion * liveliness[row]
    row, campaign = row[joins], campaign[joins]
    zone, drawn = scene.catalogue.zone[row], scene.promotions
    start = scene.calendar.utc_hour(zone, drawn.start[campaign], 0)
    end = scene.calendar.utc_hour(zone, drawn.end[campaign], 0)
    alive = start > scene.catalogue.born[row]
    row, start, end, discount = (c[alive] for c in (row, start, end, drawn.discount[campaign]))
    return MarketEvents.spell(row, start, end, MarketEventKind.SALE, discount)


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
    same = (events.row[1:] == events.row[:-1]) & (events.hour[1:] == events.hour[:-1])
    last = np.append(~same, True)[: len(code)]  # the state in which an hour ends
    points = PricePoints(events.row[last], events.hour[last], code[last])
    differs = (points.row[1:] != points.row[:-1]) | (points.code[1:] != points.code[:-1])
    return points.take(np.insert(differs, 0, True)[: len(points)])


def _running(events: MarketEvents, kind: MarketEventKind, birth: Ints) -> Ints:
    """Sum of the amounts of a kind since the offer's birth."""
    total = np.cumsum(np.where(events.kind == kind, events.amount, 0))
    return np.asarray(total - total[birth], dtype=np.int64)
