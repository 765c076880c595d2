"""One run: the real loop on a replayed log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np

from salticus import allocate, plugins
from salticus.allocate.base import Policy
from salticus.clock import VirtualClock
from salticus.config import Budget, ClickScore, Config, Desk, Share, Span
from salticus.crawl.loop import Loop
from salticus.crawl.opening import RENDERED
from salticus.crawl.parts import Given, Learner, Parts, make_parts
from salticus.exchange.write import spelt
from salticus.lab.simulate.arms import keep_all, record_of
from salticus.lab.simulate.clairvoyant import Clairvoyant
from salticus.lab.simulate.clicking import by_window, clicks_of
from salticus.lab.simulate.estimates import Estimators, stretches
from salticus.lab.simulate.logged import logged_visits
from salticus.lab.simulate.named import Contestant, contestant
from salticus.lab.simulate.referee import Referee, Score
from salticus.lab.simulate.stage import SimulationSettings, Stage
from salticus.lab.worlds.replay import Burden, ClickedReplay, DemandSource, Replay
from salticus.predict.base import Meets, Predictor
from salticus.schedule.planner import Planner
from salticus.types import Instant, Ints, Outcomes, Pages, Survival, Tick, instant
from salticus.types.coins import coins

_OTHERS = 37 << 32  # others flip coins of the same seed and page


def run(
    stage: Stage, policy: str, budget: Budget | None, watchers: Sequence[Learner] = ()
) -> Score:
    """Crawl the stage's world with a policy and a budget; None spends what the policy asks for.

    The policy may name a spacing and estimates other than those of the rules (see `contestant`).
    """
    began = time.perf_counter()
    named = contestant(policy, stage.rules.models)
    stage = replace(stage, rules=ruled(stage.rules, named))
    referee, estimators = Referee(stage.readers, stage.score, stage.truth.born), Estimators(stage)
    world = _world(stage, estimators.demand, referee)
    teach(stage, world, estimators)
    chooses = _policy(stage, world, named.policy)
    keep_all(chooses)
    parts = _parts(stage, chooses, estimators.predictor, budget)
    if stage.rules.frozen:
        parts = replace(parts, predictor=Frozen(parts.predictor))
    loop = Loop(world, parts, watchers=[referee, estimators, *watchers])
    if isinstance(world, ClickedReplay):
        world.let_click(clicks_of(stage), partial(_urged, loop))
    asyncio.run(loop.run(stage.end))
    referee.close()
    _judge(stage, world, referee.score)
    referee.score.arms = record_of(chooses)
    referee.score.seconds = time.perf_counter() - began
    return referee.score


def ruled(rules: SimulationSettings, named: Contestant) -> SimulationSettings:
    """The rules, but for what the name of a policy says."""
    return replace(
        rules,
        spacing=named.spacing or rules.spacing,
        estimates=named.estimates or rules.estimates,
    )


class Frozen:
    """A predictor that has learnt enough."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    def meet(self, pages: Pages, now: datetime) -> None:
        if isinstance(self.predictor, Meets):
            self.predictor.meet(pages, now)

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return self.predictor.survival(pages, now)

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing."""


def _world(stage: Stage, demand: DemandSource, referee: Referee) -> Replay:
    """The replay at the start of the crawl, with the copies that the history left; clicks come one
    by one if they may bring visits."""
    truth, rules, seed = stage.truth, stage.rules, stage.seed
    dear = coins(seed + _OTHERS, truth.ids, 0) < rules.rendered
    room = np.inf if rules.delay is None else rules.tick / rules.delay
    burden = Burden(np.where(dear, float(RENDERED), 1.0), room)
    made = Replay if rules.insta is None else ClickedReplay
    world = made(truth, demand, [referee], seed=seed, burden=burden)
    world.begin(stage.crawl)
    copies = rules.copies or ("fresh" if stage.past is None else "logged")
    if copies == "fresh":
        world.sync(stage.crawl - rules.tick)
    elif copies == "logged" and stage.past is not None:
        world.hold(stage.past.rows, stage.past.values, stage.past.at)
    return world


async def _urged(loop: Loop, pages: Ints, now: Instant) -> None:
    """Let clicks ask for visits, by the same door as those that come in at the desk."""
    await loop.urge(lambda: loop.parts.insta.ask(pages, now))


def _judge(stage: Stage, world: Replay, score: Score) -> None:
    """What the measured days' visits cost, and what their clicks found."""
    known = stage.truth.ids < len(score.visited)
    visits = score.visited[stage.truth.ids[known]]
    score.cost = float(visits @ world.cost[known])
    if isinstance(world, ClickedReplay):
        late = world.clicks.at >= instant(stage.score)
        score.clicked = int(np.count_nonzero(late))
        score.stale_clicks = int(np.count_nonzero(late & world.stale_))
        score.found_stale = world.stale_
        windows = by_window(world.clicks.at, ~world.stale_, stage.crawl, stage.end)
        score.windows = windows.tolist()


def _parts(stage: Stage, policy: Policy, predictor: Predictor, budget: Budget | None) -> Parts:
    rules, desk = stage.rules, Desk()
    if insta := rules.insta:  # the settings under which a crawl would take these clicks
        share, through = Share(insta.share), Share(insta.gate_share)
        score = ClickScore("stale" if insta.horizon is None else spelt(insta.horizon))
        desk = Desk("127.0.0.1:0", insta=share, gate=insta.gate, share=through, score=score)
    config = Config(
        budget=budget or Budget(86_400 / rules.tick.total_seconds(), per_page=True),
        tick=Span(seconds=rules.tick.total_seconds()),
        seed=stage.seed,
        spacing=rules.spacing,
        explore=Share(rules.explore),
        desk=desk,
    )
    parts = make_parts(config, VirtualClock(stage.crawl), given=Given(policy, predictor))
    return replace(parts, planner=Planner(seed=stage.seed, at_once=True))


def _policy(stage: Stage, world: Replay, name: str) -> Policy:
    """A policy by name; the two that know more than a crawler can are made for this world."""
    if name == "clairvoyant":
        return Clairvoyant(world, stage.readers, stage.end)
    if name == "logged":
        return logged_visits(stage.log, stage.truth)
    made: Policy = plugins.make("policy", name, allocate.BUILTIN, seed=stage.seed)
    return made


def teach(stage: Stage, world: Replay, estimators: Estimators) -> None:
    """Let the estimators learn the history. Where a model is weighed against it, that is learnt on
    the last days, on each of which both say what the next day brings."""
    opening = Tick(0, stage.crawl, stage.crawl + stage.rules.tick)
    estimators.meet(world.there(opening), stage.start)
    for start, end, weighed in stretches(stage, weighing=estimators.weighing):
        if weighed:
            estimators.ask(world.there(Tick(0, start, end)), start)
        estimators.study(start, end)
