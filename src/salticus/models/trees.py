"""Boosted trees as plain arrays: scored without the library that grew them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from salticus.types import Bools, Floats, Floats32, Inputs, Ints, Metadata
from salticus.types.compiled import compiled
from salticus.types.state import State, part_of

Places = NDArray[np.uint32]

BLOCK = 1 << 14  # rows that are scored together: their features stay in a core's cache

Derived = tuple[tuple[str, ...], ...]
"""Names of what is derived, each with the features that it is derived of."""

_HOURS = {"week": 168.0, "month": 720.0, "all": np.inf}  # how long a window is at most
_OWN = 0.3  # changes at the rate of its kind that a page is thought to have had before it is known


def _ratio(one: Floats32, other: Floats32) -> Floats32:
    return np.divide(one, other, out=np.full_like(one, np.nan), where=other > 0)


def _drawn(hours: float, rate: Floats32, age: Floats32, *levels: Floats32) -> Floats32:
    """A page's rate drawn to that of its merchant and, if known, of its shelf (ALGORITHMS §5)."""
    merchant, shelf = levels
    level = np.where(np.isnan(shelf), merchant, (merchant + shelf) / 2)
    level = np.maximum(level, np.float32(1e-6))
    watched = np.nan_to_num(np.minimum(age, np.float32(hours)))
    changes = np.nan_to_num(rate) * watched
    return np.asarray((changes + _OWN) / (watched + _OWN / level), dtype=np.float32)


def _paced(hours: float, *columns: Floats32) -> Floats32:
    """The same over the stretch ahead, which is as lively as the merchant's week says."""
    *known, ahead = columns
    return _drawn(hours, *known) * _ratio(ahead, known[2])


_DERIVED: dict[str, Callable[..., Floats32]] = {
    "ratio": _ratio,
    **{f"drawn_{window}": partial(_drawn, hours) for window, hours in _HOURS.items()},
    **{f"paced_{window}": partial(_paced, hours) for window, hours in _HOURS.items()},
}


@dataclass(frozen=True, slots=True)
class Forest:
    """The trees of one horizon; nodes of all trees, one tree after the other.

    A row goes from a node to `first`, or to the node after it where its `feature` is above the
    `threshold` or, unless `unknown_first`, not known. A leaf leads to itself, and adds its `value`
    to `baseline`: log-odds. `root` and `depth` are the trees'.
    """

    feature: Places
    threshold: Floats32
    unknown_first: Bools
    first: Places
    value: Floats
    root: Places
    depth: Ints
    baseline: float

    def scores(self, x: Floats32) -> Floats:
        """Log-odds of each row of features."""
        out = np.full(len(x), self.baseline)
        nodes = (self.feature, self.threshold, self.unknown_first, self.first, self.value)
        _walk(np.ascontiguousarray(x, dtype=np.float32), nodes, self.root, self.depth, out)
        return out

    def arrays(self) -> State:
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of(cls, arrays: State) -> Self:
        kept: dict[str, Any] = {field.name: arrays[field.name] for field in fields(cls)}
        return cls(**kept | {"baseline": float(arrays["baseline"])})


