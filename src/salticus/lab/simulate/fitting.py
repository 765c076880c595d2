"""Traits fitted to the history: full sight of its first half, coins in the other.

What decides is how well the outcomes of the coins' visits are foretold (log loss), each by what
was known before it. Nothing of the crawl, and nothing after its start, is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.place import check_free
from salticus.exchange.truth import Truth
from salticus.lab.simulate.fitted import FittedReplay
from salticus.lab.simulate.forecasts import KnownPages
from salticus.lab.simulate.stage import Stage, whole_stage
from salticus.lab.worlds.replay import Replay, fully_observed, told_of
from salticus.models.training.traits import likeliest
from salticus.models.traits import Traits, save_traits
from salticus.predict.base import ask
from salticus.predict.fitted import Fitted
from salticus.predict.kin import Kin
from salticus.types import CHANGED, UNCHANGED, Ints, Outcomes, Tick, days_between, instant, moment
from salticus.types.coins import coins
from salticus.types.frames import pl

_VISITS = (0.03, 2.0)  # a day: the least and the most that a page's coin makes
_KIN = ("merchant", "host", "brand")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A history to fit to: what was watched, then the coins' visits, tick by tick."""

    stage: Stage
    watched: list[Outcomes]
    visited: list[Outcomes]


def fitted(stage: Stage) -> FittedReplay:
    """A rhythm with the traits that the stage's history shows, which has learnt nothing yet."""
    kin = kin_of(stage.log, stage.truth)
    if (stage.crawl - stage.start) < 4 * stage.rules.tick or stage.past is not None:
        return FittedReplay(Traits(), kin)
    drawn = stage.seed if stage.truth.imputed else stage.rules.seed
    span = (stage.start, stage.crawl, stage.rules.tick)
    return FittedReplay(
        _traits(_World(stage.log.folder, span, len(stage.truth), drawn, stage)), kin
    )


def fit_log(log: Log, folder: Path, *, seed: int = 0) -> tuple[Traits, dict[str, Any]]:
    """The traits that a log shows, saved in a new folder; with its manifest."""
    check_free(folder)
    stage = whole_stage(log, seed=seed)
    found, rehearsal = fitted(stage), rehearsed(stage)
    usual, best = (
        log_loss(rehearsal, FittedReplay(each, found.kin)) for each in (Traits(), found.traits)
    )
    spans = {"validation": [stage.start.isoformat(), stage.crawl.isoformat()]}
    about = {
        "seed": seed,
        "data": {"log": log.about.name, "spans": spans},
        "fitting": {"log_loss": best, "usual_log_loss": usual},
    }
    return found.traits, save_traits(folder, found.traits, about)


@dataclass(frozen=True, slots=True)
class _World:
    """All that decides the traits of a stage; the runs of one world share them."""

    log: Path
    span: tuple[datetime, datetime, timedelta]
    pages: int
    seed: int
    stage: Stage = field(compare=False)


@lru_cache(maxsize=4)
def _traits(world: _World) -> Traits:
    kin = kin_of(world.stage.log, world.stage.truth)
    rehearsal = rehearsed(replace(world.stage, seed=world.seed))
    return likeliest(lambda traits: log_loss(rehearsal, FittedReplay(traits, kin)))


def kin_of(log: Log, truth: Truth) -> Kin:
    """Pages of the same brand on the same host of a merchant, as far as the log knows them."""
    pages, group = KnownPages.of(log, truth).frame, np.zeros(len(truth))
    known = [pl.col(name).cast(pl.String).fill_null("") for name in _KIN if name in pages.columns]
    if known:
        group = pages.select(kin=pl.struct(known))["kin"].rank("dense").to_numpy() - 1
    return Kin(truth.ids, group.astype(np.int64))


def rehearsed(stage: Stage) -> Rehearsal:
    """The history of a stage in two halves: watched step by step, and visited by coins."""
    tick = stage.rules.tick
    half = stage.start + (stage.crawl - stage.start) // 2 // tick * tick
    watched = list(fully_observed(stage.truth, stage.start, half, tick))
    return Rehearsal(stage, watched, list(_visits(stage, instant(half).astype(np.int64).item())))


def log_loss(rehearsal: Rehearsal, predictor: Fitted) -> float:
    """How badly the outcomes of the visits are foretold, nats a visit."""
    stage, tick = rehearsal.stage, rehearsal.stage.rules.tick
    world = Replay(stage.truth, stage.readers, seed=stage.seed)
    pages = asyncio.run(world.pages(Tick(0, stage.crawl, stage.crawl + tick)))
    ask(predictor, pages, stage.start)
    for outcomes in rehearsal.watched:
        predictor.learn(outcomes)
    last, total, visits = pages.last_answer.copy(), 0.0, 0
    for outcomes in rehearsal.visited:
        rows = np.searchsorted(pages.ids, outcomes.page)
        last[rows] = outcomes.since
        now = moment(outcomes.at[0])
        curves = ask(predictor, pages.answered(last), now).take(rows)
        stays = curves.unchanged(days_between(outcomes.since, outcomes.at))
        said = np.clip(np.where(outcomes.changed == CHANGED, 1.0 - stays, stays), 1e-9, 1.0)
        total, visits = total - float(np.log(said).sum()), visits + len(rows)
        predictor.learn(outcomes)
    return total / max(visits, 1)


def _visits(stage: Stage, start: int) -> Iterator[Outcomes]:
    """What coins find from `start` (µs since 1970) to the crawl; their chances differ by page."""
    truth, step = stage.truth, int(stage.rules.tick.total_seconds() * 1e6)
    born, last = truth.born.view(np.int64), np.full(len(truth), start - step)
    low, high = np.log(_VISITS)
    daily = np.exp(low + (high - low) * coins(stage.seed, truth.ids, -1))
    chance = np.minimum(daily * step / 86_400e6, 1.0)
    until = int(instant(stage.crawl).astype(np.int64))
    for number, now in enumerate(range(start, until - step + 1, step)):
        drawn = coins(stage.seed, truth.ids, number) < chance
        rows = np.flatnonzero(drawn & (born <= last))
        since, last[drawn] = last[rows], now
        if len(rows):
            yield _outcomes(truth, rows, since, now, step)


def _outcomes(truth: Truth, rows: Ints, since: Ints, now: int, step: int) -> Outcomes:
    """Visits at a tick's start that see all that changes within it, as those of a crawl do."""
    here = slice(*np.searchsorted(truth.at.view(np.int64), (int(since.min()) + step, now + step)))
    latest = np.full(len(truth), np.iinfo(np.int64).min)
    np.maximum.at(latest, truth.page[here], truth.at[here].view(np.int64))
    changed = np.where(latest[rows] >= since + step, CHANGED, UNCHANGED).astype(np.int8)
    told = told_of(truth, rows, since.view("M8[us]"), np.datetime64(now, "us"), UNCHANGED)
    return replace(told, changed=changed, visit=np.zeros(len(rows), dtype=np.int64))
