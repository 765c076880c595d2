"""Offers and publishers together: does one price share the visits better than a fixed split?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from salticus import allocate, plugins
from salticus.allocate.base import Policy
from salticus.clock import VirtualClock
from salticus.config import Budget, Config, Share, Span
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Given, Parts, make_parts
from salticus.crawl.scout import admit
from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.exchange.linked import LinkTruth
from salticus.exchange.write import spelt
from salticus.lab.simulate.discovery import (
    LEARNING,
    DiscoverySettings,
    Learning,
    Told,
    set_links,
)
from salticus.lab.simulate.estimates import Estimators
from salticus.lab.simulate.run import teach
from salticus.lab.simulate.stage import SimulationSettings, Stage, set_stage
from salticus.lab.worlds.copies import SimulatedCopies
from salticus.lab.worlds.joint import JointReplay
from salticus.lab.worlds.links import LinkReplay
from salticus.lab.worlds.publishers import PublisherSettings
from salticus.lab.worlds.publishers import publishers as make
from salticus.lab.worlds.replay import Replay
from salticus.predict.base import Predictor
from salticus.schedule.planner import Planner
from salticus.types import Ints, Outcomes, Tick, instant

_DAY = timedelta(days=1)

SYNTHETIC = PublisherSettings(profit=1.0, steady=False, after=1)
"""Publishers beside offers if no log of links is given: with a rhythm, and a click or so a page."""

KINDS = ("offers", "sources", "articles")


@dataclass(frozen=True, slots=True)
class JointScore:
    """What a crawl of both served in the scored days.

    Clicks `served`: on offers whose copy is current, on articles that are held. `wanted` are all
    clicks on offers, and on articles of which the first link appeared during the crawl. `visits`
    are those to offers, sources and articles.
    """

    served: tuple[float, float]
    wanted: tuple[float, float]
    visits: tuple[int, int, int]
    seconds: float

    @property
    def share(self) -> float:
        """Clicks served of all."""
        return sum(self.served) / sum(self.wanted)


@dataclass
class Watcher:
    """Counts what is served of the clicks on offers, and the visits of each kind."""

    stage: Stage
    served: float = 0.0
    wanted: float = 0.0
    visits: Ints = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    world: JointReplay | None = None

    def read(self, tick: Tick, copies: SimulatedCopies) -> None:
        if tick.start >= self.stage.score:
            rows, clicks = self.stage.readers.clicks(tick)
            self.served += float(clicks[copies.fresh[rows]].sum())
            self.wanted += float(clicks.sum())

    def learn(self, outcomes: Outcomes) -> None:
        assert self.world is not None
        made = outcomes.page[outcomes.made & (outcomes.at >= instant(self.stage.score))]
        self.visits += np.bincount(self.world.kinds(made), minlength=3)


@dataclass(frozen=True, slots=True)
class Knowing:
    """What crawls know when they begin: a `predictor` that was taught the history of the offers,
    which each of them copies, and how they learn what sources promise."""

    predictor: Predictor
    learning: Learning = LEARNING


def crawl_both(
    stage: Stage,
    links: LinkTruth,
    visits_a_day: float,
    *,
    finding: float | None = None,
    knowing: Knowing | None = None,
) -> JointScore:
    """Crawl offers and links with leap: at one price, or with a fixed share of the visits for
    finding new pages. The links' first step is the tick before the crawl."""
    began = time.perf_counter()
    watcher = Watcher(stage)
    knowing = knowing or Knowing(taught_of(stage))
    watcher.world = world = joint_world(stage, links, knowing.learning, watcher)
    predictor = deepcopy(knowing.predictor)
    leap: Policy = plugins.make("policy", "leap", allocate.BUILTIN, finding=finding)
    loop = Loop(world, joint_parts(stage, leap, predictor, visits_a_day))
    loop.watchers.append(watcher)
    world.asks = partial(admit, loop)
    asyncio.run(loop.run(stage.end))
    served, wanted = _articles(world.links, stage)
    offers, sources, articles = watcher.visits.tolist()
    return JointScore(
        served=(watcher.served, served),
        wanted=(watcher.wanted, wanted),
        visits=(offers, sources, articles),
        seconds=time.perf_counter() - began,
    )


def taught_of(stage: Stage) -> Predictor:
    """The predictor of the rules, taught the history of the offers."""
    estimators = Estimators(stage)
    if estimators.features:
        raise ConfigError("--estimates: beside publishers there is none by a model yet")
    teach(stage, Replay(stage.truth, stage.readers, seed=stage.seed), estimators)
    return estimators.predictor


