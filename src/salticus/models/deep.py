"""Networks over dense features and embedded metadata (Han et al. 2019, §4.3), scored by NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from salticus.errors import InputError
from salticus.types import Floats, Floats32, Inputs, Ints, Ints32, Metadata
from salticus.types.compiled import compiled
from salticus.types.state import State

CYCLES = {"weekday": 7, "hour": 24, "local_weekday": 7, "local_hour": 24}
"""Dense features that are names rather than numbers: each has so many, and one for unknown."""

FAR = 8.0
"""Standard deviations from the middle beyond which a number says no more."""

_CHUNK = 1024  # rows: all that they need fits into a core's own cache


@dataclass(frozen=True, slots=True)
class Layout:
    """What a network's first layer sees, in this order.

    The numbers `names`, compressed and standardised; one indicator for each of `holes` (places in
    `names`), 1 = unknown; the embedded `cycles`; a state of `state` numbers read from the page's
    last `steps` changes; then what depends on the page alone: the embedded `fields` of metadata
    (`sizes` codes, `widths` numbers each) and the mean of its title's words (`buckets`, `word`).
    """

    names: tuple[str, ...]
    holes: tuple[int, ...]
    cycles: tuple[str, ...]
    fields: tuple[str, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    buckets: int = 0
    word: int = 0
    cycle: int = 4
    steps: int = 0
    state: int = 0
    hidden: tuple[int, ...] = (256, 128, 64)
    outputs: int = 1

    @property
    def dense(self) -> int:
        return len(self.names) + len(self.holes)

    @property
    def static(self) -> int:
        return sum(self.widths) + self.word

    @property
    def inputs(self) -> int:
        return self.dense + self.cycle * len(self.cycles) + self.state + self.static

    def levels(self) -> Iterator[tuple[str, int, int]]:
        """The layers: name, numbers in, numbers out."""
        widths = (self.inputs, *self.hidden, self.outputs)
        for k, (before, after) in enumerate(zip(widths[:-1], widths[1:], strict=True)):
            yield f"layer{k}", before, after

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Self:
        """The inverse of ``asdict``, after a way through JSON."""
        known: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        return cls(**known)


class DeepModel:
    """Numbers and embeddings → ReLU layers → one log-odds a horizon.

    What embeddings add to the first layer is looked up: there is a row of it for every code, so
    that only numbers and words are multiplied.

    A number x enters as (sign(x)·ln(1 + |x|/scale) − middle)/spread, all three of the training
    rows; an unknown one as 0, with an indicator. Weights are float32.

    Cost: 0.15 MFLOP and 4 kB a row, of memory that is used again for every chunk.
    """

    kind: ClassVar[str] = "dnn"

    def __init__(self, layout: Layout, arrays: State) -> None:
        self.layout = layout
        self.weights_ = arrays

    def logits(self, inputs: Inputs, metadata: Metadata) -> Floats:
        self._check(inputs, metadata)
        answer = np.empty((len(inputs), self.layout.outputs))

        def score(low: int) -> None:
            rows = slice(low, min(len(inputs), low + _CHUNK))
            level = self._numbers(inputs, rows, metadata) @ front
            _add_codes(level, table, self._codes(inputs, rows, metadata) + starts)
            answer[rows] = self._climb(level)

        with one_core_a_product():
            front, table, starts = self._first_layer()
            on_all_cores(score, range(0, len(inputs), _CHUNK))
        return answer

    def settings(self) -> dict[str, Any]:
        return asdict(self.layout)

    def arrays(self) -> State:
        return dict(self.weights_)

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: State) -> Self:
        return cls(Layout.of(settings), dict(arrays))

    def _check(self, inputs: Inputs, metadata: Metadata) -> None:
        sizes = dict(zip(metadata.fields, metadata.sizes, strict=True))
        wanted = dict(zip(self.layout.fields, self.layout.sizes, strict=True))
        if wanted != {name: sizes.get(name) for name in wanted}:
            raise InputError("the metadata are not of the vocabulary that the model was trained on")
        if self.layout.word and metadata.buckets != self.layout.buckets:
            raise InputError(f"titles are in {metadata.buckets} buckets, not {self.layout.buckets}")
        absent = {*self.layout.names, *self.layout.cycles} - set(inputs.names)
        if absent:
            raise InputError(f"the model needs the features {', '.join(sorted(absent))}")

    def _first_layer(self) -> tuple[Floats32, Floats32, Ints]:
        """The first layer's weights of what `_numbers` gives; and what each code of `_codes` adds
        to its outputs, with the place of each column's first code."""
        layout, first = self.layout, self.weights_["layer0/weight"]
        fields = zip(layout.fields, layout.widths, strict=True)
        parts = [("", layout.dense), *((f"cycle/{name}", layout.cycle) for name in layout.cycles)]
        parts += [("", layout.state), *((f"field/{name}", n) for name, n in fields)]
        parts += [("", layout.word)]
        front, tables = [], [np.empty((0, first.shape[1]), dtype=np.float32)]
        for (name, _), rows in zip(
            parts, np.split(first, np.cumsum([n for _, n in parts])[:-1]), strict=True
        ):
            if name:
                tables.append(self.weights_[name] @ rows)
            else:
                front.append(rows)
        starts = np.cumsum([len(table) for table in tables])[:-1]
        return np.concatenate(front), np.concatenate(tables), starts

    def _numbers(self, inputs: Inputs, rows: slice, metadata: Metadata) -> Floats32:
        """What the first layer multiplies: numbers, what is unknown, last changes, words."""
        layout, weights = self.layout, self.weights_
        spot = [inputs.names.index(name) for name in layout.names]
        numbers = inputs.dense[rows].take(spot, axis=1)
        wide = layout.dense + layout.state + layout.word
        first = np.empty((len(numbers), wide), dtype=np.float32)
        first[:, : len(spot)] = standardised(numbers, weights)
        holes = numbers.take(layout.holes, axis=1)
        np.isnan(holes, out=first[:, len(spot) : layout.dense], casting="unsafe")
        if layout.state:
            state = self._state(inputs.steps[rows])
            first[:, layout.dense : layout.dense + layout.state] = state
        if layout.word:
            words = metadata.words[inputs.page[rows]]
            pooled(weights["words"], words, first[:, wide - layout.word :])
        return first

    def _codes(self, inputs: Inputs, rows: slice, metadata: Metadata) -> Ints:
        """The codes of the moment and of the page: rows × (cycles, then fields)."""
        layout, page = self.layout, inputs.page[rows]
        found = np.empty((len(page), len(layout.cycles) + len(layout.fields)), dtype=np.int64)
        for at, name in enumerate(layout.cycles):
            column = inputs.dense[rows, inputs.names.index(name)]
            found[:, at] = cycle_code(column, CYCLES[name])
        for at, name in enumerate(layout.fields, start=len(layout.cycles)):
            found[:, at] = metadata.codes[page, metadata.fields.index(name)]
        return found

    def _state(self, steps: Floats32) -> Floats32:
        """What the last changes say; a plain network does not look at them."""
        raise NotImplementedError

    def _climb(self, level: Floats32) -> Floats32:
        """The log-odds, from the first layer's sums on."""
        for k in range(len(self.layout.hidden)):
            level += self.weights_[f"layer{k}/bias"]
            np.maximum(level, 0.0, out=level)
            level = level @ self.weights_[f"layer{k + 1}/weight"]
        return level + self.weights_[f"layer{len(self.layout.hidden)}/bias"]


