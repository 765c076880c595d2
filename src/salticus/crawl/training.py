"""A model from the visits of a crawl: trained on its store, judged beside the one that serves."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from salticus.crawl.contest import FAIR, Foretold, JudgedTime, Rival, contest
from salticus.crawl.demand_contest import ForetoldDemand, demand_contest
from salticus.crawl.fitting import fit_traits
from salticus.crawl.opening import Crawl, open_crawl
from salticus.crawl.parts import places_of, predictor_of, registry_of
from salticus.crawl.retraining import end_with_parent
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.write import export_log
from salticus.features.following import NOWHERE, as_crawled
from salticus.features.places import Places
from salticus.models.registry import NONE, YOUNG, Judgement, Registry
from salticus.models.training.recipe import HAZARD, Recipe, TimeSplit
from salticus.models.training.run import ModelSpec, train_model
from salticus.models.traits import TRAITS, Traits, load_version, save_traits
from salticus.store.base import Store, VisitStore
from salticus.types import UNKNOWN, Instant, moment
from salticus.types.frames import pl
from salticus.types.prices import is_short

Told = Callable[[str], None]

SPARE = 0.2  # share of the time, the latest, on which models are judged
SHORT = (6, 24, 72)  # hours ahead, for a crawl that is not old enough for `HAZARD`
_OLD = timedelta(days=90)
_DAY = timedelta(days=1)
_EXAMPLES = 1_000_000


class Trained(msgspec.Struct, frozen=True):
    """What came of a training: the model's number (None if there is too little to learn from),
    whether it serves now, and why."""

    version: int | None
    promoted: bool
    why: str
    judgement: Judgement | msgspec.UnsetType = msgspec.UNSET
    task: str = "change"


async def train_crawl(
    crawl: Crawl,
    spec: ModelSpec | None = None,
    *,
    task: str = "change",
    seed: int = 0,
    told: Told = lambda step: None,
) -> Trained:
    """Train a model on the crawl's own visits and clicks, judge it, and let it serve if it is the
    better one; of the kind that the settings say if none is asked for.

    The latest fifth of the time is kept from it, and is what it is judged on.
    """
    told("looking at the visits")
    store, registry = crawl.store, registry_of(crawl.config, task)
    spec, least = spec or ModelSpec(), crawl.config.models.least
    spec = replace(spec, model=spec.model or crawl.config.models.kind)
    start, when, fair = _known(crawl)
    fair = fair if task == "change" else least  # of demand all pages are fair judges
    if (lack := _lacking(when.end - start, fair, least)) is not None:
        return Trained(None, False, lack, task=task)
    version = registry.following()
    recipe = replace(recipe_for(start, when, seed=seed), task=task)
    if spec.model != TRAITS:
        make_model(crawl, registry.path(version), recipe, spec, told)
    elif not await _fit(store, registry.path(version), (start, when), seed, told):
        return Trained(None, False, "the rhythm as it is predicts the visits to explore best")
    told("judging")
    candidate = load_version(registry.path(version))
    incumbent, rival = _incumbent(registry)
    found = await judged(crawl, task, (candidate, rival), when)
    promoted, why = found.verdict(least)
    judgement = Judgement(
        at=_iso(crawl.now()),
        span=(_iso(start), _iso(when.start)),
        judged=(_iso(when.start), _iso(when.end)),
        visits=len(found),
        incumbent=incumbent,
        candidate_figures=found.figures(0),
        incumbent_figures=found.figures(1),
        promoted=promoted,
        why=why,
    )
    registry.judge(version, judgement)
    serves = registry.pointer().serving == version
    return Trained(version, serves, why, judgement, task)


async def train_all(
    crawl: Crawl,
    spec: ModelSpec | None = None,
    *,
    seed: int = 0,
    told: Told = lambda step: None,
) -> list[Trained]:
    """Train whatever may come to serve: models of changes and fitted traits, where the predictor
    is `serving`, of clicks and of impressions. What cannot be trained keeps no other back."""
    kind = spec or ModelSpec()
    wanted = [("change", kind), ("change", ModelSpec(model=TRAITS))]
    wanted = wanted if predictor_of(crawl.config) == "serving" else []
    found = []
    for task, each in [*wanted, ("click", kind), ("impression", kind)]:
        try:
            found.append(await train_crawl(crawl, each, task=task, seed=seed, told=told))
        except InputError as error:
            found.append(Trained(None, False, str(error), task=task))
    return found


async def judged(
    crawl: Crawl, task: str, rivals: Sequence[Rival], when: JudgedTime
) -> Foretold | ForetoldDemand:
    """What rivals would have foretold of a time, and what came."""
    places = places_of(crawl.config)
    if task == "change":
        return await contest(crawl.store, rivals, when, places)
    return await demand_contest(crawl.store, task, rivals, when, places)


def make_model(crawl: Crawl, folder: Path, recipe: Recipe, spec: ModelSpec, told: Told) -> None:
    """Train a model on what a crawl has stored."""
    with TemporaryDirectory(prefix="salticus-") as space:
        log = crawled_log(crawl.store, Path(space) / "log", places_of(crawl.config))
        spec = replace(spec, examples=Path(space) / "examples")
        train_model(log, recipe, spec, folder, told)


async def _fit(
    store: Store, folder: Path, known: tuple[datetime, JudgedTime], seed: int, told: Told
) -> bool:
    """Fit traits to the visits before those that are judged, and save them; False if they are the
    usual ones."""
    start, when = known
    half = JudgedTime(start + (when.start - start) / 2, when.start, when.tick)
    traits, about = await fit_traits(store, half, seed=seed, told=told)
    if traits != Traits():
        save_traits(folder, traits, about)
    return traits != Traits()


async def compare(
    crawl: Crawl, versions: tuple[int, int], task: str = "change"
) -> tuple[Foretold | ForetoldDemand, JudgedTime]:
    """Two models, or 0 for none, on the latest fifth of the time."""
    _, when, _ = _known(crawl)
    registry = registry_of(crawl.config, task)
    rivals = [None if n == NONE else load_version(registry.path(n)) for n in versions]
    return await judged(crawl, task, rivals, when), when


def crawled_log(store: VisitStore, folder: Path, places: Places = NOWHERE) -> Log:
    """The visits and clicks of a store as a log of what a crawl knows of its pages, so that the
    features are those that the crawl itself keeps: of values, those of offers."""

    def rows(table: str) -> Iterator[dict[str, Any]]:
        if table == "visits":
            return ({**row, "value": _offered(row["value"])} for row in store.scan(table))
        return store.scan(table) if table in ("pages", "demand") else iter(())

    export_log(rows, folder, name="crawl")
    pages = pl.read_parquet(folder / "pages.parquet")
    as_crawled(pages, places).write_parquet(folder / "pages.parquet")
    return Log(folder)


def _offered(value: str | None) -> str | None:
    return value if value and is_short(value) else None


def recipe_for(start: datetime, when: JudgedTime, *, seed: int) -> Recipe:
    """What is learnt from a crawl that began at `start` and is judged as given.

    A quarter of the time before the judgement is for validation, in whole days.
    """
    first = (start + _DAY - timedelta(microseconds=1)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    known = when.start - first
    validation = max(_DAY, known / 4 // _DAY * _DAY)
    return Recipe(
        edges=HAZARD if known >= _OLD else SHORT,
        observe="partial",
        split=TimeSplit(known - validation, validation, when.end - when.start, first),
        every=timedelta(hours=6),
        examples=_EXAMPLES,
        unseen=0.0,
        seed=seed,
    )


def _known(crawl: Crawl) -> tuple[datetime, JudgedTime, int]:
    """When the visits begin, the time that is judged, and how many fair judges there are in it."""
    first: Instant | None = None
    fair = []
    for chunk in crawl.store.history():
        first = chunk.at[0] if first is None else first
        last = chunk.at[-1]
        fair.append(chunk.at[np.isin(chunk.purpose, FAIR) & (chunk.changed != UNKNOWN)])
    if first is None:
        raise InputError("nothing was visited yet, so there is nothing to learn from")
    late = first + (last - first) * (1 - SPARE)
    judges = sum(int(np.count_nonzero(at >= late)) for at in fair)
    return moment(first), JudgedTime(moment(late), moment(last), crawl.config.tick), judges


def _lacking(known: timedelta, fair: int, least: int) -> str | None:
    """What is missing for a model that could take over, in words; None if nothing is."""
    if known < YOUNG:
        return f"not enough yet: visits of {known / _DAY:.1f} days, {YOUNG / _DAY:g} are needed"
    if fair < least:
        return (
            f"not enough yet: {fair} visits to explore or of the panel in the latest fifth of the "
            f"time, {least} are needed"
        )
    return None


def _incumbent(registry: Registry) -> tuple[int, Rival]:
    """The model that serves; none if it cannot be opened."""
    version = registry.pointer().chain()[0]
    if version == NONE:
        return NONE, None
    try:
        return version, load_version(registry.path(version))
    except InputError:
        return NONE, None


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


async def _main(settings: str) -> list[Trained]:
    async with open_crawl(settings) as crawl:
        return await train_all(crawl)


if __name__ == "__main__":  # beside a crawl, in a process of its own; see `retraining`
    end_with_parent()
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_main(sys.argv[1]))))
