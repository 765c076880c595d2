"""What sources and found pages promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.types.arrays import Columns, Floats, Ints


@dataclass(frozen=True, slots=True)
class Prospects(Columns):
    """What finding new pages promises, a row a page.

    On a source `rate` new links appear a day, 0 on other pages; a new page is worth `profit` clicks
    when its link appears, and e^−`decay` of that a day later; of the links, the share `vanish` is
    gone a day later. A found page that was never visited is expected to get `remaining` clicks from
    now on; NaN for all others. Of a source's links, `entries` are from the week before its last
    visit, over `span` days; a source of its form is `usual`-ly revisited after so many days.
    """

    rate: Floats
    profit: Floats
    decay: Floats
    vanish: Floats
    remaining: Floats
    entries: Floats
    span: Floats
    usual: Floats

    def finds(self, rows: Ints, ages: Floats) -> Floats:
        """New links that each source has to show so many days after a visit, if each vanishes alike
        at any age: λ(1 − e^(−vτ))/v."""
        x = np.maximum(self.vanish[rows] * ages, 1e-12)
        return np.asarray(self.rate[rows] * ages * -np.expm1(-x) / x)
