"""All that is drawn once for a market, before its offers live block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from salticus.lab.worlds.market.catalogue import Catalogue, catalogue_of
from salticus.lab.worlds.market.popularity import Popularity, popularity_of
from salticus.lab.worlds.market.presets import Preset
from salticus.lab.worlds.market.promotions import Promotions, promotions_of
from salticus.lab.worlds.market.rates import rates_of
from salticus.lab.worlds.market.rhythm import Calendar, calendar_of
from salticus.types import Floats


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
