"""How often a policy visits a page once it has settled, by the page's change rate and demand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from salticus.clock import VirtualClock
from salticus.config import Budget, Config, Share, Span
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Given, Parts, make_parts
from salticus.exchange.truth import Truth
from salticus.lab.simulate.estimates import Oracle
from salticus.lab.simulate.readers import Drawn, zipf
from salticus.lab.simulate.referee import Referee
from salticus.lab.worlds.replay import Replay
from salticus.schedule.planner import Planner
from salticus.types import DAY, Floats, Ints, instant

DEMANDS = (0.1, 1.0, 10.0)
"""The demands that are looked at, in parts of the mean."""

_START = datetime(2026, 1, 1, tzinfo=UTC)
_TICK = Span(hours=6)
_SETTLE, _DAYS = 120, 360
_CROWD, _MEDIAN, _SPREAD = 3000, 0.1, 1.5  # lognormal rates of the other pages, a day
_RATES = 10.0 ** np.linspace(-2.5, 1.25, 16)
_ALIKE = 5
_BUDGET = 0.1


@dataclass(frozen=True, slots=True)
class Habit:
    """Visits a day of pages of one change rate (a day) and demand (× the mean)."""

    rate: float
    demand: float
    visits: float


def habits(
    name: str, *, settle: int = _SETTLE, days: int = _DAYS, crowd: int = _CROWD
) -> list[Habit]:
    """What a policy does on a fixed set of pages with a budget of 10 %, in ticks of six hours.

    A crowd of pages with lognormal change rates and Zipf demand sets the price. Among them are a
    few of each rate and demand that is looked at; their visits are counted over `days`, after so
    many in which the policy may `settle`. It knows the true rates. Visits are spaced evenly unless
    the policy must be drawn by coins. Impressions are as demand.
    """
    rates, demand = _pages(crowd)
    truth = _truth(rates, settle + days)
    readers = Drawn(demand)
    referee = Referee(readers, _START + timedelta(days=settle))
    world = Replay(truth, readers, [referee])
    world.begin(_START)
    loop = Loop(world, _parts(name, rates), watchers=[referee])
    asyncio.run(loop.run(_START + timedelta(days=settle + days)))
    visited = np.append(referee.score.visited, np.zeros(len(rates), dtype=np.int64))
    each = visited[crowd : len(rates)].reshape(len(_RATES), len(DEMANDS), _ALIKE).mean(axis=2)
    return [
        Habit(float(rate), mean, float(each[i, j]) / days)
        for j, mean in enumerate(DEMANDS)
        for i, rate in enumerate(_RATES)
    ]


def _pages(crowd: int) -> tuple[Floats, Floats]:
    """Change rates and demands: those of the crowd, then of the pages that are looked at."""
    rng = np.random.default_rng(0)
    rates = _MEDIAN * np.exp(_SPREAD * rng.standard_normal(crowd))
    demand = zipf(np.arange(crowd), 1.1, seed=0)
    shown = len(DEMANDS) * _ALIKE
    return (
        np.append(rates, np.repeat(_RATES, shown)),
        np.append(demand, np.tile(np.repeat(DEMANDS, _ALIKE), len(_RATES))),
    )


def _truth(rates: Floats, days: int) -> Truth:
    """Pages that change at random, always to a new value; all are born an hour before the start."""
    import polars as pl

    rng = np.random.default_rng(1)
    n = len(rates)
    page = np.repeat(np.arange(n), rng.poisson(rates * days))
    at = instant(_START) + (rng.random(len(page)) * days * DAY.astype(np.int64)).astype("m8[us]")
    order = np.argsort(at)
    born = np.full(n, instant(_START) - DAY // 24)
    none: Ints = np.full(n, -1, dtype=np.int64)
    return Truth(
        names=pl.Series(np.arange(n)),
        ids=np.arange(n, dtype=np.int64),
        born=born,
        failure=np.zeros(n),
        host=np.zeros(n, dtype=np.int64),
        merchant=none,
        category=none,
        page=np.append(np.arange(n), page[order]),
        at=np.append(born, at[order]),
        value=np.arange(n + len(page)),
    )


def _parts(name: str, rates: Floats) -> Parts:
    config = Config(
        budget=Budget(_BUDGET, per_page=True), tick=_TICK, policy=name, explore=Share(0.0)
    )
    oracle = Oracle(np.arange(len(rates)), rates)
    parts = make_parts(config, VirtualClock(_START), given=Given(predictor=oracle))
    return replace(parts, planner=Planner(at_once=True))