@compiled
def _walk(x: Any, nodes: Any, root: Any, depth: Any, out: Any) -> None:
    """Add every tree's leaf of every row: tree by tree over a few rows at a time.

    The steps of different rows do not wait for one another, so that they overlap. Places are
    unsigned, which saves the question whether they count from the end.
    """
    feature, threshold, unknown_first, first, value = nodes
    at = np.empty(64, dtype=np.uint32)
    for start in range(0, len(x), 64):
        part = x[start : start + 64]
        for tree in range(len(root)):
            at[:] = root[tree]
            for _ in range(depth[tree]):
                for row in range(len(part)):
                    node = at[row]
                    known = part[row, feature[node]]
                    stays = (known <= threshold[node]) | ((known != known) & unknown_first[node])
                    at[row] = first[node] + np.uint32(not stays)
            for row in range(len(part)):
                out[start + row] += value[at[row]]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What pages with the same metadata did in training: log-odds, shrunk to the mean.

    `table` is horizons × the codes of all `fields`, one field after the other, each of its size;
    `words` is horizons × n-grams of the title (none: the title is not used).
    """

    fields: tuple[str, ...]
    sizes: tuple[int, ...]
    table: Floats32
    words: Floats32

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.fields, *(("title",) if self.words.shape[1] else ()))

    def columns(self, metadata: Metadata, horizon: int) -> Floats32:
        """Pages × names: of a title, the mean over its n-grams; NaN where nothing is told."""
        out = np.full((len(metadata), len(self.names)), np.nan, dtype=np.float32)
        starts = np.cumsum([0, *self.sizes])
        for at, field in enumerate(self.fields):
            code = metadata.codes[:, metadata.fields.index(field)]
            known = (code >= 0) & (code < self.sizes[at])
            out[known, at] = self.table[horizon, starts[at] + code[known]]
        if self.words.shape[1]:
            out[:, -1] = _mean_word(metadata.words, self.words[horizon])
        return out


@compiled
def _mean_word(words: Any, table: Any) -> Any:
    out = np.empty(len(words), dtype=np.float32)
    for row in range(len(words)):
        total, count = 0.0, 0
        for word in words[row]:
            if word >= 0:
                total += table[word]
                count += 1
        out[row] = total / count if count else np.nan
    return out


@dataclass(frozen=True, slots=True)
class TreesModel:
    """Boosted trees for each horizon, over dense features, pairs of them and encoded metadata.

    `pairs` are (how, features ...): what is derived of several features, which a tree cannot split
    on by itself.
    """

    kind: ClassVar[str] = "trees"
    dense: tuple[str, ...]
    pairs: Derived
    encoding: Encoding
    forests: tuple[Forest, ...]

    def logits(self, inputs: Inputs, metadata: Metadata) -> Floats:
        """Log-odds, rows × horizons; blocks of rows on all cores."""
        out = np.empty((len(inputs), len(self.forests)))
        page, starts = inputs.page, range(0, len(inputs), BLOCK)
        if len(page) < len(metadata):
            metadata, page = metadata.take(page), np.arange(len(page))
        encoded = [self.encoding.columns(metadata, k) for k in range(len(self.forests))]

        def score(start: int) -> None:
            rows = slice(start, start + BLOCK)
            x = dense_frame(inputs.dense[rows], inputs.names, self.dense, self.pairs)
            for horizon, forest in enumerate(self.forests):
                out[rows, horizon] = forest.scores(np.hstack([x, encoded[horizon][page[rows]]]))

        with ThreadPoolExecutor(min(os.cpu_count() or 1, max(1, len(starts)))) as cores:
            list(cores.map(score, starts))
        return out

    def settings(self) -> dict[str, Any]:
        return {
            "dense": list(self.dense),
            "pairs": [list(pair) for pair in self.pairs],
            "fields": list(self.encoding.fields),
            "sizes": list(self.encoding.sizes),
            "horizons": len(self.forests),
        }

    def arrays(self) -> State:
        """Encodings, and the trees of horizon 0, 1, ..."""
        trees = {
            f"{horizon}.{name}": array
            for horizon, forest in enumerate(self.forests)
            for name, array in forest.arrays().items()
        }
        return {"table": self.encoding.table, "words": self.encoding.words, **trees}

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: State) -> Self:
        fields, sizes, dense = (tuple(settings[name]) for name in ("fields", "sizes", "dense"))
        encoding = Encoding(fields, sizes, arrays["table"], arrays["words"])
        pairs = tuple(tuple(pair) for pair in settings["pairs"])
        horizons = range(settings["horizons"])
        forests = tuple(Forest.of(part_of(arrays, f"{horizon}.")) for horizon in horizons)
        return cls(dense, pairs, encoding, forests)


def dense_frame(
    dense: Floats32, names: tuple[str, ...], wanted: tuple[str, ...], pairs: Derived
) -> Floats32:
    """The wanted columns, then what is derived of them; a ratio to nothing is unknown."""
    place = {name: at for at, name in enumerate(names)}
    out = np.empty((len(dense), len(wanted) + len(pairs)), dtype=np.float32)
    out[:, : len(wanted)] = dense[:, [place[name] for name in wanted]]
    for at, (how, *columns) in enumerate(pairs, start=len(wanted)):
        out[:, at] = _DERIVED[how](*(dense[:, place[name]] for name in columns))
    return out
