"""`salticus bench learn`: rows a second of making examples, of training and of scoring."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from salticus.errors import SalticusError
from salticus.features.events import EventKind, Events, make_events
from salticus.features.names import all_names, chosen
from salticus.lab.bench import Told, answer, measured, new_peak, peak
from salticus.models.deep import Layout
from salticus.types import Examples, Floats32, Inputs, Metadata

ROWS = 1_000_000
CONTESTS = ("examples", "features", "training", "dnn", "sequence", "trees")

_PAGES = 100_000
_EDGES = (6,)
_DEPTH = 16  # changes that the sequence model reads
_DAYS = 30
_MARKET = (5000, 60)  # offers and days
_ROUNDS = 5
_BATCH = 8192
_START = 420_000  # hours since 1970
_GROUPED = ("category", "merchant", "brand")
_SIZES = {
    "brand": 2000, "condition": 4, "country": 20, "language": 10, "merchant": 1000,
    "category_1": 30, "category_2": 150, "category": 600,
}  # fmt: skip


def bench(
    *, rows: int = ROWS, contests: Sequence[str] = CONTESTS, told: Told = lambda step: None
) -> Iterator[dict[str, Any]]:
    """A row for each contest, each in a process of its own, on 100,000 made-up pages.

    examples: from a market's log of 5,000 offers and 60 days to files. features: those alone, from
    a month of events. training: the default network in batches of 8192, with cutting and shuffling,
    by turns with a bare loop of a compiled step over batches that were cut before. dnn, sequence,
    trees: scoring by each. `rows/s` is wall time except for examples and features (processor time)
    and a median of five rounds; `MB` is the peak of memory beyond the rows themselves.
    """
    for contest in contests:
        told(f"{contest}, {rows:,} rows")
        found = measured(contest, "learn", contest, rows)
        bare = found.get("bare")
        yield {
            "what": contest,
            "rows": rows,
            "rows/s": round(found["rate"]),
            "bare rows/s": bare and round(bare),
            "x bare": bare and round(found["rate"] / bare, 2),
            "MB": round(found["bytes"] / 1e6),
        }


# ------------------------------------------------------------------------------------ the contests


def contest(name: str, rows: int) -> dict[str, float]:
    """Rows a second of one contest, and bytes that it needs."""
    if name not in CONTESTS:
        raise SalticusError(f"there is no contest {name}, only {', '.join(CONTESTS)}")
    work = {"examples": examples, "features": features, "training": training}.get(name)
    return work(rows) if work else scoring(name, rows)


def examples(rows: int) -> dict[str, float]:
    """`make_examples` from the files of a market that is seen in full, to files."""
    from salticus.exchange.folder import Log
    from salticus.lab.worlds.market.make import MarketSize, make_market
    from salticus.models.training.examples import make_examples
    from salticus.models.training.recipe import Recipe, TimeSplit

    with TemporaryDirectory() as space:
        make_market(Path(space) / "log", MarketSize(*_MARKET), seed=1)
        log, third = Log(Path(space) / "log"), timedelta(days=_MARKET[1] // 3)
        recipe = Recipe(split=TimeSplit(third, third, third), unseen=0.0, examples=-(-rows // 3))
        make_examples(log, replace(recipe, examples=100), Path(space) / "few")  # compiles
        base, began = new_peak(), time.process_time()
        made = make_examples(log, recipe, Path(space) / "examples")
        seconds = time.process_time() - began
    return {"rate": sum(made.about["rows"].values()) / seconds, "bytes": peak() - base}


def features(rows: int) -> dict[str, float]:
    """All features of rows spread over the last day of a month, as a log's examples are made."""
    from salticus.features.groups import Groups
    from salticus.features.past import FeatureStream

    chance, codes = np.random.default_rng(1), catalogue().codes.astype(np.int64)
    category, merchant, brand = (codes[:, list(_SIZES).index(k)] for k in _GROUPED)
    zero = np.zeros(_PAGES, dtype=np.int64)
    groups = Groups(category, merchant, merchant, brand, zero, zero, ("UTC",), ("DE",))
    past = FeatureStream(groups, full=False, demand=False)
    past.learn(make_events(EventKind.BORN, zero + _START, np.arange(_PAGES)))
    *before, last = (_a_day(day, chance) for day in range(_DAYS))
    for events in before:
        past.learn(events)
    page = chance.integers(0, _PAGES, rows)
    hour = np.sort(_START + 24 * (_DAYS - 1) + chance.integers(1, 25, rows))
    past.read(page[:10], np.full(10, hour[0]))  # compiles, and takes in the days before
    base, began = new_peak(), time.process_time()
    past.learn(last)
    read = past.read(page, hour)
    seconds = time.process_time() - began
    return {"rate": rows / seconds, "bytes": peak() - base - read.dense.nbytes}


