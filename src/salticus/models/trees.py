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

BLOCK = 1 << 12  # rows that are scored together: their features stay in a core's cache
_ROWS = 512  # of them that go through a tree together

_KEYS = ((np.uint16(0x09AF), np.uint16(12)), (np.uint64(0x03F79D71B4CB0A89), np.uint64(58)))
"""For trees of at most 16 and 64 leaves: a factor and a shift that turn a single bit into a number
of its own (a sequence of de Bruijn)."""

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
        """Log-odds of each row of features; columns that lie in one piece are read the fastest."""
        out = np.full(len(x), self.baseline)
        nodes = (self.feature, self.threshold, self.unknown_first, self.first)
        root = np.append(self.root, len(self.first)).astype(np.int64)
        leaves = _leaves(self.first)
        for key in _KEYS:
            bits = 8 * key[0].itemsize
            if leaves.max(initial=0) <= bits:
                masks = np.empty(len(leaves), dtype=key[0].dtype)
                values = np.zeros((len(self.root), bits))
                _mark((self.first, self.value, leaves), root, key, masks, values)
                columns = np.ascontiguousarray(x.T, dtype=np.float32)
                _cut(columns, (*nodes, masks), (root, values), key, out)
                return out
        rows = np.ascontiguousarray(x, dtype=np.float32)
        _walk(rows, (*nodes, self.value), self.root, self.depth, out)
        return out

    def arrays(self) -> State:
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of(cls, arrays: State) -> Self:
        kept: dict[str, Any] = {field.name: arrays[field.name] for field in fields(cls)}
        return cls(**kept | {"baseline": float(arrays["baseline"])})


@compiled
def _leaves(first: Any) -> Any:
    """How many leaves each node leads to; children come after their parents."""
    leaves = np.ones(len(first), dtype=np.int64)
    for node in range(len(first) - 1, -1, -1):
        if first[node] != node:
            leaves[node] = leaves[first[node]] + leaves[first[node] + 1]
    return leaves


@compiled
def _mark(tree: Any, root: Any, key: Any, masks: Any, values: Any) -> None:
    """Of each node the leaves that stay possible for a row that does not go to its first child, a
    bit each, from the left; and the values of each tree's leaves by the keys of their bits."""
    first, value, leaves = tree
    factor, shift = key
    begin, one = np.zeros(len(first), dtype=np.uint64), np.uint64(1)
    for t in range(len(root) - 1):
        for node in range(root[t], root[t + 1]):
            child = first[node]
            if child == node:
                bit = masks.dtype.type(one << begin[node])
                values[t, masks.dtype.type(bit * factor) >> shift] = value[node]
                continue
            begin[child], gone = begin[node], np.uint64(leaves[child])
            begin[child + 1] = begin[node] + gone
            masks[node] = masks.dtype.type(~(((one << gone) - one) << begin[node]))


@compiled
def _cut(x: Any, nodes: Any, trees: Any, key: Any, out: Any) -> None:
    """Add every tree's leaf of every row; `x` is features × rows.

    Each node takes away the leaves that its answer excludes, wherever it lies; the first leaf that
    is left is the row's (Lucchese et al. 2015, "QuickScorer"). That asks more than the way from
    the root, but of many rows at once, without a jump.
    """
    feature, threshold, unknown_first, first, masks = nodes
    (root, values), (factor, shift) = trees, key
    left, found = np.empty(_ROWS, dtype=masks.dtype), np.empty(_ROWS, dtype=masks.dtype)
    every = ~masks.dtype.type(0)
    for start in range(0, x.shape[1], _ROWS):
        total = out[start : start + _ROWS]
        for tree in range(len(root) - 1):
            left[:], value = every, values[tree]
            for node in range(root[tree], root[tree + 1]):
                if first[node] == node:
                    continue
                known, limit = x[feature[node], start : start + _ROWS], threshold[node]
                mask = masks[node]
                if unknown_first[node]:
                    for row in range(len(known)):
                        left[row] &= mask if known[row] > limit else every
                else:
                    for row in range(len(known)):
                        left[row] &= every if known[row] <= limit else mask
            for row in range(len(total)):
                found[row] = (left[row] & -left[row]) * factor
            for row in range(len(total)):
                total[row] += value[found[row] >> shift]


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
        out = np.empty((len(self.names), len(metadata)), dtype=np.float32)
        self.fill(out, metadata, np.arange(len(metadata)), horizon)
        return out.T

    def fill(self, out: Floats32, metadata: Metadata, page: Ints, horizon: int) -> None:
        """The columns of these pages as rows of `out`."""
        starts = np.cumsum([0, *self.sizes])
        table = self.table[horizon]
        for at, field in enumerate(self.fields):
            column = metadata.codes[:, metadata.fields.index(field)]
            _look_up(table[starts[at] : starts[at + 1]], column, page, out[at])
        if self.words.shape[1]:
            _mean_word(metadata.words, self.words[horizon], page, out[-1])


@compiled
def _look_up(table: Any, codes: Any, page: Any, out: Any) -> None:
    for row in range(len(page)):
        code = codes[page[row]]
        out[row] = table[code] if 0 <= code < len(table) else np.nan


@compiled
def _mean_word(words: Any, table: Any, page: Any, out: Any) -> None:
    for row in range(len(page)):
        total, count = 0.0, 0
        for word in words[page[row]]:
            if word >= 0:
                total += table[word]
                count += 1
        out[row] = total / count if count else np.nan


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
        starts, own = range(0, len(inputs), BLOCK), len(self.dense) + len(self.pairs)

        def score(start: int) -> None:
            rows = slice(start, start + BLOCK)
            page = inputs.page[rows]
            x = np.empty((own + len(self.encoding.names), len(page)), dtype=np.float32)
            x[:own] = dense_frame(inputs.dense[rows], inputs.names, self.dense, self.pairs).T
            for horizon, forest in enumerate(self.forests):
                self.encoding.fill(x[own:], metadata, page, horizon)
                out[rows, horizon] = forest.scores(x.T)

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
    out = np.empty((len(wanted) + len(pairs), len(dense)), dtype=np.float32)
    for at, name in enumerate(wanted):
        out[at] = dense[:, place[name]]
    for at, (how, *columns) in enumerate(pairs, start=len(wanted)):
        out[at] = _DERIVED[how](*(dense[:, place[name]] for name in columns))
    return out.T
