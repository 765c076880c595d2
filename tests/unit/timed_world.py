"""A mall's stock, visited at the very times at which visits are due; and the truth about copies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from salticus import allocate, plugins
from salticus.allocate.base import Informed
from salticus.clock import VirtualClock
from salticus.config import Budget, Config, Share
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Given, make_parts
from salticus.freshness.note import Gauging
from salticus.lab.worlds.mall.stock import generate
from salticus.testing import blank_pages
from salticus.types import (
    NEVER,
    Alert,
    Findings,
    Floats,
    Gauge,
    Ints,
    Outcomes,
    Pages,
    Plan,
    Purpose,
    Sample,
    Status,
    Tick,
    Times,
    instant,
)
from salticus.types.coins import coins

START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = int(START.timestamp() * 1e6)
DAY = 86_400_000_000
_WIDE = 10**13  # µs; longer than any stock lives


class Timed:
    """Every visit is made when it is due; a share `fail` of them fails. From the day `waves` on
    pages seem changed whenever they are visited, as under a new layout."""

    def __init__(self, offers: int, days: int, seed: int, *, fail: float = 0.05) -> None:
        stock = generate(shops=8, offers=offers, days=days + 1, seed=seed)
        shop = np.array([page.shop for page in stock.pages])
        rank = np.argsort(np.argsort(coins(seed, np.arange(offers), 7))) + 1.0
        self.fail, self.seed = fail, seed
        self.waves = np.inf
        self.points = np.repeat(np.arange(offers), np.diff(stock.offsets))
        self.times = stock.times.astype("M8[us]").astype(np.int64) - FIRST
        names: dict[str | None, int] = {None: -1}
        self.codes = np.array([names.setdefault(v, len(names)) for v in stock.values])
        self.held = np.full(offers, -2)  # -2: no copy, -1: gone
        self.seen: list[tuple[Ints, Ints, Ints]] = []
        self._answer = np.full(offers, NEVER)
        self._pages = replace(
            blank_pages(offers),
            ids=np.arange(1, offers + 1),
            host=shop,
            merchant=shop,
            demand=offers / rank / np.sum(1 / np.arange(1, offers + 1)),
            added=np.full(offers, instant(START)),
            last_answer=self._answer,
            capacity=np.full(8, np.inf),
        )

    async def pages(self, tick: Tick) -> Pages:
        return replace(self._pages, tick=tick)

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        rows, at = plan.page - 1, plan.due.astype(np.int64) - FIRST
        place = np.searchsorted(self.points * _WIDE + self.times, rows * _WIDE + at, side="right")
        true, held = self.codes[place - 1], self.held[rows]
        fails = coins(99, plan.visit, 0) < self.fail
        told = (held >= 0) & (true >= 0) & ~fails
        differs = (held != true) | (at > self.waves * DAY)
        status = np.where(fails, Status.TIMEOUT, np.where(true < 0, Status.GONE, Status.OK))
        yield replace(
            Outcomes.dropped(plan, NEVER),
            at=plan.due,
            made=np.ones(len(plan), dtype=np.bool_),
            status=status.astype(np.int8),
            changed=np.where(told, differs, -1).astype(np.int8),
            since=self._answer[rows],
        )
        good = ~fails
        self.held[rows[good]] = true[good]
        self._answer[rows[good & (true >= 0)]] = plan.due[good & (true >= 0)]
        self._pages.last_visit[rows] = plan.due
        self.seen.append((rows[good], at[good], true[good]))

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        nothing: list[Outcomes] = []
        for outcomes in nothing:
            yield outcomes

    def fresh(self, start: float, end: float) -> tuple[float, float]:
        """Mean freshness between two days, exactly: by pages and by demand."""
        rows, at, copy, shown = self._events()
        low, high = start * DAY, end * DAY
        begins = np.clip(at, low, high)
        ends = np.append(begins[1:], high)
        ends[np.append(rows[1:] != rows[:-1], True)] = high
        good = (ends - begins) * (copy == shown) / (high - low)
        demand = self._pages.demand
        return good.sum() / len(demand), good @ demand[rows] / demand.sum()

    def _events(self) -> tuple[Ints, Times, Ints, Ints]:
        """Changes and visits of each page in order of time, with copy and truth after each."""
        visited = [np.concatenate(column) for column in zip(*self.seen, strict=True)]
        rows = np.concatenate([self.points, visited[0]])
        at = np.concatenate([self.times, visited[1]])
        codes = np.concatenate([self.codes, visited[2]])
        by_visit = np.arange(len(rows)) >= len(self.points)
        order = np.lexsort((by_visit, at, rows))
        rows, at, codes, by_visit = rows[order], at[order], codes[order], by_visit[order]
        return rows, at, _latest(rows, codes, by_visit), _latest(rows, codes, ~by_visit)


def _latest(rows: Ints, codes: Ints, chosen: Floats) -> Ints:
    """At each event, the code of the latest chosen one of the same page; -2 if there is none."""
    place = np.arange(len(rows))
    first = np.maximum.accumulate(np.where(np.diff(rows, prepend=-1) > 0, place, 0))
    latest = np.maximum.accumulate(np.where(chosen, place, -1))
    return np.where(latest >= first, codes[latest], -2)


class Notes:
    """Keeps what a store would of ticks, and hears what exploring visits found."""

    def __init__(self, world: Timed) -> None:
        self.world = world
        self.ticks: list[Gauge] = []
        self.samples: dict[int, tuple[int, float, float]] = {}
        self.rows: list[tuple[float | None, ...]] = []
        self.alerts: list[Alert] = []
        self._gone: set[int] = set()

    async def gauge(self, tick: Gauge, sample: Sample) -> None:
        self.ticks.append(tick)
        for visit, stale, demand in zip(sample.visit, sample.stale, sample.demand, strict=True):
            self.samples[int(visit)] = (tick.at, float(stale), float(demand))

    async def gauged(self, start: int, end: int) -> tuple[list[Gauge], Findings]:
        ticks = [tick for tick in self.ticks if start <= tick.at < end]
        return ticks, Findings.of([row for row in self.rows if start <= float(row[1] or 0) < end])

    async def sound(self, alerts: Sequence[Alert]) -> None:
        self.alerts += alerts

    def learn(self, outcomes: Outcomes) -> None:
        for k in np.flatnonzero(outcomes.purpose == Purpose.EXPLORE):
            at, stale, demand = self.samples[int(outcomes.visit[k])]
            page, propensity = int(outcomes.page[k]), float(outcomes.propensity[k])
            drawn = (propensity, float(outcomes.chance[k]), stale, demand)
            self.rows.append((page, at, *drawn, self._found(outcomes, k)))
        self._gone |= set(outcomes.page[outcomes.status == Status.GONE].tolist())

    def _found(self, outcomes: Outcomes, k: int) -> float | None:
        if outcomes.status[k] == Status.TIMEOUT:
            return None
        if outcomes.status[k] == Status.GONE:
            return float(int(outcomes.page[k]) not in self._gone)
        return 1.0 if np.isnat(outcomes.since[k]) else float(outcomes.changed[k])


def crawl(world: Timed, days: int, *, policy: str, budget: str, share: float) -> Notes:
    """Crawl the world for some days through the loop that also crawls live."""
    notes, seed = Notes(world), world.seed
    part = plugins.make("policy", policy, allocate.BUILTIN, seed=seed)
    predictor = part.predictor if isinstance(part, Informed) else "gamma"
    config = Config(
        budget=Budget.parse(budget), predictor=predictor, seed=seed, explore=Share(share)
    )
    parts = make_parts(config, VirtualClock(START), given=Given(policy=part))
    loop = Loop(world, parts, gauge=Gauging(notes), watchers=[notes])
    asyncio.run(loop.run(START + timedelta(days=days)))
    return notes


def windows(days: Iterable[int]) -> list[tuple[int, int]]:
    """The µs at which each day starts and ends."""
    return [(FIRST + day * DAY, FIRST + (day + 1) * DAY) for day in days]