def links_beside(stage: Stage, publishers: str) -> LinkTruth:
    """The links of a log, or of so many synthetic sources, laid beside a crawl of offers: their
    first step is the tick before it. ConfigError if they end before it does."""
    tick = stage.rules.tick
    days = (stage.end - stage.crawl) // _DAY + 1
    if publishers.isdecimal():
        settings = replace(SYNTHETIC, sources=int(publishers), days=days, step=tick)
        links, _ = make(settings, stage.seed)
    else:
        links = set_links(Log(Path(publishers)), DiscoverySettings(tick=tick))
    if links.steps <= (stage.end - stage.crawl) / tick:
        lasts = links.steps * tick // _DAY
        raise ConfigError(f"--publishers: the links last {lasts} days; shorten --warmup and --days")
    return replace(links, start=stage.crawl - tick)


def contest(
    log: Log,
    rules: SimulationSettings,
    publishers: str,
    shares: tuple[Sequence[Budget], Sequence[float | None]],
    told: Told = lambda step: None,
) -> dict[str, Any]:
    """Crawl a log of offers beside publishers with every budget and split, None for one price; the
    result as plain data, means over the runs."""
    found: dict[tuple[Budget, float | None], list[JointScore]] = {}
    for run in range(rules.runs or 1):
        told(f"run {run + 1}: reading the logs")
        stage = set_stage(log, rules, run=run)
        links, knowing = links_beside(stage, publishers), Knowing(taught_of(stage))
        for key in product(*shares):
            visits, split = key[0].per_day(len(stage.truth) + links.sources), key[1]
            told(f"run {run + 1}: {visits:,.0f} visits a day, {spelt_split(split)}")
            score = crawl_both(stage, links, visits, finding=split, knowing=knowing)
            found.setdefault(key, []).append(score)
    about = {"name": log.about.name, "folder": str(log.folder), "offers": len(stage.truth)}
    about |= {"publishers": publishers, "sources": links.sources, "pages": links.pages}
    used = {"tick": spelt(rules.tick), "runs": rules.runs or 1, "seed": rules.seed}
    many = len(stage.truth) + links.sources
    rows = [
        {"visits_per_day": round(budget.per_day(many), 3), **mean_of(finding, scores)}
        for (budget, finding), scores in found.items()
    ]
    return {"log": about, "rules": used, "rows": rows, "notes": list[str]()}


def spelt_split(finding: float | None) -> str:
    """A split in words.

    >>> spelt_split(None), spelt_split(0.3)
    ('one price', '30 % for finding')
    """
    return "one price" if finding is None else f"{100 * finding:g} % for finding"


def mean_of(finding: float | None, scores: Sequence[JointScore]) -> dict[str, Any]:
    """What crawls of one split achieved, on average."""
    offers, articles = (
        float(np.mean([score.served[kind] / score.wanted[kind] for score in scores]))
        for kind in (0, 1)
    )
    visits = np.mean([score.visits for score in scores], axis=0)
    return {
        "split": finding,
        "share": float(np.mean([score.share for score in scores])),
        "offers": offers,
        "articles": articles,
        "visits": dict(zip(KINDS, visits.round(1).tolist(), strict=True)),
        "seconds": round(float(np.mean([score.seconds for score in scores])), 3),
    }


def joint_world(
    stage: Stage, links: LinkTruth, learning: Learning, watcher: Watcher
) -> JointReplay:
    """Offers whose copies are all fresh, and sources that were visited just before the crawl."""
    offers = Replay(stage.truth, stage.readers, [watcher], seed=stage.seed)
    offers.begin(stage.crawl)
    offers.sync(stage.crawl - stage.rules.tick)
    links.attention.rewind()
    beside = LinkReplay(links, learning.finder(links), resolve=learning.resolve)
    return JointReplay(offers, beside)


def joint_parts(stage: Stage, policy: Policy, predictor: Predictor, visits_a_day: float) -> Parts:
    """What plans and learns with so many visits a day, whatever is found."""
    config = Config(
        budget=Budget(visits_a_day, per_page=False),
        tick=Span(seconds=stage.rules.tick.total_seconds()),
        seed=stage.seed,
        explore=Share(0.0),
    )
    given = Given(policy, predictor)
    parts = make_parts(config, VirtualClock(stage.crawl), given=given)
    return replace(parts, planner=Planner(seed=stage.seed, at_once=True))


def _articles(world: LinkReplay, stage: Stage) -> tuple[float, float]:
    """Clicks in the scored days on articles from when they were fetched, and from their birth."""
    truth, fetched = world.truth, world.fetched_
    first, end = ((at - truth.start) // truth.step for at in (stage.score, stage.end))
    new = np.flatnonzero(fetched >= -1)
    held = np.flatnonzero(fetched >= 0)
    served, wanted = (
        truth.attention.after(rows, np.maximum(since, first))
        - truth.attention.after(rows, np.maximum(since, end))
        for rows, since in ((held, fetched[held]), (new, truth.born[new]))
    )
    return float(served.sum()), float(wanted.sum())
