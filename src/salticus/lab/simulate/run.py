"""One run: the real loop on a replayed log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from salticus import allocate, plugins, schedule
from salticus.allocate.base import Policy
from salticus.allocate.explore import Explore
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.crawl.lessons import Learner
from salticus.crawl.loop import Loop
from salticus.crawl.snapshot import Memory
from salticus.lab.simulate.clairvoyant import Clairvoyant
from salticus.lab.simulate.estimates import predictor_of
from salticus.lab.simulate.logged import logged_visits
from salticus.lab.simulate.referee import Referee, Score
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.replay import Replay, fully_observed, visit_by_visit
from salticus.predict.base import Predictor
from salticus.predict.learnt import Learnt
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.types import Outcomes, Tick


def run(
    stage: Stage, policy: str, budget: Budget | None, watchers: Sequence[Learner] = ()
) -> Score:
    """Crawl the stage's world with a policy and a budget; None spends what the policy asks for.

    ``policy@spacing`` names a spacing other than that of the rules.
    """
    began = time.perf_counter()
    policy, _, spacing = policy.partition("@")
    if spacing:
        stage = replace(stage, rules=replace(stage.rules, spacing=spacing))
    referee = Referee(stage.readers, stage.score)
    world = Replay(stage.truth, stage.readers, [referee], seed=stage.seed)
    _open(stage, world)
    loop = _loop(stage, world, _policy(stage, world, policy), budget)
    loop.watchers += [referee, *watchers]
    teach(stage, world, loop.predictor)
    if stage.rules.frozen:
        loop.predictor = Frozen(loop.predictor)
    asyncio.run(loop.run(stage.end))
    referee.close()
    referee.score.seconds = time.perf_counter() - began
    return referee.score


class Frozen:
    """A predictor that has learnt enough."""

    def __init__(self, predictor: Predictor) -> None:
        self.survival = predictor.survival

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing."""


def _loop(stage: Stage, world: Replay, policy: Policy, budget: Budget | None) -> Loop:
    rules = stage.rules
    spacing = getattr(policy, "spacing", rules.spacing)
    every_tick = Budget(86_400 / rules.tick.total_seconds(), per_page=True)
    return Loop(
        world=world,
        ticks=Ticks(VirtualClock(stage.crawl), rules.tick),
        predictor=predictor_of(stage),
        policy=policy,
        spacing=plugins.make("spacing", spacing, schedule.BUILTIN, seed=stage.seed),
        ledger=Ledger(budget or every_tick),
        planner=Planner(seed=stage.seed, at_once=True),
        memory=Memory({}),
        explore=Explore(rules.explore, seed=stage.seed),
    )


def _policy(stage: Stage, world: Replay, name: str) -> Policy:
    """A policy by name; the two that know more than a crawler can are made for this world."""
    if name == "clairvoyant":
        return Clairvoyant(world, stage.readers, stage.end)
    if name == "logged":
        return logged_visits(stage.log, stage.truth)
    made: Policy = plugins.make("policy", name, allocate.BUILTIN, seed=stage.seed)
    return made


def _open(stage: Stage, world: Replay) -> None:
    """Bring the world to the start of the crawl, with the copies that the history left."""
    world.begin(stage.crawl)
    if stage.past is None:
        world.sync(stage.crawl - stage.rules.tick)
    else:
        held = stage.past.held
        world.hold(held.rows, held.values, held.at)


def teach(stage: Stage, world: Replay, predictor: Predictor) -> None:
    """Let the predictor meet the pages, and learn their history."""
    opening = Tick(0, stage.crawl, stage.crawl + stage.rules.tick)
    predictor.survival(asyncio.run(world.pages(opening)), stage.start)
    for outcomes in _history(stage, whole=not isinstance(predictor, Learnt)):
        predictor.learn(outcomes)


def _history(stage: Stage, *, whole: bool) -> Iterator[Outcomes]:
    if stage.crawl <= stage.start:
        return iter(())
    if stage.past is None:
        watch = fully_observed if whole else visit_by_visit
        return watch(stage.truth, stage.start, stage.crawl, stage.rules.tick)
    return iter([stage.past.outcomes])
