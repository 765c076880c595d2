"""When values change: own moves and merchants' batches, bursts, flash sales, outages, promotions.

Everything is drawn for a block of offers at once, on a grid of offers × local days.
"""

from __future__ import annotations

import numpy as np

from salticus.lab.worlds.market.events import MarketEventKind, MarketEvents
from salticus.lab.worlds.market.presets import Preset
from salticus.lab.worlds.market.promotions import DISCOUNTS
from salticus.lab.worlds.market.rhythm import PRICING
from salticus.lab.worlds.market.scene import Scene
from salticus.types import Bools, Floats, Ints

_GAPS = (1, 2, 3)  # hours between the changes of a burst
_GAP_SHARES = (0.5, 0.3, 0.2)
_SALE_HOURS = (6, 12, 24, 48, 72)
_SALE_SHARES = (0.15, 0.15, 0.4, 0.2, 0.1)
_OUTAGE_HOURS = 72.0  # mean


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
    events = events.join(_sales(row[flash], hour[flash], rng))
    away = 1 + rng.exponential(_OUTAGE_HOURS, int(outage.sum())).astype(np.int64)
    start = hour[outage]
    return events.join(
        MarketEvents.spell(row[outage], start, start + away, MarketEventKind.STOCK, 1)
    )


def _bursts(row: Ints, hour: Ints, length: float, rng: np.random.Generator) -> MarketEvents:
    """Further moves after those given, one to three hours apart."""
    many = rng.geometric(1 / max(length, 1.0), len(row))
    gaps = rng.choice(_GAPS, int(many.sum()), p=_GAP_SHARES)
    walked = np.cumsum(gaps)
    first = np.cumsum(many) - many
    before = np.repeat(walked[first] - gaps[first], many)
    return MarketEvents.of(
        np.repeat(row, many), np.repeat(hour, many) + walked - before, MarketEventKind.MOVE
    )


def _sales(row: Ints, hour: Ints, rng: np.random.Generator) -> MarketEvents:
    """Flash sales: the price falls, and comes back."""
    lasts = rng.choice(_SALE_HOURS, len(row), p=_SALE_SHARES)
    return MarketEvents.spell(
        row, hour, hour + lasts, MarketEventKind.SALE, rng.choice(DISCOUNTS, len(row))
    )


def _promoted(scene: Scene, rng: np.random.Generator) -> MarketEvents:
    """Sales of the offers that take part in their merchant's promotions.

    An offer joins one with the preset's probability × r/(r + mean rate): what is promoted is what
    changes anyway.
    """
    row, campaign = scene.promotions.of(scene.catalogue.merchant)
    liveliness = scene.rate / (scene.rate + scene.preset.rate)
    joins = rng.random(len(row)) < scene.preset.promotion * liveliness[row]
    row, campaign = row[joins], campaign[joins]
    zone, midnight = scene.catalogue.zone[row], np.zeros(len(row), dtype=np.int64)
    start = scene.calendar.utc_hour(zone, scene.promotions.start[campaign], midnight)
    end = scene.calendar.utc_hour(zone, scene.promotions.end[campaign], midnight)
    discount = scene.promotions.discount[campaign]
    alive = start > scene.catalogue.born[row]
    return MarketEvents.spell(
        row[alive], start[alive], end[alive], MarketEventKind.SALE, discount[alive]
    )
