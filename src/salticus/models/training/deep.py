"""Training of the networks over dense features and embedded metadata (Han et al. 2019, §4.3)."""

from __future__ import annotations

import json
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from salticus.errors import InputError
from salticus.features.names import FeatureSet
from salticus.models.deep import CYCLES, DeepModel, Layout, SequenceModel, cycle_code
from salticus.models.training.network import (
    DeepSettings,
    first_weights,
    jax_of,
    optimiser_of,
    runner,
)
from salticus.types import Examples, Floats, Floats32, Ints, Metadata
from salticus.types.state import State

Told = Callable[[str], None]

PUBLISHED = DeepSettings(
    optimiser="proximal",
    rate=0.05,
    batch=512,
    summed=True,
    accumulator=0.1,
    l1=0.001,
    l2=0.001,
    spread=1.0,
    epochs=4,
    cool=False,
)
"""Han et al. 2019, §4.3: 256-128-64 ReLU, Adagrad, L1 = L2 = 0.001, cross-entropy.

The paper names TensorFlow's DNNClassifier (1.x) and leaves the rest open. That class sums the loss
over a batch and takes Adagrad with rate 0.05 and a first accumulator of 0.1; L1 and L2 are given to
it as ProximalAdagradOptimizer. With the mean instead, 0.001 erases most weights and the accumulator
stops the embeddings. The batch is our choice."""

OURS = DeepSettings()
"""What we found better: Adam for the layers; for embeddings, which start at zero, Adagrad with a
first accumulator so large, for batches of 1024 and the mean loss, that codes which are seldom met
move little. AUC on the market world, 400,000 rows, partial observation, features of Han 2019, seen
and unseen pages, one seed: metadata alone .795 and .794, both .828 and .833. With 1e-8, a tenth of
the rate for embeddings and half of that for layers: metadata alone .784 and .780. `PUBLISHED`, one
epoch and untuned: .766 and .767, both .806 and .816."""

STATE = 32
"""Numbers that a sequence model sums a page's last changes up in."""

_CHUNK = 1 << 18  # rows that are handed to JAX at once
_SAMPLE = 200_000  # rows from which the columns' scales are taken


def fit_deep(  # noqa: PLR0913 the same for every kind of model
    train: Examples,
    validation: Examples,
    metadata: Metadata,
    choice: FeatureSet,
    settings: DeepSettings = OURS,
    told: Told = lambda step: None,
    *,
    model: type[DeepModel] = DeepModel,
) -> DeepModel:
    """Train a network on the chosen features; the seed fixes it to the last bit on a machine.

    A `SequenceModel` sees the last N changes of the rows' `steps` beside the features: N is the
    greatest power of two that the rows have. `train` is kept in memory as it is, and 0.3 GB more.
    """
    rows = TrainingRows(train, settings)
    layout = layout_of(rows.sample, metadata, choice, settings)
    if model is SequenceModel:
        depth = rows.sample.inputs.steps.shape[1]
        if depth < 2:
            raise InputError(
                "the rows hold no last changes; make the examples with a depth of 2 or more"
            )
        layout = replace(layout, steps=1 << (depth.bit_length() - 1), state=STATE)
    return Trainer(model, layout, metadata, settings).fit(rows, validation, told)


fit_sequence = partial(fit_deep, model=SequenceModel)