def _a_day(day: int, chance: np.random.Generator) -> Events:
    """Every page is visited once; one in ten visits finds a change."""
    hour = np.sort(_START + 1 + 24 * day + chance.integers(0, 24, _PAGES))
    page, one = chance.permutation(_PAGES), np.ones(_PAGES, dtype=np.float32)
    price, move = chance.normal(size=(2, _PAGES)).astype(np.float32)
    visits = make_events(EventKind.VISIT, hour, page, 24 * one, price, one)
    changes = make_events(EventKind.CHANGE, hour, page, price, move, one)
    return visits.join(changes.take(chance.random(_PAGES) < 0.1)).ordered()


def training(rows: int) -> dict[str, float]:
    """`fit_deep` by turns with the bare loop, on the same rows."""
    from salticus.models.training.deep import OURS, TrainingRows, fit_deep, layout_of

    rounds = _ROUNDS + 1
    settings = replace(OURS, batch=_BATCH, epochs=rounds, patience=rounds, round_rows=rows)
    train, metadata, choice = made_up(rows), catalogue(), chosen("full", "both", _EDGES)
    layout = layout_of(TrainingRows(train, settings).sample, metadata, choice, settings)
    base = new_peak()
    loop = bare_loop(train, metadata, layout, settings.batch)
    ours, bare, used = [], [], []
    mark = time.perf_counter()

    def turn(text: str) -> None:
        nonlocal mark
        ours.append(rows / (time.perf_counter() - mark))
        used.append(peak() - base)
        bare.append(loop())
        mark = time.perf_counter()

    fit_deep(train, made_up(1000), metadata, choice, settings, turn)
    return {"rate": median(ours[1:]), "bare": median(bare[1:]), "bytes": used[0]}


def bare_loop(
    train: Examples, metadata: Metadata, layout: Layout, batch: int
) -> Callable[[], float]:
    """A function that goes over batches that lie ready, and tells rows a second: a plain compiled
    step, no shuffling, no weights, one optimiser."""
    import jax
    import optax

    batches = _ready(train, metadata, layout, batch)
    weights = jax.device_put(_bare_weights(layout))
    optimiser = optax.adam(1e-3)
    state: Any = (weights, optimiser.init(weights))

    @jax.jit
    def step(weights: Any, memory: Any, batch: Any) -> Any:
        change, memory = optimiser.update(jax.grad(_bare_loss)(weights, batch), memory)
        return optax.apply_updates(weights, change), memory

    def go() -> float:
        nonlocal state
        began = time.perf_counter()
        for each in batches:
            state = step(*state, each)
        float(state[0][2][-1][1][0])  # wait for the last step
        return len(batches) * batch / (time.perf_counter() - began)

    return go


def _ready(train: Examples, metadata: Metadata, layout: Layout, batch: int) -> list[Any]:
    """The batches as JAX arrays: what can be done beforehand is done."""
    import jax

    page = train.inputs.page
    codes = [metadata.codes[page, metadata.fields.index(name)] for name in layout.fields]
    cycles = [train.inputs.column(name).astype(np.int32) for name in layout.cycles]
    numbers = train.inputs.select(layout.names)
    holes = np.isnan(numbers[:, list(layout.holes)]).astype(np.float32)
    rows = (
        np.concatenate([np.nan_to_num(numbers), holes], axis=1),
        np.stack([*cycles, *codes], axis=1),
        np.maximum(metadata.words[page], 0),
        train.label.astype(np.float32),
    )
    cuts = range(0, len(page) - batch + 1, batch)
    return [jax.device_put(tuple(a[low : low + batch] for a in rows)) for low in cuts]