class SequenceModel(DeepModel):
    """The network, with causal convolutions over a page's last N changes beside its inputs.

    Each level sees two neighbouring places of the one below, so that log₂ N of them see all: the
    dilated convolutions of van den Oord et al. (2016, "WaveNet"), of which only the last place is
    wanted and only what it needs is computed. A change is its three numbers (`STEP`) and an
    indicator that there was one; what is unknown is 0. N is a power of two; where more changes are
    given, the latest count.
    """

    kind: ClassVar[str] = "sequence"

    def _check(self, inputs: Inputs, metadata: Metadata) -> None:
        DeepModel._check(self, inputs, metadata)
        if inputs.steps.shape[1] < self.layout.steps:
            raise InputError(
                f"the model needs a page's last {self.layout.steps} changes,"
                f" not {inputs.steps.shape[1]}"
            )

    def _state(self, steps: Floats32) -> Floats32:
        level = step_inputs(steps[:, steps.shape[1] - self.layout.steps :])
        for k in range(self.layout.steps.bit_length() - 1):
            level = level.reshape(len(level) * level.shape[1] // 2, -1)
            level = level @ self.weights_[f"step{k}/weight"]
            level += self.weights_[f"step{k}/bias"]
            np.maximum(level, 0.0, out=level)
            level = level.reshape(len(steps), -1, level.shape[1])
        return level[:, 0]


def one_core_a_product() -> AbstractContextManager[Any]:
    """Within, each matrix product has one core: small ones lose by being spread, and the threads
    that helped with one wait busily for the next, on cores that others need."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


def on_all_cores(work: Callable[[int], None], parts: Sequence[int]) -> None:
    """Do the work of all parts, each on one core."""
    known = hasattr(os, "sched_getaffinity")  # not everywhere
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    if len(parts) < 2 * cores:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(work, parts))


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def standardised(numbers: Floats32, weights: State) -> Floats32:
    """Numbers, compressed at the scale of their column and standardised; unknown ones are 0."""
    large = np.empty(numbers.shape, dtype=np.float32)
    _scaled(numbers, weights["scale"], large)
    np.log(large, out=large)
    _signed(numbers, weights["middle"], weights["spread"], large)
    return large


@compiled
def _scaled(numbers: Any, scale: Any, out: Any) -> None:
    """What is beyond all measure becomes infinite, and is cut off later."""
    for row in range(len(numbers)):
        mine, told = out[row], numbers[row]
        for k in range(len(scale)):
            mine[k] = np.abs(told[k]) / scale[k] + np.float32(1.0)


@compiled
def _signed(numbers: Any, middle: Any, spread: Any, out: Any) -> None:
    far = np.float32(FAR)
    for row in range(len(numbers)):
        mine, told = out[row], numbers[row]
        for k in range(len(middle)):
            x = (np.copysign(mine[k], told[k]) - middle[k]) / spread[k]
            x = min(max(x, -far), far)
            mine[k] = x if told[k] == told[k] else np.float32(0.0)


def cycle_code(column: Floats32, size: int) -> Ints32:
    """A code for each value of a cycle; the last one is for unknown.

    >>> cycle_code(np.array([0.0, 6.0, np.nan], dtype=np.float32), 7)
    array([0, 6, 7], dtype=int32)
    """
    known = (column >= 0) & (column < size)
    return np.where(known, column, np.float32(size)).astype(np.int32)


@compiled
def pooled(table: Any, words: Any, out: Any) -> None:
    """The mean over each row's words; 0 where there is none."""
    for row in range(len(words)):
        total, count = out[row], np.float32(0.0)
        total[:] = np.float32(0.0)
        for word in words[row]:
            if word >= 0:
                total += table[word]
                count += np.float32(1.0)
        if count:
            total /= count


@compiled
def _add_codes(level: Any, table: Any, places: Any) -> None:
    """Add to each row what its codes say."""
    for row in range(len(level)):
        mine = level[row]
        for place in places[row]:
            mine += table[place]


def step_inputs(steps: Floats32) -> Floats32:
    """Rows × N × 4: the numbers of each change, 0 where unknown, and whether there was one."""
    known = ~np.isnan(steps[:, :, :1])
    numbers = np.nan_to_num(steps, nan=0.0)
    return np.concatenate([numbers, known.astype(np.float32)], axis=2)
