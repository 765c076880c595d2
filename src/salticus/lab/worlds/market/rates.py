"""How often each offer changes: heavy-tailed, partly from what it is, partly its own."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from salticus.lab.worlds.market.catalogue import Catalogue
from salticus.lab.worlds.market.geography import COUNTRIES
from salticus.lab.worlds.market.names import SERIES
from salticus.lab.worlds.market.presets import Preset
from salticus.lab.worlds.market.taxonomy import LEAVES
from salticus.types import Floats, Ints

_ROUNDS = 4
_PRIOR = 200.0  # offers: smaller groups keep most of what their few merchants gave them

_LEAF_FACTOR = np.array([leaf.factor for leaf in LEAVES])
_COUNTRY_FACTOR = np.array([country.factor for country in COUNTRIES])


def rates_of(catalogue: Catalogue, preset: Preset, rng: np.random.Generator) -> Floats:
    """Triggers of change a day for each offer; 0 for dormant ones.

    ln r = merchant + brand + series + offer (normal, with the preset's spreads) + condition, a
    floor is added, and leaf and country have factors. Then the changes of leaves and countries are
    raked to their factors, so that a few lively offers do not decide which country comes first,
    and the mean is set to the preset's.
    """
    raw = np.exp(_logarithms(catalogue, preset, rng))
    raw *= np.where(catalogue.condition > 0, preset.used_factor, 1.0)
    raw = (1 - preset.floor) * raw / raw.mean() + preset.floor
    raw *= _LEAF_FACTOR[catalogue.leaf] * _COUNTRY_FACTOR[catalogue.country]
    sleepy = preset.dormant * _LEAF_FACTOR[catalogue.leaf] ** -preset.dormant_slope
    raw[rng.random(len(raw)) < sleepy] = 0.0
    often = _changes_a_trigger(catalogue, preset)
    for _ in range(_ROUNDS):
        raw = np.minimum(raw / max(float(raw.mean()), 1e-12), preset.top_rate / preset.rate)
        raw = raked(raw * often, catalogue.leaf, _LEAF_FACTOR) / often
        raw = raked(raw * often, catalogue.country, _COUNTRY_FACTOR) / often
    return np.minimum(preset.rate * raw / max(float(raw.mean()), 1e-12), preset.top_rate)


def _logarithms(catalogue: Catalogue, preset: Preset, rng: np.random.Generator) -> Floats:
    """What merchant, brand and series say of the rate, and what is the offer's own."""
    merchant = preset.merchant_spread * catalogue.merchants.liveliness
    brand = preset.brand_spread * _scores(catalogue.brands, rng)
    series = preset.series_spread * _scores(len(SERIES), rng)
    own = rng.normal(0.0, preset.offer_spread, len(catalogue))
    known = merchant[catalogue.merchant] + brand[catalogue.brand] + series[catalogue.series]
    return np.asarray(known + own, dtype=np.float64)


def _changes_a_trigger(catalogue: Catalogue, preset: Preset) -> Floats:
    """Flash sales and outages change things twice; bursts are not for batches."""
    batch = catalogue.merchants.period[catalogue.merchant] > 0
    twice = preset.flash + preset.outage
    return 1 + twice + np.where(batch, 0.0, (1 - twice) * preset.burst * preset.burst_length)


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
    return np.asarray(
        rates * (wanted ** (sizes**2 / (sizes**2 + _PRIOR**2)))[group], dtype=np.float64
    )
