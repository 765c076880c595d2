"""What the networks share when they are trained: the forward pass, the loss and the optimisers.

All of it is JAX (extra `deep`), which is imported where it is used. Scoring is NumPy's: see
`models.deep`, whose arithmetic `forward` repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from salticus.errors import ConfigError
from salticus.models.deep import CYCLES, FAR, Layout
from salticus.types import STEP
from salticus.types.state import State

Tree = Any  # a pytree of JAX arrays
Batch = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeepSettings:
    """How a network is shaped and trained.

    `rate` and `table_rate` are the first steps' sizes, of the layers and of the embeddings; with
    `cool` they fall linearly to nothing over `epochs`. `summed`: the loss of a batch is the sum
    over its rows, not the mean, which matters to `l1`, `l2` and Adagrad's first `accumulator`.
    A row counts by its weight to the power of `temper`: with 1 the loss is that of all rows that
    might have been sampled, with 0 that of the sample. `decay` draws embeddings to zero. `forget`
    is the chance by which a row loses its title's words, or the code of a field, in training. A
    round is at most `round_rows` rows; after each the validation rows are scored, and after
    `patience` rounds without a better loss training ends with the best weights. `folder` keeps a
    checkpoint after every round and is continued from.
    """

    hidden: tuple[int, ...] = (256, 128, 64)
    optimiser: str = "adam"
    rate: float = 2e-3
    table_rate: float = 1.0
    batch: int = 1024
    epochs: int = 3
    cool: bool = True
    summed: bool = False
    accumulator: float = 1e-5
    l1: float = 0.0
    l2: float = 0.0
    decay: float = 0.0
    forget: float = 0.0
    temper: float = 1.0
    spread: float = 0.0
    round_rows: int = 500_000
    patience: int = 2
    seed: int = 0
    folder: Path | None = None


def jax_of() -> tuple[ModuleType, ModuleType]:
    """JAX and optax, or an error that tells how to install them."""
    try:
        import jax
        import optax
    except ImportError as error:
        raise ConfigError(
            "training a network needs JAX; install it with `pip install 'salticus[deep]'`"
        ) from error
    return jax, optax


def first_weights(layout: Layout, settings: DeepSettings) -> State:
    """The weights that training starts from: He's normal ones for layers, small embeddings.

    Embeddings are normal with `spread`/√width; with 0 a code that was never met says nothing.
    """
    chance = np.random.default_rng([settings.seed, 1])
    weights: State = {}
    for name, before, after in layout.levels():
        deviation = np.sqrt(2.0 / before)
        weights[f"{name}/weight"] = chance.normal(0.0, deviation, (before, after))
        weights[f"{name}/bias"] = np.zeros(after)
    tables = {f"cycle/{name}": (CYCLES[name] + 1, layout.cycle) for name in layout.cycles}
    sized = zip(layout.fields, layout.sizes, layout.widths, strict=True)
    tables |= {f"field/{name}": (size, width) for name, size, width in sized}
    tables |= {"words": (layout.buckets, layout.word)} if layout.word else {}
    for name, shape in tables.items():
        weights[name] = chance.normal(0.0, settings.spread / np.sqrt(shape[1]), shape)
    inside = len(STEP) + 1
    for k in range(layout.steps.bit_length() - 1 if layout.state else 0):
        shape = 2 * inside, layout.state
        weights[f"step{k}/weight"] = chance.normal(0.0, np.sqrt(2.0 / shape[0]), shape)
        weights[f"step{k}/bias"] = np.zeros(layout.state)
        inside = layout.state
    return {name: array.astype(np.float32) for name, array in weights.items()}


def forward(weights: Tree, batch: Batch, layout: Layout) -> Any:
    """Log-odds of a batch, as `DeepModel.logits` gives them."""
    import jax.numpy as jnp

    numbers = batch["dense"]
    unknown = jnp.isnan(numbers)
    squeezed = jnp.copysign(jnp.log(1.0 + jnp.abs(numbers) / batch["scale"]), numbers)
    standard = jnp.clip((squeezed - batch["middle"]) / batch["spread"], -FAR, FAR)
    parts = [jnp.where(unknown, 0.0, standard)]
    parts += [unknown[:, np.array(layout.holes, dtype=int)].astype(np.float32)]
    for k, name in enumerate(layout.cycles):
        parts.append(weights[f"cycle/{name}"][batch["cycles"][:, k]])
    if layout.state:
        parts.append(_steps_state(weights, batch["steps"], layout))
    for k, name in enumerate(layout.fields):
        parts.append(weights[f"field/{name}"][batch["codes"][:, k]] * batch["kept"][:, k : k + 1])
    if layout.word:
        parts.append(_mean_word(weights["words"], batch["words"]) * batch["kept"][:, -1:])
    level = jnp.concatenate(parts, axis=1)
    for k in range(len(layout.hidden)):
        level = jnp.maximum(level @ weights[f"layer{k}/weight"] + weights[f"layer{k}/bias"], 0.0)
    last = f"layer{len(layout.hidden)}"
    return level @ weights[f"{last}/weight"] + weights[f"{last}/bias"]


def _mean_word(table: Any, words: Any) -> Any:
    import jax.numpy as jnp

    here = (words >= 0).astype(np.float32)
    count = jnp.maximum(here.sum(axis=1, keepdims=True), 1.0)
    return jnp.einsum("rwd,rw->rd", table[jnp.maximum(words, 0)], here / count)


def _steps_state(weights: Tree, steps: Any, layout: Layout) -> Any:
    import jax.numpy as jnp

    known = ~jnp.isnan(steps[:, :, :1])
    level = jnp.concatenate([jnp.nan_to_num(steps), known.astype(np.float32)], axis=2)
    for k in range(int(np.log2(layout.steps))):
        level = level.reshape(level.shape[0], level.shape[1] // 2, -1)
        level = jnp.maximum(level @ weights[f"step{k}/weight"] + weights[f"step{k}/bias"], 0.0)
    return level[:, 0]


def loss_of(weights: Tree, batch: Batch, layout: Layout) -> Any:
    """Weighted cross-entropy of a batch, summed over rows and known horizons."""
    import jax.numpy as jnp

    odds = forward(weights, batch, layout)
    label = batch["label"]
    each = jnp.maximum(odds, 0.0) - odds * (label == 1) + jnp.log1p(jnp.exp(-jnp.abs(odds)))
    return jnp.sum(jnp.where(label >= 0, each, 0.0) * batch["weight"][:, None])


def optimiser_of(settings: DeepSettings, steps: int) -> Any:
    """The optax transformation that a training of so many steps uses."""
    _, optax = jax_of()
    if settings.optimiser == "proximal":
        return _proximal(settings)

    def pace(rate: float) -> Any:
        return optax.linear_schedule(rate, 0.01 * rate, steps) if settings.cool else rate

    layers = {
        "adam": lambda: optax.adam(pace(settings.rate)),
        "adagrad": lambda: optax.adagrad(pace(settings.rate), settings.accumulator),
    }[settings.optimiser]()
    tables = optax.chain(
        optax.add_decayed_weights(settings.decay),
        optax.adagrad(pace(settings.table_rate), settings.accumulator, eps=1e-10),
    )

    def kinds(weights: Tree) -> dict[str, str]:
        embedded = ("field/", "words", "cycle/")
        return {name: "table" if name.startswith(embedded) else "layer" for name in weights}

    return optax.multi_transform({"layer": layers, "table": tables}, kinds)


def _proximal(settings: DeepSettings) -> Any:
    """TensorFlow's ProximalAdagrad (Duchi & Singer 2009), which its DNNClassifier is shown with.

    A weight whose gradient is zero, as an embedding whose code is not in the batch, stays as it is.
    """
    jax, optax = jax_of()
    import jax.numpy as jnp

    def start(weights: Tree) -> Tree:
        return jax.tree.map(lambda w: jnp.full_like(w, settings.accumulator), weights)

    def moved(slope: Any, total: Any, weight: Any) -> Any:
        pace = settings.rate / jnp.sqrt(total)
        plain = weight - pace * slope
        small = jnp.maximum(jnp.abs(plain) - pace * settings.l1, 0.0) / (1.0 + pace * settings.l2)
        return jnp.where(slope == 0.0, 0.0, jnp.sign(plain) * small - weight)

    def update(slopes: Tree, totals: Tree, weights: Tree) -> tuple[Tree, Tree]:
        totals = jax.tree.map(lambda total, slope: total + slope * slope, totals, slopes)
        return jax.tree.map(moved, slopes, totals, weights), totals

    return optax.GradientTransformation(start, update)


@cache
def runner() -> Any:
    """The compiled run over a chunk of batches: ``run(state, chunk, still, count, ...) → state``.

    `state` is (weights, optimiser's state, number of batches so far). Compiled once for each
    layout, settings and shapes, whatever the number of batches in use.
    """
    jax, optax = jax_of()
    import jax.numpy as jnp

    def run(state: Tree, chunk: Batch, still: Batch, count: Any, how: tuple[Any, ...]) -> Tree:
        layout, settings, steps = how
        optimiser = optimiser_of(settings, steps)

        def step(k: Any, state: Tree) -> Tree:
            weights, memory, number = state
            batch = {
                name: jax.lax.dynamic_index_in_dim(a, k, 0, False) for name, a in chunk.items()
            }
            batch |= {name: still[name] for name in ("scale", "middle", "spread")}
            batch |= {name: still[name][batch["page"]] for name in ("codes", "words")}
            size, kinds = len(batch["page"]), len(layout.fields) + 1
            if settings.forget:
                key = jax.random.fold_in(jax.random.key(0), still["seed"] + number)
                batch["kept"] = 1.0 * jax.random.bernoulli(key, 1 - settings.forget, (size, kinds))
            else:
                batch["kept"] = jnp.ones((size, kinds), dtype=np.float32)
            share = 1.0 if settings.summed else 1.0 / size
            slopes = jax.grad(lambda w: share * loss_of(w, batch, layout))(weights)
            change, memory = optimiser.update(slopes, memory, weights)
            return optax.apply_updates(weights, change), memory, number + 1

        return jax.lax.fori_loop(0, count, step, state)

    return jax.jit(run, static_argnames="how", donate_argnums=0)
