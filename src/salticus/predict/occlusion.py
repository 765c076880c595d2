"""What each feature adds to a model's word on a page: the word with it less the word without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from salticus.models.calibrated import Calibrated
from salticus.types import Floats, Inputs, Metadata

_EDGE = 1  # which horizon the word is about: the second, a day as a rule


def contributions(
    model: Calibrated, inputs: Inputs, known: Metadata, unknown: Metadata
) -> list[tuple[str, float]]:
    """Of one page (row 0): each feature, and by how much it raises the log-odds of a change.

    A feature is taken away by saying that it is unknown: NaN, or the code of what was never met in
    `unknown`. Parts of features that tell the same are small each: with one of them gone the others
    still tell it. Largest first. Cost: one score a feature.
    """
    names, fields = inputs.names, known.fields
    rows = 1 + len(names) + len(fields) + 1
    dense = np.repeat(inputs.dense[:1], rows, axis=0)
    codes = np.repeat(known.codes[:1], rows, axis=0)
    words = np.repeat(known.words[:1], rows, axis=0)
    for k in range(len(names)):
        dense[1 + k, k] = np.nan
    for k in range(len(fields)):
        codes[1 + len(names) + k, k] = unknown.codes[0, k]
    words[-1] = -1
    steps = np.repeat(inputs.steps[:1], rows, axis=0)
    asked = Inputs(np.arange(rows), np.repeat(inputs.hour[:1], rows), dense, steps, names)
    odds = _odds(model, asked, replace(known, codes=codes, words=words))
    parts = zip([*names, *fields, "title"], (odds[0] - odds[1:]).tolist(), strict=True)
    return sorted(((n, p) for n, p in parts if abs(p) > 1e-6), key=lambda part: -abs(part[1]))


def _odds(model: Calibrated, inputs: Inputs, metadata: Metadata) -> Floats:
    """Log-odds of a change within a day or so."""
    chance = model.probabilities(inputs, metadata)
    chance = np.clip(chance[:, min(_EDGE, chance.shape[1] - 1)], 1e-9, 1 - 1e-9)
    return np.asarray(np.log(chance) - np.log1p(-chance))
