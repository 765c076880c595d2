"""Where the budget goes, by the change rate and the demand of pages: in a run, or at any time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from salticus.clock import VirtualClock
from salticus.config import Budget, Config, Share, Span
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Given, Parts, make_parts
from salticus.exchange.truth import Truth
from salticus.lab.simulate.estimates import Oracle
from salticus.lab.simulate.readers import Drawn, zipf
from salticus.lab.simulate.referee import Referee
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.replay import Replay
from salticus.schedule.planner import Planner
from salticus.types import DAY, Floats, Ints, days_between, instant

RATES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Where bins of change rate begin, changes a day; a page below the second, but above 0, is in the
one that begins there. The first holds the pages that did not change."""

DEMANDS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Where bins of demand begin, in parts of the mean demand; the first holds pages without any."""


LOOKED_AT = (0.1, 1.0, 10.0)
"""The demands at which habits are looked at, in parts of the mean."""

_START = datetime(2026, 1, 1, tzinfo=UTC)
_TICK = Span(hours=6)
_SETTLE, _DAYS = 120, 360
_CROWD, _MEDIAN, _SPREAD = 3000, 0.1, 1.5  # lognormal rates of the other pages, a day
_RATES = 10.0 ** np.linspace(-2.5, 1.25, 16)
_ALIKE = 5
_BUDGET = 0.1


@dataclass(frozen=True, slots=True)
class Spending:
    """Pages, page-days and visits in the scored days, per bin of change rate × bin of demand."""

    pages: Floats
    page_days: Floats
    visits: Floats

    def cells(self) -> list[dict[str, Any]]:
        """One row for each bin with a page, ordered by rate and demand."""
        total, sums = max(1.0, float(self.visits.sum())), ("pages", "page_days", "visits")
        return [
            {
                "rate": RATES[i],
                "rate_to": upper(RATES, i),
                "demand": DEMANDS[j],
                "demand_to": upper(DEMANDS, j),
                **{name: round(float(getattr(self, name)[i, j]), 3) for name in sums},
                "visits_per_page_day": float(self.visits[i, j] / self.page_days[i, j]),
                "share": float(self.visits[i, j]) / total,
            }
            for i, j in np.argwhere(self.pages > 0).tolist()
        ]


def upper(edges: tuple[float, ...], number: int) -> float | None:
    """Where a bin ends: at the next, 0 for that of the zeros, nowhere for the last.

    >>> upper(RATES, 0), upper(RATES, 1), upper(RATES, 8)
    (0.0, 0.01, None)
    """
    if number == 0:
        return 0.0
    return edges[number + 1] if number + 1 < len(edges) else None


def spending(stage: Stage, visited: Ints) -> Spending:
    """The visits of one run, by id, sorted into bins.

    The rate is the true one, changes a day in the scored days (a birth is none); the demand is the
    one known when they begin.
    """
    truth = stage.truth
    score, end = instant(stage.score), instant(stage.end)
    days = days_between(np.maximum(truth.born, score), end)
    late = slice(truth.before(score), truth.before(end))
    points = np.bincount(truth.page[late], minlength=len(truth)) - (truth.born >= score)
    rate = points / np.maximum(days, 1e-9)
    demand, _ = stage.readers.known(stage.score, len(truth))
    mean = float(demand.mean() if len(demand) else 0.0) or 1.0
    cell = _bin(rate, RATES) * len(DEMANDS) + _bin(demand / mean, DEMANDS)
    made: Floats = np.append(visited.astype(np.float64), np.zeros(truth.ids[-1] + 1))[truth.ids]
    shape = (len(RATES), len(DEMANDS))
    columns = (np.ones(len(truth)), days, made)
    sums = [np.bincount(cell, column, math.prod(shape)).astype(np.float64) for column in columns]
    return Spending(*(column.reshape(shape) for column in sums))


def together(runs: Iterable[Spending]) -> Spending:
    """The mean over runs."""
    every = [(one.pages, one.page_days, one.visits) for one in runs]
    return Spending(*(np.mean(columns, axis=0) for columns in zip(*every, strict=True)))


def _bin(values: Floats, edges: tuple[float, ...]) -> Ints:
    """The bin of each value; what is above 0 but below the second edge goes into the second.

    >>> _bin(np.array([0.0, 1e-9, 0.2, 50.0]), RATES).tolist()
    [0, 1, 4, 8]
    """
    return np.maximum(np.searchsorted(edges, values, side="right") - 1, values > 0)


# ------------------------------------------------------------------------------ settled policies


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
    each = visited[crowd : len(rates)].reshape(len(_RATES), len(LOOKED_AT), _ALIKE).mean(axis=2)
    return [
        Habit(float(rate), mean, float(each[i, j]) / days)
        for j, mean in enumerate(LOOKED_AT)
        for i, rate in enumerate(_RATES)
    ]


def _pages(crowd: int) -> tuple[Floats, Floats]:
    """Change rates and demands: those of the crowd, then of the pages that are looked at."""
    rng = np.random.default_rng(0)
    rates = _MEDIAN * np.exp(_SPREAD * rng.standard_normal(crowd))
    demand = zipf(np.arange(crowd), 1.1, seed=0)
    shown = len(LOOKED_AT) * _ALIKE
    return (
        np.append(rates, np.repeat(_RATES, shown)),
        np.append(demand, np.tile(np.repeat(LOOKED_AT, _ALIKE), len(_RATES))),
    )


def _truth(rates: Floats, days: int) -> Truth:
    """Pages that change at random, always to a new value; all are born an hour before the start."""
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
