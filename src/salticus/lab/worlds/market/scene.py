"""All that is drawn once for a market, before its offers live block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from salticus.lab.worlds.market.catalogue import Catalogue, catalogue_of, even
from salticus.lab.worlds.market.geography import COUNTRIES, Calendar, calendar_of
from salticus.lab.worlds.market.presets import Preset
from salticus.lab.worlds.market.taxonomy import LEAVES, SERIES
from salticus.types import Columns, Floats, Ints

DISCOUNTS = (50, 100, 150, 200, 250, 300, 400, 500)  # usual ones, in thousandths

LEAF_FACTOR = np.array([leaf.factor for leaf in LEAVES])
COUNTRY_FACTOR = np.array([country.factor for country in COUNTRIES])

_LENGTH = (3, 11)  # of a campaign in days, half-open
_ROUNDS = 4
_PRIOR = 200.0  # offers: smaller groups keep most of what their few merchants gave them
_MOST = 0.5  # clicks an impression
_STRETCH = 64  # offers that behave alike


@dataclass(frozen=True, slots=True)
class Scene(Columns):
    """Who sells what, how often it changes (`rate`, triggers a day), how many impressions and
    clicks a day it gets on average, and how probably a visit to it fails."""

    preset: Preset
    calendar: Calendar
    catalogue: Catalogue
    promotions: Promotions
    rate: Floats
    impressions: Floats
    clicks: Floats
    failure: Floats

    def block(self, first: int, last: int) -> Scene:
        """The same for some of the offers."""
        rows = np.arange(first, last)
        return replace(self.take(rows), catalogue=self.catalogue.take(rows))


def scene_of(preset: Preset, offers: int, days: int, seed: np.random.SeedSequence) -> Scene:
    """Draw a scene. Each part has its own chance: more of one does not alter another."""
    chance = [np.random.default_rng(part) for part in seed.spawn(4)]
    catalogue = catalogue_of(preset, offers, days, chance[0])
    rate = rates_of(catalogue, preset, chance[2])
    rejects = catalogue.merchants.rejects[catalogue.merchant]
    failure = np.where(rejects, preset.rejection, preset.failure)
    impressions, clicks = _popularity(catalogue, (rate, failure), preset, chance[3])
    return Scene(
        preset=preset,
        calendar=calendar_of(preset, days),
        catalogue=catalogue,
        promotions=promotions_of(preset, len(catalogue.merchants), days, chance[1]),
        rate=rate,
        impressions=impressions,
        clicks=clicks,
        failure=failure,
    )


# --------------------------------------------------------------------------------------- campaigns


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
        many = np.diff(self.first)[merchant]
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


# ---------------------------------------------------------------------- how often an offer changes


def rates_of(catalogue: Catalogue, preset: Preset, rng: np.random.Generator) -> Floats:
    """Triggers of change a day for each offer, heavy-tailed; 0 for dormant ones.

    ln r = merchant + brand + series + offer (normal, with the preset's spreads) + condition, a
    floor is added, and leaf and country have factors. Then the changes of leaves and countries are
    raked to their factors, so that a few lively offers do not decide which country comes first,
    and the mean is set to the preset's.
    """
    raw = np.exp(log_rates(catalogue, preset, rng))
    raw *= np.where(catalogue.condition > 0, preset.used_factor, 1.0)
    raw = (1 - preset.floor) * raw / raw.mean() + preset.floor
    raw *= LEAF_FACTOR[catalogue.leaf] * COUNTRY_FACTOR[catalogue.country]
    sleepy = preset.dormant * LEAF_FACTOR[catalogue.leaf] ** -preset.dormant_slope
    raw[rng.random(len(raw)) < sleepy] = 0.0
    batch = catalogue.merchants.period[catalogue.merchant] > 0
    twice = preset.flash + preset.outage  # these change things twice; bursts are not for batches
    often = 1 + twice + np.where(batch, 0.0, (1 - twice) * preset.burst * preset.burst_length)
    for _ in range(_ROUNDS):
        raw = np.minimum(raw / max(float(raw.mean()), 1e-12), preset.top_rate / preset.rate)
        raw = raked(raw * often, catalogue.leaf, LEAF_FACTOR) / often
        raw = raked(raw * often, catalogue.country, COUNTRY_FACTOR) / often
    return np.minimum(preset.rate * raw / max(float(raw.mean()), 1e-12), preset.top_rate)


def log_rates(catalogue: Catalogue, preset: Preset, rng: np.random.Generator) -> Floats:
    """What merchant, brand and series say of the rate, and what is the offer's own."""
    merchant = preset.merchant_spread * catalogue.merchants.liveliness
    brand = preset.brand_spread * _scores(catalogue.brands, rng)
    series = preset.series_spread * _scores(len(SERIES), rng)
    own = rng.normal(0.0, preset.offer_spread, len(catalogue))
    known = merchant[catalogue.merchant] + brand[catalogue.brand] + series[catalogue.series]
    return np.asarray(known + own, dtype=np.float64)


def _scores(count: int, rng: np.random.Generator) -> Floats:
    """Quantiles of the normal distribution in random order: less a matter of luck than draws."""
    return np.asarray(ndtri((rng.permutation(count) + 0.5) / count), dtype=np.float64)


def raked(rates: Floats, group: Ints, factor: Floats) -> Floats:
    """Rates scaled so that the mean of each group comes to (mean of all) × (factor of the group).

    Small groups come only part of the way.

    >>> raked(np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1]), np.array([1.0, 1.0]))
    array([1., 3., 2.])
    """
    target = rates.mean() * factor / max(float(factor[group].mean()), 1e-12)
    sums = np.bincount(group, rates, len(factor))
    sizes = np.bincount(group, minlength=len(factor))
    wanted = np.divide(target * sizes, sums, out=np.ones(len(factor)), where=sums > 0)
    scale = wanted ** (sizes**2 / (sizes**2 + _PRIOR**2))
    return np.asarray(rates * scale[group], dtype=np.float64)


# ------------------------------------------------------------------------------------- popularity


def _popularity(
    offers: Catalogue, behaviour: tuple[Floats, ...], preset: Preset, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Impressions and clicks a day; impressions and clicks an impression are lognormal.

    The offers of the click stratum (`clicked`) are drawn in proportion to clicks = impressions ×
    clicking. That shifts the logarithm of each lognormal factor by its variance, so they are drawn
    as such. Clicks are spread evenly over how offers behave (columns, the last one weighs most);
    among offers that behave alike, those of a well-known brand, series and category have more.
    """
    shown, clicking, clicked = preset.impression_spread, preset.clicking_spread, offers.clicked
    whole = np.hypot(shown, clicking)
    order = np.lexsort((rng.random(len(clicked)), *behaviour, clicked))
    score = _even_scores(order, _renown(offers, preset.renown, rng), rng)
    other = rng.normal(size=len(clicked))
    first = (shown * score + clicking * other) / whole  # a rotation: normal and independent
    second = (clicking * score - shown * other) / whole
    impressions = preset.impressions * np.exp(shown * first + clicked * shown**2)
    share = np.minimum(preset.clicking * np.exp(clicking * second + clicked * clicking**2), _MOST)
    within = np.minimum(1.0, preset.top_clicks / np.maximum(impressions * share, 1e-300))
    return impressions * within, impressions * share * within


def _renown(offers: Catalogue, share: float, rng: np.random.Generator) -> Floats:
    """How well known each offer is, of variance 1; what it is tells this share of it."""
    kinds = (offers.brand, offers.series, offers.leaf)
    told = sum(rng.normal(size=int(kind.max(initial=0)) + 1)[kind] for kind in kinds)
    own = rng.normal(size=len(offers.brand))
    return np.asarray(np.sqrt(share / len(kinds)) * told + np.sqrt(1.0 - share) * own)


def _even_scores(order: Ints, renown: Floats, rng: np.random.Generator) -> Floats:
    """Normal scores of popularity that have nothing to do with behaviour, not even by chance.

    Half of all clicks go to a few dozen offers: whether those few change often, or their host
    rejects visits, would decide every click-weighted figure. So the offers are laid in a row by
    stratum and behaviour (`order`), and every stretch of it is as popular as any other; within a
    stretch renown decides.
    """
    stretch, places = np.arange(len(order)) // _STRETCH, np.empty(len(order))
    given = even(len(order), rng)
    ranked = order[np.lexsort((renown[order], stretch))]
    places[ranked] = given[np.lexsort((given, stretch))]
    tiny = 0.5 / max(1, len(order))
    return np.asarray(ndtri(np.clip(places, tiny, 1 - tiny)), dtype=np.float64)
