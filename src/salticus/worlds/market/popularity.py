"""How much each offer is looked at, on the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.types import Bools, Floats
from salticus.worlds.market.presets import Preset

_MOST = 0.5  # clicks an impression


@dataclass(frozen=True, slots=True)
class Popularity:
    """What is expected of each offer a day."""

    impressions: Floats
    clicks: Floats


def popularity_of(clicked: Bools, preset: Preset, rng: np.random.Generator) -> Popularity:
    """Impressions a day and clicks an impression, both lognormal.

    The offers of the click stratum (`clicked`) are drawn in proportion to clicks = impressions ×
    clicking. That shifts the logarithm of each lognormal factor by its variance, so they are drawn
    as such.
    """
    z = rng.normal(size=(2, len(clicked)))
    shown, clicking = preset.impression_spread, preset.clicking_spread
    impressions = preset.impressions * np.exp(shown * z[0] + clicked * shown**2)
    share = np.minimum(preset.clicking * np.exp(clicking * z[1] + clicked * clicking**2), _MOST)
    within = np.minimum(1.0, preset.top_clicks / np.maximum(impressions * share, 1e-300))
    return Popularity(impressions * within, impressions * share * within)
