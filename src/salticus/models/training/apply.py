"""A model that was trained before, on a log: judged on what came, or asked what will come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.features.events import EventKind, among
from salticus.features.metadata import Vocabulary
from salticus.features.seen import pages_of, seen_events
from salticus.models.file import Saved
from salticus.models.training.evaluate import evaluate, scored, shops_of
from salticus.models.training.examples import Told, clipped, make_examples, stream_of
from salticus.models.training.labels import clips, read_points
from salticus.models.training.recipe import PARTS, Recipe, TimeSplit, log_span, provenance
from salticus.types import Bools, Inputs
from salticus.types.dates import HOUR_US, epoch_us
from salticus.types.frames import pl

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Judged:
    """On which days a model is judged, and on what it is shown; None: as when it was trained."""

    start: datetime | None = None
    length: timedelta | None = None
    observe: str | None = None


_TEST = Judged()


def judge(
    saved: Saved, log: Log, days: Judged = _TEST, told: Told = lambda step: None
) -> dict[str, Any]:
    """The figures of `evaluate` for a model on a log, with `notes`; by default on its test span."""
    manifest = saved.manifest
    recipe, notes = _judged(manifest, days, log)
    with TemporaryDirectory(prefix="salticus-") as space:
        shards = make_examples(log, recipe, Path(space), told)
        told("judging")
        vocabulary = Vocabulary.of(*saved.vocabulary)
        metadata = vocabulary.encode(shards.pages)
        rows = scored(saved.model, shards.days("test"), metadata)
    if not len(rows):
        raise InputError(f"{log.folder}: no examples in the days to be judged; give others")
    if provenance(log) != manifest["data"].get("provenance"):
        notes.append("not the log of the training: all its pages count as unseen")
        rows = replace(rows, seen=np.zeros(len(rows), dtype=np.bool_))
    met = _met(log, shards.pages, _when(manifest["data"]["spans"]["train"][1]))
    rows = replace(rows, seen=rows.seen & met[rows.page])
    found = evaluate(rows, tuple(manifest["edges"]), shops_of(shards.pages, metadata, vocabulary))
    return {**found, "notes": [*notes, *lacks(saved, log)]}


def _met(log: Log, pages: pl.DataFrame, until: datetime) -> Bools:
    """The pages of which the log told before a time; training cannot have seen others."""
    told = log.scan("values" if log.has("values") else "visits")
    early = told.filter(pl.col("at").dt.epoch("us") < epoch_us(until))
    ids = early.select("page_id").unique().collect()["page_id"]
    return np.asarray(pages["page_id"].is_in(ids.implode()).to_numpy())


def _judged(manifest: dict[str, Any], days: Judged, log: Log) -> tuple[Recipe, list[str]]:
    """The recipe whose test span is what is to be judged: the spans before it are made short."""
    recipe = recipe_of(manifest["recipe"])
    start, stop = (_when(text) for text in manifest["data"]["spans"]["test"])
    length = days.length or (stop - start)
    start = days.start or start
    known = _when(manifest["data"]["spans"]["validation"][1])
    notes = [] if start >= known else ["the model has learnt from some of these days"]
    before = _least(recipe)
    first, end = (datetime.fromtimestamp(us / 1e6, UTC) for us in log_span(log))
    if not first - _DAY < start - 2 * before < start < end:
        raise InputError(
            f"{log.folder}: tells of {first:%Y-%m-%d} to {end:%Y-%m-%d}; the days judged cannot "
            f"begin at {start:%Y-%m-%d}, but from {first + 2 * before + _DAY:%Y-%m-%d} on"
        )
    split = TimeSplit(before, before, length, start - 2 * before)
    return replace(recipe, split=split, observe=days.observe or recipe.observe), notes


def _least(recipe: Recipe) -> timedelta:
    """The shortest span that has examples: how far the first label reaches, and a step more."""
    ahead = timedelta(hours=recipe.edges[0]) if recipe.task == "change" else 2 * _DAY
    return (1 + -(-ahead // recipe.every)) * recipe.every


def recipe_of(told: dict[str, Any]) -> Recipe:
    """The inverse of `examples.plain`."""
    split = told["split"]
    start = split["start"] and datetime.fromisoformat(split["start"])
    spans = TimeSplit(**{part: timedelta(seconds=split[part]) for part in PARTS}, start=start)
    edges, every = tuple(told["edges"]), timedelta(seconds=told["every"])
    return Recipe(**{**told, "edges": edges, "every": every, "split": spans})


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def predict_pages(
    saved: Saved, log: Log, at: datetime | None = None, told: Told = lambda step: None
) -> tuple[pl.DataFrame, datetime]:
    """The probability of the event by each edge, for every page that is there at a time.

    The time is `at` in whole hours, or the end of the log; what came later is not looked at.
    Columns: `page_id`, then `p_6h` and so on (`p_day` of the next UTC day, `p_now`).
    """
    recipe = recipe_of(saved.manifest["recipe"])
    start, stop = log_span(log)
    first, end = start // HOUR_US, -(-stop // HOUR_US)  # whole hours, rounded outwards
    hour = end if at is None else int(at.timestamp()) // 3600
    if not first < hour <= end:
        ends = " to ".join(str(np.datetime64(each, "h")) for each in (first, end))
        raise InputError(f"{log.folder}: tells of {ends}, not of {at}")
    pages = pages_of(log)
    told("reading the log")
    inputs = _known(log, pages, recipe, hour)
    told("foretelling")
    metadata = Vocabulary.of(*saved.vocabulary).encode(pages)
    chances = saved.model.probabilities(inputs, metadata)
    names = columns_of(saved.manifest)
    there = pages.select("page_id")[inputs.page]
    rows = there.with_columns(**{name: chances[:, k] for k, name in enumerate(names)})
    return rows, datetime.fromtimestamp(hour * 3600, UTC)


def lacks(saved: Saved, log: Log) -> list[str]:
    """What a model looks at and a log cannot tell, in words."""
    looked = {name.partition("_")[0] for name in saved.manifest["features"]["dense"]}
    absent = ({"clicks", "impressions"} & looked) - log.columns("demand")
    return [f"the model looks at {what}, of which the log tells none" for what in sorted(absent)]


def columns_of(manifest: dict[str, Any]) -> list[str]:
    """The names of a model's probabilities."""
    if manifest["task"] == "change":
        return [f"p_{edge}h" for edge in manifest["edges"]]
    return ["p_now" if manifest["task"] == "stale" else "p_day"]


def _known(log: Log, pages: pl.DataFrame, recipe: Recipe, hour: int) -> Inputs:
    """What is known at an hour of the pages that are there."""
    past = stream_of(log, pages, recipe)
    announced = log.has("values")  # else pages are known before they are born by an answer
    life = np.full(len(pages), EventKind.GONE if announced else EventKind.BORN, dtype=np.int8)
    found = seen_events(log, pages, recipe.observe, seed=recipe.seed)
    if clips(log, recipe.clip):
        points, _ = read_points(log, pages, seed=recipe.seed, clip=recipe.clip)
        found = among(found, clipped(points, hour * HOUR_US))
    for events in found:
        if events.hour[0] >= hour:
            break
        before = events.take(events.hour < hour)
        past.learn(before)
        told = (before.kind == EventKind.BORN) | (before.kind == EventKind.GONE)
        life[before.page[told]] = before.kind[told]
        past.read(np.zeros(1, dtype=np.int64), before.hour[-1:])  # what is old need not be kept
    there = np.flatnonzero(life == EventKind.BORN)
    return past.read(there, np.full(len(there), hour))
