"""How much each offer is looked at, on the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from salticus.types import Bools, Floats
from salticus.worlds.market.evenly import even
from salticus.worlds.market.presets import Preset

_MOST = 0.5  # clicks an impression


@dataclass(frozen=True, slots=True)
class Popularity:
    """What is expected of each offer a day."""

    impressions: Floats
    clicks: Floats


def popularity_of(
    clicked: Bools, behaviour: tuple[Floats, ...], preset: Preset, rng: np.random.Generator
) -> Popularity:
    """Impressions a day and clicks an impression, both lognormal.

    The offers of the click stratum (`clicked`) are drawn in proportion to clicks = impressions ×
    clicking. That shifts the logarithm of each lognormal factor by its variance, so they are drawn
    as such. Clicks are spread evenly over how offers behave (columns, the last one weighs most).
    """
    shown, clicking = preset.impression_spread, preset.clicking_spread
    whole = np.hypot(shown, clicking)
    score, other = _even_scores(clicked, behaviour, rng), rng.normal(size=len(clicked))
    first = (shown * score + clicking * other) / whole  # a rotation: normal and independent
    second = (clicking * score - shown * other) / whole
    impressions = preset.impressions * np.exp(shown * first + clicked * shown**2)
    share = np.minimum(preset.clicking * np.exp(clicking * second + clicked * clicking**2), _MOST)
    within = np.minimum(1.0, preset.top_clicks / np.maximum(impressions * share, 1e-300))
    return Popularity(impressions * within, impressions * share * within)


def _even_scores(clicked: Bools, behaviour: tuple[Floats, ...], rng: np.random.Generator) -> Floats:
    """Normal scores of popularity that have nothing to do with behaviour, not even by chance.

    Half of all clicks go to a few dozen offers: whether those few change often, or their host
    rejects visits, would decide every click-weighted figure. So the offers are laid in a row by
    stratum and behaviour, and every stretch of it is as popular as any other.
    """
    order = np.lexsort((rng.random(len(clicked)), *behaviour, clicked))
    places = np.empty(len(clicked))
    places[order] = even(len(clicked), rng)
    tiny = 0.5 / max(1, len(clicked))
    return np.asarray(ndtri(np.clip(places, tiny, 1 - tiny)), dtype=np.float64)