def _bare_weights(layout: Layout) -> Any:
    chance = np.random.default_rng(1)
    cycles = [(25, layout.cycle) for _ in layout.cycles]
    sizes = [*cycles, *zip(layout.sizes, layout.widths, strict=True)]
    tables = [chance.normal(0, 0.01, size).astype(np.float32) for size in sizes]
    word = chance.normal(0, 0.01, (layout.buckets, layout.word)).astype(np.float32)
    levels = [
        (chance.normal(0, (2 / i) ** 0.5, (i, o)).astype(np.float32), np.zeros(o, np.float32))
        for _, i, o in layout.levels()
    ]
    return tables, word, levels


def _bare_loss(weights: Any, batch: Any) -> Any:
    import jax
    import jax.numpy as jnp
    import optax

    tables, word, levels = weights
    dense, codes, words, label = batch
    each = [table[codes[:, k]] for k, table in enumerate(tables)]
    level = jnp.concatenate([dense, *each, word[words].mean(axis=1)], axis=1)
    for weight, bias in levels[:-1]:
        level = jax.nn.relu(level @ weight + bias)
    odds = level @ levels[-1][0] + levels[-1][1]
    return optax.sigmoid_binary_cross_entropy(odds, label).mean()


def scoring(kind: str, rows: int) -> dict[str, float]:
    """Scoring by a model that was trained on a few rows, with all features."""
    from salticus.models.training.run import fitting_of

    settings, fit = fitting_of(kind)
    if kind != "trees":
        settings = replace(settings, epochs=1)
    few, check, metadata = made_up(20_000, _DEPTH), made_up(1000, _DEPTH), catalogue()
    model = fit(few, check, metadata, chosen("full", "both", _EDGES), settings)
    train = made_up(rows, _DEPTH)
    model.logits(train.inputs.take(np.arange(20_000)), metadata)
    base, rates = new_peak(), []
    for _ in range(_ROUNDS):
        again = replace(metadata)  # as if it were new: nothing of it is kept from the last time
        began = time.perf_counter()
        model.logits(train.inputs, again)
        rates.append(rows / (time.perf_counter() - began))
    return {"rate": median(rates), "bytes": peak() - base}


# ---------------------------------------------------------------------------------- what is made up


def catalogue() -> Metadata:
    """Metadata of 100,000 pages, as many codes and words as those of a large market have."""
    chance = np.random.default_rng(2)
    codes = [chance.zipf(1.3, _PAGES) % size for size in _SIZES.values()]
    words = chance.integers(-1, 2**15, (_PAGES, 12)).astype(np.int32)
    words[:, 7:] = -1
    table = np.stack(codes, axis=1).astype(np.int32)
    return Metadata(table, words, tuple(_SIZES), tuple(_SIZES.values()), 2**15)


def made_up(rows: int, depth: int = 0) -> Examples:
    """Rows with all features, of which one in twenty is unknown, and outcomes that follow some."""
    chance, names = np.random.default_rng(3), all_names(_EDGES)
    dense: Floats32 = chance.standard_normal((rows, len(names)), dtype=np.float32)
    dense[chance.random(dense.shape, dtype=np.float32) < 0.05] = np.nan
    for name, size in (("weekday", 7), ("hour", 24), ("local_weekday", 7), ("local_hour", 24)):
        dense[:, names.index(name)] = chance.integers(0, size, rows)
    steps = chance.standard_normal((rows, depth, 3), dtype=np.float32)
    odds = np.nan_to_num(dense[:, :3]).sum(axis=1) - 2.0
    label = (chance.random(rows) < 1 / (1 + np.exp(-odds))).astype(np.int8)[:, None]
    page, zero = chance.integers(0, _PAGES, rows), np.zeros(rows, dtype=np.int64)
    inputs, yes = Inputs(page, zero, dense, steps, names), np.ones(rows, dtype=np.bool_)
    return Examples(inputs, label, np.ones(rows), yes, yes, zero)


if __name__ == "__main__":
    answer(contest(sys.argv[1], int(sys.argv[2])))
