"""Who sells what: merchants, brands and offers as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from salticus.lab.worlds.market.geography import COUNTRIES
from salticus.lab.worlds.market.presets import Preset
from salticus.lab.worlds.market.taxonomy import LEAVES, SERIES, TOPS
from salticus.types import Bools, Columns, Floats, Ints

CONDITIONS = ("new", "used", "refurbished")
_CONDITION_SHARES = (0.9, 0.07, 0.03)
_REACH = 2.0  # standard deviations of liveliness, so that more merchants reach no further
_AT_MIDNIGHT = 0.75  # share of batch merchants; the others update before six
_MEDIAN_PRICE = 35.0  # euros
_PRICE_SPREAD = 1.2  # of the logarithm, between offers

_GOLDEN = (5**0.5 - 1) / 2
_TIERS = 8  # of merchants, by place

_TOP_OF_LEAF = np.array([TOPS.index(leaf.top) for leaf in LEAVES])
_LEAF_WEIGHT = np.array([leaf.weight for leaf in LEAVES])
_TOP_WEIGHT = np.bincount(_TOP_OF_LEAF, _LEAF_WEIGHT).astype(np.float64)
_COUNTRY_WEIGHT = np.array([country.weight for country in COUNTRIES], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Merchants(Columns):
    """Columns of merchants. `country`, `zone`, `language` and `focus` (a top category) are places
    in their lists; `liveliness` is how often prices change, in standard deviations; `period` is
    hours between batch updates (0 = none), `phase` which of two days has one if that is 48, and
    `hour` their local hour; `rejects` tells hosts that reject nearly every visit."""

    country: Ints
    zone: Ints
    language: Ints
    focus: Ints
    liveliness: Floats
    period: Ints
    phase: Ints
    hour: Ints
    rejects: Bools


@dataclass(frozen=True, slots=True)
class Catalogue(Columns):
    """Columns of offers; `merchant`, `brand`, `leaf`, `series` and `condition` are places in their
    lists.

    `brands` is how many brands there are, `clicked` tells the click-weighted stratum, `price` is
    in the smallest unit of the merchant's currency, `born` and `dies` are hours of the log.
    """

    merchants: Merchants
    brands: int
    merchant: Ints
    brand: Ints
    leaf: Ints
    series: Ints
    condition: Ints
    clicked: Bools
    price: Floats
    born: Ints
    dies: Ints

    @property
    def country(self) -> Ints:
        return self.merchants.country[self.merchant]

    @property
    def zone(self) -> Ints:
        return self.merchants.zone[self.merchant]


def catalogue_of(preset: Preset, offers: int, days: int, rng: np.random.Generator) -> Catalogue:
    """Draw merchants, then offers of them."""
    merchant = _sellers(preset, offers, rng)
    merchants = _merchants(preset, np.bincount(merchant), rng)
    leaf = _leaves(merchants.focus[merchant], preset.focus, rng)
    brands = max(len(TOPS), round(offers / preset.offers_per_brand))
    born, dies = _lives(preset, offers, days, rng)
    return Catalogue(
        merchants=merchants,
        brands=brands,
        merchant=merchant,
        brand=_brands(_TOP_OF_LEAF[leaf], brands, rng),
        leaf=leaf,
        series=rng.integers(0, len(SERIES), offers),
        condition=rng.choice(len(CONDITIONS), offers, p=_CONDITION_SHARES),
        clicked=rng.permutation(offers) < round(preset.click_share * offers),
        price=_prices(merchants.country[merchant], rng),
        born=born,
        dies=dies,
    )


def _sellers(preset: Preset, offers: int, rng: np.random.Generator) -> Ints:
    """The merchant of each offer: lognormal sizes, so few merchants have most offers."""
    count = max(1, round(offers / preset.offers_per_merchant))
    weights = rng.lognormal(0.0, preset.size_spread, count)
    chosen = rng.choice(count, offers, p=weights / weights.sum())
    return np.unique(chosen, return_inverse=True)[1].astype(np.int64)  # none without offers


def _merchants(preset: Preset, sizes: Ints, rng: np.random.Generator) -> Merchants:
    count = len(sizes)
    country = classes(_COUNTRY_WEIGHT, sizes, rng)
    first = np.cumsum([0] + [len(c.zones) for c in COUNTRIES[:-1]])
    zones = np.array([len(c.zones) for c in COUNTRIES])[country]
    languages = np.array([len(c.languages) for c in COUNTRIES])[country]
    focus = classes(_TOP_WEIGHT, sizes, rng)
    places = even_places(sizes, focus, rng)
    batch, other = preset.daily_batch, preset.other_batch
    rejecting = np.array([1 - preset.rejecting, preset.rejecting])
    return Merchants(
        country=country,
        zone=first[country] + (rng.random(count) * zones).astype(np.int64),
        language=(rng.random(count) * languages).astype(np.int64),
        focus=focus,
        liveliness=np.clip(ndtri(places), -_REACH, _REACH),
        period=24 * dealt(np.array([1 - batch - other, batch, other]), sizes, places, rng),
        phase=rng.integers(0, 2, count),
        hour=np.where(rng.random(count) < _AT_MIDNIGHT, 0, rng.integers(1, 7, count)),
        rejects=dealt(rejecting, sizes, places, rng) == 1,
    )


def _leaves(focus: Ints, share: float, rng: np.random.Generator) -> Ints:
    """A leaf for each offer: below the merchant's focus with that probability, else anywhere."""
    anywhere = rng.choice(len(TOPS), len(focus), p=_TOP_WEIGHT / _TOP_WEIGHT.sum())
    top = np.where(rng.random(len(focus)) < share, focus, anywhere)
    first = np.searchsorted(_TOP_OF_LEAF, np.arange(len(TOPS)))
    below = np.bincount(_TOP_OF_LEAF)
    return first[top] + (rng.random(len(top)) * below[top]).astype(np.int64)


