"""The models of a crawl: which there are, which one serves, and which one predicts better."""

from __future__ import annotations

from datetime import datetime

import msgspec

from salticus.config import Config
from salticus.crawl.opening import Crawl
from salticus.crawl.parts import predictor_of, registry_of
from salticus.crawl.snapshot import learnt_trust
from salticus.crawl.training import compare
from salticus.errors import InputError
from salticus.models.registry import NONE, Event, Judgement
from salticus.models.training.run import TASKS
from salticus.models.traits import traits_told


class ModelView(msgspec.Struct, frozen=True):
    """A model: whether it serves, and how it was judged; `broken` says why it cannot serve,
    `traits` what was fitted if it is no model of features but a fitted rhythm."""

    model: int
    serves: bool
    pinned: bool
    broken: str | None
    judgement: Judgement | None
    traits: str | None = None


class ServingView(msgspec.Struct, frozen=True):
    """The model that serves (0 = none), since when, and whether it is pinned."""

    serving: int
    since: str | None
    pinned: bool


class TaskView(ServingView, frozen=True):
    """All models of a task, what happened to them, and the weight that the one in service has
    beside history, by how many observations are known of a page; None without one."""

    models: list[ModelView]
    history: list[Event]
    weights: dict[str, float] | None


class ModelsView(TaskView, frozen=True):
    """All models of changes, and those of clicks and impressions."""

    click: TaskView
    impression: TaskView


class Compared(msgspec.Struct, frozen=True, rename={"first": "A", "second": "B"}):
    """Two models on the latest fifth of the crawl's time: scores, and if the first is better."""

    first: dict[str, float | None]
    second: dict[str, float | None]
    judged: tuple[datetime, datetime]
    visits: int
    better: bool
    why: str


async def models(crawl: Crawl) -> ModelsView:
    """All that the registries know."""
    weights = await learnt_weights(crawl)
    change, click, impression = (_task(crawl, task, weights.get(task)) for task in TASKS)
    return ModelsView(**msgspec.structs.asdict(change), click=click, impression=impression)


async def learnt_weights(crawl: Crawl) -> dict[str, dict[str, float]]:
    """By task, the weight of the model in service beside history, by known observations."""
    trusts = await learnt_trust(crawl.store)
    serving = (task for task in TASKS if registry_of(crawl.config, task).pointer().chain()[0])
    return {task: trusts[task].by_known() for task in serving if task in trusts}


def _task(crawl: Crawl, task: str, weights: dict[str, float] | None) -> TaskView:
    registry = registry_of(crawl.config, task)
    pointer = registry.pointer()
    return TaskView(
        weights=weights,
        serving=pointer.chain()[0],
        since=pointer.since,
        pinned=pointer.pinned,
        models=[
            ModelView(
                model=version,
                serves=version == pointer.chain()[0],
                pinned=pointer.pinned and version == pointer.serving,
                broken=pointer.broken.get(str(version)),
                judgement=registry.judgement(version),
                traits=traits_told(registry.path(version)),
            )
            for version in registry.versions()
        ],
        history=registry.history(),
    )


async def pin(crawl: Crawl, version: int, task: str = "change") -> ServingView:
    """Let a model serve, whatever is trained later."""
    registry_of(crawl.config, task).pin(version, crawl.now())
    return _serving(crawl, task)


async def unpin(crawl: Crawl, task: str = "change") -> ServingView:
    """Let better models take over again."""
    registry_of(crawl.config, task).unpin(crawl.now())
    return _serving(crawl, task)


async def roll_back(crawl: Crawl, task: str = "change") -> ServingView:
    """Let the model serve that served before, or none."""
    registry_of(crawl.config, task).roll_back(crawl.now())
    return _serving(crawl, task)


def _serving(crawl: Crawl, task: str) -> ServingView:
    pointer = registry_of(crawl.config, task).pointer()
    return ServingView(pointer.chain()[0], pointer.since, pointer.pinned)


async def compared(crawl: Crawl, versions: tuple[int, int], task: str = "change") -> Compared:
    """Two models, or 0 for none, on the visits to explore and of the panel; of clicks and
    impressions, on all pages day by day."""
    found, when = await compare(crawl, versions, task)
    better, why = found.verdict(crawl.config.models.least)
    return Compared(
        first={"model": versions[0], **found.figures(0)},
        second={"model": versions[1], **found.figures(1)},
        judged=(when.start, when.end),
        visits=len(found),
        better=better,
        why=why,
    )


def predictor_told(config: Config) -> str:
    """Who predicts changes, and since when."""
    name = predictor_of(config)
    if name != "serving":
        return name
    try:
        pointer = registry_of(config).pointer()
    except InputError as error:
        return f"rhythm, or the model that served last: {error}"
    version = pointer.chain()[0]
    said = "rhythm, no model yet" if version == NONE else f"model {version}"
    if pointer.since is not None:
        word = "pinned" if pointer.pinned else "chosen"
        said = f"{said.partition(',')[0]}, {word} {pointer.since}"
    if (traits := traits_told(registry_of(config).path(version))) is not None:
        said += f"; fitted: {traits}"
    if version != pointer.serving:
        said += f"; model {pointer.serving} is broken: {pointer.broken[str(pointer.serving)]}"
    return said
