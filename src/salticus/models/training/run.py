"""From a log to a model in a folder: examples, vocabulary, fitting, calibration, figures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.exchange.place import check_free
from salticus.features.metadata import Vocabulary
from salticus.features.names import chosen
from salticus.models.file import KINDS, Saved, asked, save_model
from salticus.models.linear import NAMES, LinearSettings, columns_of, fit_linear
from salticus.models.model import Calibrated, Model
from salticus.models.training.calibrate import calibrate
from salticus.models.training.evaluate import evaluate, scored, shops_of
from salticus.models.training.examples import Told, make_examples
from salticus.models.training.network import jax_of
from salticus.models.training.recipe import Recipe, provenance
from salticus.models.training.shards import Shards
from salticus.models.trees import TreesModel
from salticus.types import Examples, Metadata

DEPTH = 16  # changes of a page that a sequence model looks back to
LEAST = {"train": 20, "validation": 5}  # events without which a model is worth nothing

TASKS = ("change", "click", "impression")
"""What crawls are planned by; each may have a model."""

PUBLISHED_PRESETS = ("han2019", "han2020")

_STEPS = 100  # of an epoch, at least
_DEEP = ("dnn", "sequence")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which model is wanted.

    `model`: dnn, trees, sequence or frequency; None: dnn where JAX is installed, else trees.
    `features` (metadata, history, both) and `preset` (see `features.names`) choose what it looks
    at; `baseline` is the frequency model's (`models.linear.NAMES`). `published` takes the network's
    settings of Han 2019, and its features unless those of han2020 are asked for; `fitting` changes
    single settings of the fit, such as {"trees": 100}. `examples` is a folder in which the examples
    are kept, to be used again; without it they lie beside the model until it is done.
    """

    model: str | None = None
    features: str = "both"
    preset: str = "full"
    baseline: str = "combined"
    published: bool = False
    calibration: str = "best"
    fitting: Mapping[str, Any] = field(default_factory=dict)
    examples: Path | None = None


def usual_kind() -> str:
    """The kind of model that is trained if none is named."""
    return "dnn" if find_spec("jax") and find_spec("optax") else "trees"


def train_model(
    log: Log, recipe: Recipe, request: ModelSpec, folder: Path, told: Told = lambda step: None
) -> dict[str, Any]:
    """Train a model on a log and save it in a new folder; its manifest, with all figures.

    The model is fitted on the first span of the split, stopped early and calibrated on the second
    and judged on the third. Work that was interrupted is taken up where it was if the same is asked
    again. The same log, recipe and request give the same files.
    """
    request, recipe = _settled(request, recipe)
    check_free(folder)
    place = request.examples or folder.parent / f".{folder.name}.examples"
    shards = make_examples(log, recipe, place, told)
    wanted = repr(replace(request, examples=None)).encode()  # whatever the place
    checkpoint = place / f"checkpoint-{blake2b(wanted, digest_size=8).hexdigest()}"
    saved = fitted(shards, recipe, request, told, checkpoint=checkpoint)
    saved.manifest["data"]["provenance"] = provenance(log)
    told("saving")
    save_model(folder, saved)
    shutil.rmtree(checkpoint if request.examples else place, ignore_errors=True)
    return saved.manifest


def train_tasks(
    log: Log, recipe: Recipe, request: ModelSpec, folder: Path, told: Told = lambda step: None
) -> dict[str, dict[str, Any]]:
    """Models of changes, clicks and impressions, in folders of their names; their manifests."""
    found = {}
    for task in TASKS:
        wanted, space = replace(recipe, task=task), request.examples and request.examples / task
        step = partial(_step_of, task, told)
        found[task] = train_model(
            log, wanted, replace(request, examples=space), folder / task, step
        )
    return found


def _step_of(task: str, told: Told, step: str) -> None:
    told(f"{task}: {step}")


def _settled(request: ModelSpec, recipe: Recipe) -> tuple[ModelSpec, Recipe]:
    """Request and recipe with nothing left open; ConfigError if there is no such thing."""
    kind = request.model or usual_kind()
    if kind not in KINDS:
        raise ConfigError(f"no model is called {kind!r}; known: {', '.join(KINDS)}")
    if request.published and kind != "dnn":
        raise ConfigError("only the model `dnn` has published settings")
    if kind == "frequency" and request.baseline not in NAMES:
        raise ConfigError(f"no baseline is called {request.baseline!r}; known: {', '.join(NAMES)}")
    if kind == "frequency" and request.baseline == "gamma" and recipe.task != "change":
        raise ConfigError(f"the baseline gamma tells of changes ahead, not of {recipe.task}")
    if kind in _DEEP:
        jax_of()
    depth = max(recipe.depth, DEPTH) if kind == "sequence" else recipe.depth
    return replace(request, model=kind), replace(recipe, depth=depth)


