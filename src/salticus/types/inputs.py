"""What a model is asked and what it is told of a page: rows of features, and codes of metadata."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from salticus.types.arrays import Bools, Columns, Floats, Ints

Floats32 = NDArray[np.float32]
Ints32 = NDArray[np.int32]
Bytes = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Inputs(Columns):
    """One row a prediction: of which page, when, and what was known then.

    `page` is the page's row in the metadata, `hour` the whole UTC hour (since 1970) in which the
    prediction is made. `dense` is rows × `names`; NaN means unknown, never zero. `steps` is rows ×
    N × len(`STEP`): the page's last N changes as they were found, the latest last; NaN before the
    first. It is empty (N = 0) unless a model asks for it.
    """

    page: Ints
    hour: Ints
    dense: Floats32
    steps: Floats32
    names: tuple[str, ...]

    def column(self, name: str) -> Floats32:
        """The column of that name."""
        return self.dense[:, self.names.index(name)]

    def select(self, names: tuple[str, ...]) -> Floats32:
        """The columns of these names, in this order."""
        if names == self.names:
            return self.dense
        return self.dense[:, [self.names.index(name) for name in names]]


STEP = ("gap", "span", "move")
"""Of a change: log1p of the hours since the change before it, log1p of the hours since the visit
before it was found (how exactly its time is known), and the logarithm of new price / old price."""


@dataclass(frozen=True, slots=True)
class Metadata(Columns):
    """Over pages: what is known of each without its history, as numbers of a vocabulary.

    `codes` is pages × `fields`; `words` is pages × W, hashed n-grams of the title, -1 where there
    are fewer. `sizes` tells how many codes each field has, `buckets` how many n-grams there are.
    """

    codes: Ints32
    words: Ints32
    fields: tuple[str, ...]
    sizes: tuple[int, ...]
    buckets: int


@dataclass(frozen=True, slots=True)
class Examples(Columns):
    """Predictions whose outcome is known.

    `label` is rows × horizons: 1 = happened in that stretch of time, 0 = not, -1 = not at risk any
    more (it happened in an earlier stretch) or not known (the log ends). `weight` is 1/(probability
    that the row was sampled), relative to all rows that might have been. `seen` tells pages that
    training may use, `uniform` those of the uniform stratum; `known` is how many observations of
    the page there were before.
    """

    inputs: Inputs
    label: Bytes
    weight: Floats
    seen: Bools
    uniform: Bools
    known: Ints

    def take(self, rows: Ints | Bools) -> Examples:
        """The given rows, in the given order."""
        return replace(Columns.take(self, rows), inputs=self.inputs.take(rows))

    def join(self, other: Examples) -> Examples:
        """These rows, then the other's."""
        return replace(Columns.join(self, other), inputs=self.inputs.join(other.inputs))