def _brands(top: Ints, brands: int, rng: np.random.Generator) -> Ints:
    """A brand for each offer: every brand is at home in one top category; few brands are big."""
    many = np.maximum(1, brands // len(TOPS) + (np.arange(len(TOPS)) < brands % len(TOPS)))
    first = np.cumsum(many) - many
    return np.asarray(first[top] + (many[top] * rng.random(len(top)) ** 2).astype(np.int64))


def _prices(country: Ints, rng: np.random.Generator) -> Floats:
    unit = np.array([c.unit * 10**c.digits for c in COUNTRIES])[country]
    euros = rng.lognormal(np.log(_MEDIAN_PRICE), _PRICE_SPREAD, len(country))
    return np.asarray(np.maximum(5.0, euros) * unit, dtype=np.float64)


def _lives(preset: Preset, offers: int, days: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Hours of birth (0 for most) and of death (beyond the log for most)."""
    late = rng.random(offers) < preset.births * days
    born = np.where(late, rng.integers(0, 24 * days, offers), 0)
    age = np.ceil(rng.exponential(24 / max(preset.deaths, 1e-12), offers))
    return born, born + np.minimum(age, 1e9).astype(np.int64)


# ----------------------------------------------------------------------------- chance without luck
#
# Draws whose shares come out right, however heavy a few of the drawn are.


def even(count: int, rng: np.random.Generator) -> Floats:
    """Numbers in [0, 1) of which every stretch is evenly spread: multiples of the golden ratio.

    >>> np.bincount((5 * even(60, np.random.default_rng(0))).astype(int)).tolist()
    [12, 12, 12, 12, 12]
    """
    return np.asarray((np.arange(count) * _GOLDEN + rng.random()) % 1.0, dtype=np.float64)


def _along(sizes: Ints, order: Ints) -> Floats:
    """A number in (0, 1) for each merchant that is uniform over the *offers*.

    Drawn one by one, a few big merchants would decide what most offers are like. So the merchants
    are laid along a line of offers in the given order; each gets the place of its middle.

    >>> _along(np.array([1, 1, 2]), np.array([2, 0, 1])).tolist()
    [0.625, 0.875, 0.25]
    """
    places = np.empty(len(sizes))
    places[order] = (np.cumsum(sizes[order]) - sizes[order] / 2) / sizes.sum()
    return places


def classes(weights: Floats, sizes: Ints, rng: np.random.Generator) -> Ints:
    """A class for each merchant, so that the classes hold their shares of the offers."""
    ends = np.cumsum(weights) / weights.sum()
    places = _along(sizes, rng.permutation(len(sizes)))
    return np.searchsorted(ends[:-1], places, side="right")


def even_places(sizes: Ints, group: Ints, rng: np.random.Generator) -> Floats:
    """Places along the line of offers that are evenly spread within every group of merchants."""
    line = np.lexsort((rng.random(len(sizes)), group))
    turn = np.empty(len(sizes))
    turn[line] = even(len(sizes), rng)
    return _along(sizes, np.argsort(turn))


def dealt(weights: Floats, sizes: Ints, places: Floats, rng: np.random.Generator) -> Ints:
    """The same, so that the classes hold their shares of the offers at all `places` alike.

    Merchants come in order of place, beginning anywhere; each goes to the class that lacks most.
    """
    tier = (_TIERS * places).astype(np.int64)
    order = np.roll(np.lexsort((rng.random(len(sizes)), tier)), rng.integers(len(sizes)))
    classes, given, total = np.empty(len(sizes), dtype=np.int64), np.zeros(len(weights)), 0
    for merchant in order:
        total += sizes[merchant]
        classes[merchant] = chosen = int(np.argmax(weights * total - given))
        given[chosen] += sizes[merchant]
    return classes