def fitted(
    shards: Shards,
    recipe: Recipe,
    request: ModelSpec,
    told: Told = lambda step: None,
    *,
    checkpoint: Path | None = None,
) -> Saved:
    """A model of examples that are there, fitted (a network from `checkpoint` on) and judged."""
    kind = request.model or usual_kind()
    preset = request.preset
    if request.published and preset not in PUBLISHED_PRESETS:
        preset = "han2019"
    choice = chosen(preset, request.features, recipe.edges)
    wanted = columns_of(request.baseline) if kind == "frequency" else choice.dense
    columns = tuple(name for name in shards.names if name in wanted)
    told("reading examples")
    train = shards.part("train", columns=columns)
    validation = shards.part("validation", columns=columns)
    validation = validation.take(validation.seen)  # others decide nothing, not even when to stop
    for part, rows in (("train", train), ("validation", validation)):
        _check_events(part, rows, recipe)
    trained = np.isin(np.arange(len(shards.pages)), train.inputs.page)
    vocabulary = Vocabulary.fit(shards.pages, trained, choice.metadata)
    metadata = vocabulary.encode(shards.pages)
    if kind != "frequency":  # without what no training row knows, as clicks if the log has none
        dense = (name for name in choice.dense if np.isfinite(train.inputs.column(name)).any())
        choice = replace(choice, dense=tuple(dense))
    told("fitting")
    edges, published, baseline = edges_of(recipe), request.published, request.baseline
    settings, fit = fitting_of(
        kind, seed=recipe.seed, published=published, baseline=baseline, edges=edges
    )
    if kind in _DEEP:
        batch = settings.batch if request.published else min(settings.batch, _batch(len(train)))
        settings = replace(settings, folder=checkpoint, batch=batch)
    settings = replace(settings, **request.fitting)
    model = fit(train, validation, metadata, choice, settings, told)
    told("calibrating")
    ready = calibrate(model, validation, metadata, method=request.calibration)
    ready = renewed(ready, (train, validation), metadata, settings, told)
    del train
    told("judging")
    test = scored(ready, shards.days("test", columns), metadata)
    shops = shops_of(shards.pages, metadata, vocabulary)
    looks = preset, request.features, list(choice.dense), list(choice.metadata)
    if kind == "frequency":
        looks = request.baseline, "history", list(columns), []
    given = {key: value for key, value in asdict(settings).items() if key != "folder"}
    data = {name: shards.about[name] for name in ("log", "spans", "pages", "rows", "moments")}
    uses = ("numpy", "jax", "jaxlib", "optax") if kind in _DEEP else ("numpy", "scikit-learn")
    about = {
        "kind": kind,
        "task": recipe.task,
        "edges": list(edges),
        "observe": recipe.observe,
        "seed": recipe.seed,
        "data": data,
        "recipe": shards.about["recipe"],
        "features": dict(zip(("preset", "kind", "dense", "metadata"), looks, strict=True)),
        "inputs": asked(shards.names, recipe.depth, metadata),
        "fitting": {**given, "calibration": request.calibration},
        "metrics": {**evaluate(test, edges, shops), "notes": _notes(validation, recipe)},
        "libraries": {name: version(name) for name in uses},
    }
    return Saved(ready, (vocabulary.settings(), vocabulary.arrays()), about)


def renewed(
    ready: Calibrated,
    parts: tuple[Examples, Examples],
    metadata: Metadata,
    settings: Any,
    told: Told = lambda step: None,
) -> Calibrated:
    """The model with the latest examples learnt too, where its kind can: the curves stay."""
    if not isinstance(ready.model, TreesModel) or not settings.refit:
        return ready
    from salticus.models.training.trees import refit_trees

    return replace(ready, model=refit_trees(ready.model, parts, metadata, settings, told))


def edges_of(recipe: Recipe) -> tuple[int, ...]:
    """The ends of what is foretold, in hours: of the next UTC day 24, of what is so already 0."""
    if recipe.task == "change":
        return recipe.edges
    return (0,) if recipe.task == "stale" else (24,)


def _notes(validation: Examples, recipe: Recipe) -> list[str]:
    """The edges whose probabilities can hardly be set right, for want of later events."""
    events = np.count_nonzero(validation.label == 1, axis=0)
    least = LEAST["validation"]
    poor = [str(e) for e, n in zip(edges_of(recipe), events, strict=True) if n < least]
    if not poor:
        return []
    what = f"the validation span has fewer than {least} events {', '.join(poor)} h ahead"
    return [f"{what}, too few to calibrate by; make that span longer"]


def _check_events(part: str, rows: Examples, recipe: Recipe) -> None:
    events = int(np.count_nonzero(rows.label == 1))
    if events < LEAST[part]:
        raise InputError(
            f"only {events} of {len(rows):,} {part} examples have the event ({recipe.task}); at "
            f"least {LEAST[part]} are needed: take a longer horizon, a longer span or more pages"
        )
    told = np.count_nonzero(rows.label >= 0, axis=0)
    untold = [edge for edge, n in zip(edges_of(recipe), told, strict=True) if not n]
    if part == "train" and untold:
        raise InputError(
            f"the training span is too short to tell of {untold[0]} h ahead; make it longer, or "
            "leave that horizon out"
        )


def _batch(rows: int) -> int:
    """A batch with which an epoch has some hundred steps: of fewer a network learns nothing.

    >>> _batch(20_000), _batch(1_000_000)
    (256, 8192)
    """
    return int(max(256, 2 ** (max(1, rows // _STEPS).bit_length() - 1)))


def fitting_of(
    kind: str,
    *,
    seed: int = 0,
    published: bool = False,
    baseline: str = "combined",
    edges: tuple[int, ...] = (6,),
) -> tuple[Any, Callable[..., Model]]:
    """The settings of a kind's fit, and what takes them."""
    if kind == "frequency":
        return LinearSettings(baseline, edges), fit_linear
    if kind == "trees":
        from salticus.models.training.boosting import TreesSettings
        from salticus.models.training.trees import fit_trees

        return TreesSettings(seed=seed), fit_trees
    from salticus.models.training.deep import OURS, PUBLISHED, fit_deep, fit_sequence

    settings = replace(PUBLISHED if published else OURS, seed=seed)
    return settings, fit_sequence if kind == "sequence" else fit_deep