class TrainingRows:
    """The training rows, epoch by epoch, in rounds; a sample of them, and what marks them."""

    def __init__(self, train: Examples, settings: DeepSettings) -> None:
        if not len(train):
            raise InputError("there are no rows to train on")
        self.train, self.settings = train, settings
        self.count = len(train)
        self.weight = float((train.weight**settings.temper).sum())
        self.check = zlib.crc32(train.label.tobytes())
        spread = np.linspace(0, self.count - 1, min(self.count, _SAMPLE))
        self.sample = train.take(np.unique(spread.astype(np.int64)))

    def rounds(self, epoch: int) -> Iterator[Ints]:
        """Which rows to use, in which order."""
        chance = np.random.default_rng([self.settings.seed, 2, epoch])
        rounds = -(-self.count // self.settings.round_rows)
        yield from np.array_split(chance.permutation(self.count), rounds)


def layout_of(
    sample: Examples, metadata: Metadata, choice: FeatureSet, settings: DeepSettings
) -> Layout:
    """The network's inputs: a hole for every column that may be unknown, widths by size."""
    names = tuple(name for name in choice.dense if name not in CYCLES)
    numbers = sample.inputs.select(names)
    wanted, titled = choice.fields(metadata), choice.titled(metadata)
    sizes = tuple(metadata.sizes[metadata.fields.index(name)] for name in wanted)
    return Layout(
        names=names,
        holes=tuple(np.flatnonzero(np.isnan(numbers).any(axis=0)).tolist()),
        cycles=tuple(name for name in choice.dense if name in CYCLES),
        fields=wanted,
        sizes=sizes,
        widths=tuple(min(16, 4 + int(np.log2(max(1, size)))) for size in sizes),
        buckets=metadata.buckets if titled else 0,
        word=16 if titled else 0,
        hidden=settings.hidden,
        outputs=sample.label.shape[1],
    )


def scales_of(sample: Examples, layout: Layout) -> State:
    """Of every column the scale at which it is compressed, then its middle and its spread."""
    numbers = sample.inputs.select(layout.names).astype(np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    scale, middle, spread = np.ones((3, len(layout.names)))
    for k, column in enumerate(numbers.T):
        known = column[~np.isnan(column)]
        large = np.abs(known[known != 0])
        scale[k] = np.median(large) if len(large) else 1.0
        squeezed = np.copysign(np.log1p(np.abs(known) / scale[k]), known)
        middle[k] = squeezed.mean() if len(known) else 0.0
        spread[k] = max(squeezed.std(), 1e-3) if len(known) else 1.0
    found = {"scale": scale, "middle": middle, "spread": spread}
    return {name: array.astype(np.float32) for name, array in found.items()}


@dataclass(slots=True)
class TrainingProgress:
    """How far a training is: rounds done, and the best weights so far."""

    rounds: int = 0
    stale: int = 0
    best: float = float("inf")
    ended: bool = False


class Trainer:
    """Rounds of batches, each followed by a look at the validation rows and a checkpoint."""

    def __init__(
        self, model: type[DeepModel], layout: Layout, metadata: Metadata, settings: DeepSettings
    ) -> None:
        self.model, self.layout, self.metadata, self.settings = model, layout, metadata, settings

    def fit(self, rows: TrainingRows, validation: Examples, told: Told) -> DeepModel:
        """Train until the validation loss is at its best, or the epochs are over."""
        jax, _ = jax_of()
        scales = scales_of(rows.sample, self.layout)
        still, mark = self._still(scales), self._mark(rows)
        weights: Any = first_weights(self.layout, self.settings)
        plain = replace(self.settings, folder=None, seed=0)
        steps = self.settings.epochs * -(-rows.count // self.settings.batch)
        how = self.layout, plain, steps  # what the compiled run depends on
        memory = optimiser_of(plain, steps).init(weights)
        state = jax.device_put((weights, memory, np.int32(0)))
        kept = self._load(mark, state)
        state, best, progress = kept or (state, weights, TrainingProgress())
        epochs = range(self.settings.epochs)
        parts = ((epoch, part) for epoch in epochs for part in rows.rounds(epoch))
        for number, (epoch, order) in enumerate(parts):
            if progress.ended:
                break
            if number < progress.rounds:
                continue
            began = time.perf_counter()
            for chunk, count in self._chunks(order, rows):
                state = runner()(state, chunk, still, count, how)
            now = {name: np.asarray(array) for name, array in state[0].items()}
            pace = len(order) / (time.perf_counter() - began)
            loss = log_loss(self._made(scales, now), validation, self.metadata)
            better = loss < progress.best
            best = now if better else best
            stale = 0 if better else progress.stale + 1
            ended = stale >= self.settings.patience
            progress = TrainingProgress(number + 1, stale, min(loss, progress.best), ended)
            self._save(mark, state, best, progress)
            told(f"epoch {epoch + 1}, round {number + 1}: loss {loss:.5f}, {pace:,.0f} rows/s")
        return self._made(scales, best)

    def _made(self, scales: State, weights: State) -> DeepModel:
        return self.model(self.layout, {**scales, **weights})

    def _still(self, scales: State) -> dict[str, Any]:
        """What is the same for all batches, as JAX arrays."""
        jax, _ = jax_of()
        places = [self.metadata.fields.index(name) for name in self.layout.fields]
        words = self.metadata.words if self.layout.word else self.metadata.words[:, :0]
        codes = np.ascontiguousarray(self.metadata.codes[:, places])
        seed = np.int32(self.settings.seed * 1_000_003 % (1 << 30))
        return jax.device_put({**scales, "codes": codes, "words": words, "seed": seed})  # type: ignore[no-any-return]

    def _chunks(self, order: Ints, rows: TrainingRows) -> Iterator[tuple[dict[str, Any], int]]:
        """Rows in that order as chunks of batches; what fills up the last batch weighs nothing."""
        size = self.settings.batch
        many = max(1, min(_CHUNK, rows.count) // size)
        for low in range(0, len(order), many * size):
            part = order[low : low + many * size]
            count = -(-len(part) // size)
            columns = self._columns(rows.train.take(part), rows.count / rows.weight)
            yield {name: _batched(c, many, size) for name, c in columns.items()}, count

    def _columns(self, part: Examples, share: float) -> dict[str, Any]:
        layout, inputs = self.layout, part.inputs
        codes = [cycle_code(inputs.column(name), CYCLES[name]) for name in layout.cycles]
        columns = {
            "dense": inputs.select(layout.names),
            "cycles": np.stack(codes, axis=1) if codes else np.empty((len(part), 0), np.int32),
            "page": inputs.page.astype(np.int32),
            "label": part.label,
            "weight": (share * part.weight**self.settings.temper).astype(np.float32),
        }
        late = inputs.steps[:, inputs.steps.shape[1] - layout.steps :]
        return columns | ({"steps": late} if layout.state else {})

    def _mark(self, rows: TrainingRows) -> str:
        """What a checkpoint must agree in to be continued from."""
        settings = {k: v for k, v in asdict(self.settings).items() if k != "folder"}
        return json.dumps([asdict(self.layout), settings, rows.count, rows.check])

    def _save(self, mark: str, state: Any, best: State, progress: TrainingProgress) -> None:
        if self.settings.folder is None:
            return
        jax, _ = jax_of()
        leaves = {f"state/{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(state))}
        arrays = leaves | {f"best/{name}": array for name, array in best.items()}
        self.settings.folder.mkdir(parents=True, exist_ok=True)
        new = self.settings.folder / "checkpoint.new.npz"
        told = json.dumps(asdict(progress))
        np.savez(new, allow_pickle=False, mark=np.array(mark), progress=np.array(told), **arrays)
        new.replace(self.settings.folder / "checkpoint.npz")

    def _load(self, mark: str, state: Any) -> tuple[Any, State, TrainingProgress] | None:
        path = self.settings.folder and self.settings.folder / "checkpoint.npz"
        if path is None or not path.is_file():
            return None
        jax, _ = jax_of()
        try:
            with np.load(path, allow_pickle=False) as kept:
                arrays = {name: kept[name] for name in kept.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: not a checkpoint; remove it to begin anew") from error
        if str(arrays.get("mark")) != mark:
            raise InputError(f"{path}: of other rows or settings; remove it to begin anew")
        leaves, form = jax.tree.flatten(state)
        again = form.unflatten([arrays[f"state/{k}"] for k in range(len(leaves))])
        best = {k.removeprefix("best/"): a for k, a in arrays.items() if k.startswith("best/")}
        return jax.device_put(again), best, TrainingProgress(**json.loads(str(arrays["progress"])))


def _batched(column: Floats32, many: int, size: int) -> Any:
    """A column cut into batches; filled up with zeros, which weigh nothing."""
    full = many * size
    if len(column) < full:
        rest = np.zeros((full - len(column), *column.shape[1:]), dtype=column.dtype)
        column = np.concatenate([column, rest])
    return column.reshape(many, size, *column.shape[1:])


def log_loss(model: DeepModel, rows: Examples, metadata: Metadata) -> float:
    """Mean cross-entropy of a known outcome, rows weighted as they stand for others."""
    odds = model.logits(rows.inputs, metadata)
    each: Floats = np.logaddexp(0.0, odds) - odds * (rows.label == 1)
    weight = (rows.label >= 0) * rows.weight[:, None]
    return float((each * weight).sum() / max(weight.sum(), 1e-300))
