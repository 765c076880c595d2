"""All that is drawn once for a market, before its offers live block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from salticus.lab.worlds.market.catalogue import Catalogue, catalogue_of
from salticus.lab.worlds.market.evenly import even
from salticus.lab.worlds.market.presets import Preset
from salticus.lab.worlds.market.promotions import Promotions, promotions_of
from salticus.lab.worlds.market.rates import rates_of
from salticus.lab.worlds.market.rhythm import Calendar, calendar_of
from salticus.types import Floats, Ints

_MOST = 0.5  # clicks an impression
_STRETCH = 64  # offers that behave alike


@dataclass(frozen=True, slots=True)
class Scene:
    """Who sells what, how often it changes (`rate`, triggers a day), who looks at it, and how
    probably a visit to it fails."""

    preset: Preset
    calendar: Calendar
    catalogue: Catalogue
    promotions: Promotions
    rate: Floats
    popularity: Popularity
    failure: Floats

    def __len__(self) -> int:
        return len(self.rate)

    def block(self, rows: slice) -> Scene:
        """The same for some of the offers."""
        return replace(
            self,
            catalogue=self.catalogue.block(rows),
            rate=self.rate[rows],
            popularity=Popularity(self.popularity.impressions[rows], self.popularity.clicks[rows]),
            failure=self.failure[rows],
        )


def scene_of(preset: Preset, offers: int, days: int, seed: np.random.SeedSequence) -> Scene:
    """Draw a scene. Each part has its own chance: more of one does not alter another."""
    chance = [np.random.default_rng(part) for part in seed.spawn(4)]
    catalogue = catalogue_of(preset, offers, days, chance[0])
    rate, failure = rates_of(catalogue, preset, chance[2]), failure_of(catalogue, preset)
    return Scene(
        preset=preset,
        calendar=calendar_of(preset, days),
        catalogue=catalogue,
        promotions=promotions_of(preset, len(catalogue.merchants), days, chance[1]),
        rate=rate,
        popularity=popularity_of(catalogue, (rate, failure), preset, chance[3]),
        failure=failure,
    )


def failure_of(catalogue: Catalogue, preset: Preset) -> Floats:
    """The probability that a visit of each offer fails."""
    rejects = catalogue.merchants.rejects[catalogue.merchant]
    return np.where(rejects, preset.rejection, preset.failure)


@dataclass(frozen=True, slots=True)
class Popularity:
    """What is expected of each offer a day."""

    impressions: Floats
    clicks: Floats


def popularity_of(
    offers: Catalogue, behaviour: tuple[Floats, ...], preset: Preset, rng: np.random.Generator
) -> Popularity:
    """Impressions a day and clicks an impression, both lognormal.

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
    return Popularity(impressions * within, impressions * share * within)


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
