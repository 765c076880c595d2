"""Offers and publishers together: does one price share the visits better than a fixed split?"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace

import numpy as np

from salticus.allocate.leap import Leap
from salticus.clock import VirtualClock
from salticus.config import Budget, Config, Share, Span
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Given, Parts, make_parts
from salticus.exchange.linked import LinkTruth
from salticus.lab.simulate.discovery import LEARNING
from salticus.lab.simulate.estimates import predictor_of
from salticus.lab.simulate.readers import Readership
from salticus.lab.simulate.run import teach
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.copies import SimulatedCopies
from salticus.lab.worlds.joint import JointReplay
from salticus.lab.worlds.links import LinkReplay
from salticus.lab.worlds.replay import Replay
from salticus.schedule.planner import Planner
from salticus.types import Ints, Outcomes, Tick, instant

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

    readers: Readership
    stage: Stage
    served: float = 0.0
    wanted: float = 0.0
    visits: Ints = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    world: JointReplay | None = None

    def read(self, tick: Tick, copies: SimulatedCopies) -> None:
        if tick.start >= self.stage.score:
            rows, clicks = self.readers.clicks(tick)
            self.served += float(clicks[copies.fresh[rows]].sum())
            self.wanted += float(clicks.sum())

    def learn(self, outcomes: Outcomes) -> None:
        assert self.world is not None
        made = outcomes.page[outcomes.made & (outcomes.at >= instant(self.stage.score))]
        self.visits += np.bincount(self.world.kinds(made), minlength=3)


def crawl_both(
    stage: Stage, links: LinkTruth, visits_a_day: float, *, finding: float | None = None
) -> JointScore:
    """Crawl offers and links with leap: at one price, or with a fixed share of the visits for
    finding new pages. The links' first step is the tick before the crawl."""
    began = time.perf_counter()
    watcher = Watcher(stage.readers, stage)
    watcher.world = world = _world(stage, links, watcher)
    parts = _parts(stage, Leap(finding=finding), visits_a_day)
    teach(stage, world.offers, parts.predictor)
    loop = Loop(world, parts, watchers=[watcher])
    world.asks = loop.admit
    asyncio.run(loop.run(stage.end))
    served, wanted = _articles(world.links, stage)
    return JointScore(
        served=(watcher.served, served),
        wanted=(watcher.wanted, wanted),
        visits=tuple(watcher.visits.tolist()),
        seconds=time.perf_counter() - began,
    )


def _world(stage: Stage, links: LinkTruth, watcher: Watcher) -> JointReplay:
    offers = Replay(stage.truth, stage.readers, [watcher], seed=stage.seed)
    offers.begin(stage.crawl)
    offers.sync(stage.crawl - stage.rules.tick)
    links.attention.rewind()
    return JointReplay(offers, LinkReplay(links, LEARNING.finder(links)))


def _parts(stage: Stage, policy: Leap, visits_a_day: float) -> Parts:
    config = Config(
        budget=Budget(visits_a_day, per_page=False),
        tick=Span(seconds=stage.rules.tick.total_seconds()),
        seed=stage.seed,
        explore=Share(0.0),
    )
    given = Given(policy, predictor_of(stage))
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
