"""Networks over dense features and embedded metadata (Han et al. 2019, §4.3), scored by NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from salticus.errors import InputError
from salticus.types import Floats, Floats32, Inputs, Ints, Ints32, Metadata
from salticus.types.state import State

CYCLES = {"weekday": 7, "hour": 24, "local_weekday": 7, "local_hour": 24}
"""Dense features that are names rather than numbers: each has so many, and one for unknown."""

FAR = 8.0
"""Standard deviations from the middle beyond which a number says no more."""

_CHUNK = 2048  # rows: all that they need fits into a core's own cache
_KEPT = 1 << 18  # pages whose embeddings are kept between calls


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

    A number x enters as (sign(x)·ln(1 + |x|/scale) − middle)/spread, all three of the training
    rows; an unknown one as 0, with an indicator. Weights are float32.

    Cost: 0.1 MFLOP and 8 kB a row, of memory that is used again for every chunk.
    """

    kind: ClassVar[str] = "dnn"

    def __init__(self, layout: Layout, arrays: State) -> None:
        self.layout = layout
        self.weights_ = arrays
        self._static: tuple[Metadata, Floats32] | None = None

    def logits(self, inputs: Inputs, metadata: Metadata) -> Floats:
        self._check(inputs, metadata)
        static, place = self._pages(inputs.page, metadata)
        answer = np.empty((len(inputs), self.layout.outputs))

        def score(low: int) -> None:
            rows = slice(low, min(len(inputs), low + _CHUNK))
            first = np.empty((rows.stop - low, self.layout.inputs), dtype=np.float32)
            self._moving(inputs, rows, first)
            first[:, self.layout.inputs - self.layout.static :] = static[place[rows]]
            answer[rows] = self._climb(first)

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

    def _moving(self, inputs: Inputs, rows: slice, first: Floats32) -> None:
        """Fill in what depends on the moment."""
        layout, weights = self.layout, self.weights_
        spot = [inputs.names.index(name) for name in layout.names]
        numbers = inputs.dense[rows][:, spot]
        first[:, : len(spot)] = standardised(numbers, weights)
        first[:, len(spot) : layout.dense] = np.isnan(numbers[:, list(layout.holes)])
        at = layout.dense
        for name in layout.cycles:
            code = cycle_code(inputs.dense[rows, inputs.names.index(name)], CYCLES[name])
            first[:, at : at + layout.cycle] = weights[f"cycle/{name}"][code]
            at += layout.cycle
        if layout.state:
            first[:, at : at + layout.state] = self._state(inputs.steps[rows])

    def _state(self, steps: Floats32) -> Floats32:
        """What the last changes say; a plain network does not look at them."""
        raise NotImplementedError

    def _climb(self, level: Floats32) -> Floats32:
        for k in range(len(self.layout.hidden)):
            level = level @ self.weights_[f"layer{k}/weight"]
            level += self.weights_[f"layer{k}/bias"]
            np.maximum(level, 0.0, out=level)
        last = f"layer{len(self.layout.hidden)}"
        return np.asarray(level @ self.weights_[f"{last}/weight"] + self.weights_[f"{last}/bias"])

    def _pages(self, page: Ints, metadata: Metadata) -> tuple[Floats32, Ints]:
        """Embeddings of pages, and the row of each prediction's page among them."""
        if self._static is not None and self._static[0] is metadata:
            return self._static[1], page
        if len(metadata) > min(_KEPT, 4 * len(page)):
            few, place = np.unique(page, return_inverse=True)
            return self._embedded(metadata.take(few)), place
        self._static = metadata, self._embedded(metadata)
        return self._static[1], page

    def _embedded(self, metadata: Metadata) -> Floats32:
        layout = self.layout
        answer = np.empty((len(metadata), layout.static), dtype=np.float32)
        at = 0
        for name, width in zip(layout.fields, layout.widths, strict=True):
            codes = metadata.codes[:, metadata.fields.index(name)]
            answer[:, at : at + width] = self.weights_[f"field/{name}"][codes]
            at += width
        if layout.word:
            answer[:, at:] = pooled(self.weights_["words"], metadata.words)
        return answer


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


def on_all_cores(work: Callable[[int], None], parts: Sequence[int]) -> None:
    """Do the work of all parts, each on one core: products so small lose by being spread."""
    known = hasattr(os, "sched_getaffinity")  # not everywhere
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    if len(parts) < 2 * cores:
        for part in parts:
            work(part)
        return
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(cores) as pool:
        list(pool.map(work, parts))


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def standardised(numbers: Floats32, weights: State) -> Floats32:
    """Numbers, compressed at the scale of their column and standardised; unknown ones are 0."""
    large = np.abs(numbers)
    with np.errstate(over="ignore"):  # what is beyond all measure is cut off below
        large /= weights["scale"]
    large += np.float32(1.0)
    np.log(large, out=large)
    np.copysign(large, numbers, out=large)
    large -= weights["middle"]
    large /= weights["spread"]
    np.clip(large, -FAR, FAR, out=large)
    large[np.isnan(large)] = 0.0
    return large


def cycle_code(column: Floats32, size: int) -> Ints32:
    """A code for each value of a cycle; the last one is for unknown.

    >>> cycle_code(np.array([0.0, 6.0, np.nan], dtype=np.float32), 7)
    array([0, 6, 7], dtype=int32)
    """
    known = (column >= 0) & (column < size)
    return np.where(known, column, np.float32(size)).astype(np.int32)


def pooled(table: Floats32, words: Ints32) -> Floats32:
    """The mean over each row's words; 0 where there is none."""
    total = np.zeros((len(words), table.shape[1]), dtype=np.float32)
    for k in range(words.shape[1]):
        here = words[:, k] >= 0
        total += np.where(here[:, None], table[words[:, k]], np.float32(0.0))
    count = np.count_nonzero(words >= 0, axis=1).astype(np.float32)
    total /= np.maximum(count, np.float32(1.0))[:, None]
    return total


def step_inputs(steps: Floats32) -> Floats32:
    """Rows × N × 4: the numbers of each change, 0 where unknown, and whether there was one."""
    known = ~np.isnan(steps[:, :, :1])
    numbers = np.nan_to_num(steps, nan=0.0)
    return np.concatenate([numbers, known.astype(np.float32)], axis=2)
