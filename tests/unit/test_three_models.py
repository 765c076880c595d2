"""A crawl in which models of changes, clicks and impressions serve: it is killed, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.clock import VirtualClock
from salticus.config import Config, Models, parse
from salticus.crawl.census import Census
from salticus.crawl.loop import Loop
from salticus.crawl.opening import Crawl
from salticus.crawl.parts import Parts, make_parts, registry_of
from salticus.crawl.snapshot import Snapshot
from salticus.models.registry import Registry
from salticus.predict.trust import GRID
from salticus.testing import START, MemoryStore
from salticus.types import Count, NewPage, Observation, Outcomes, Pages, Plan, Record, Tick, Value
from salticus.types.dates import epoch_us
from salticus.views.models import learnt_weights
from salticus.views.why import why

from .test_served_demand import a_saved
from .test_serving import a_model, judged

N = 30
TICK = timedelta(hours=6)
URLS = [f"http://h{n % 3}.example/{n}" for n in range(N)]


class Killed(Exception):
    """The crawl is no more."""


class Scripted:
    """A world on a store, whose pages change and are clicked at paces of their own."""

    def __init__(self, store: MemoryStore, parts: Parts, kill_at: int = -1) -> None:
        self.store, self.kill_at = store, kill_at
        self.census = Census(store)
        self.census.serve(parts.followed, parts.clicks, parts.impressions)
        self.plans: dict[int, bytes] = {}

    async def pages(self, tick: Tick) -> Pages:
        day = (tick.start - START) // timedelta(days=1)
        if (tick.start - START) % timedelta(days=1) == TICK:
            at = epoch_us(tick.start) - 1
            some = [Count(url, at, n % 4, 3) for n, url in enumerate(URLS) if (n + day) % 3 == 0]
            await self.store.count(some)
        await self.census.refresh()
        await self.census.heed()
        self.census.foretell(tick.start)
        return self.census.pages(tick, lambda host: 100.0)

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        columns = [getattr(plan, f.name) for f in fields(plan) if f.name != "tick"]
        self.plans[plan.tick.number] = b"".join(column.tobytes() for column in columns)
        killed = plan.tick.number == self.kill_at
        made = plan.take(np.arange(len(plan) // 2)) if killed else plan
        targets = {target.page: target for target in await self.store.targets(made.page)}
        for row, page in enumerate(made.page.tolist()):
            at, since = int(made.due[row].astype(np.int64)), targets[page].seen
            new = since is None or at // (10**10 * (3 + page)) != since // (10**10 * (3 + page))
            brand = "wanted" if page % 2 else "other"
            seen = Observation(
                visit=int(made.visit[row]),
                page=page,
                at=at,
                purpose="policy",
                propensity=1.0,
                status="ok",
                changed=None if since is None else new,
                since=since,
                value=Value("offer", f"{at}.0 EUR InStock", {"brand": brand}) if new else None,
                digest=str(at) if new else targets[page].digest,
            )
            await self.store.record([Record(seen)])
        if killed:
            raise Killed
        outcomes = await self.store.outcomes(made.visit)
        self.census.learn(outcomes)
        yield outcomes

    async def finish(self) -> AsyncIterator[Outcomes]:
        nothing: list[Outcomes] = []
        for outcomes in nothing:
            yield outcomes

    def stop(self) -> None:
        """Nothing is in flight."""


def crawl(
    config: Config, store: MemoryStore, clock: VirtualClock, days: float, kill_at: int = -1
) -> Loop:
    async def run() -> Loop:
        parts = make_parts(config, clock, store)
        world = Scripted(store, parts, kill_at)
        kept = {**parts.named(), "demand": world.census.demand, "scout": world.census.scout}
        loop = Loop(world, parts, Snapshot(kept, store))
        try:
            await loop.run(START + timedelta(days=days))
        except Killed:
            assert kill_at >= 0
        return loop

    return asyncio.run(run())


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Settings of a crawl in whose registries a model of each task serves."""
    made = parse({"budget": "40%", "tick": "6h", "policy": "lambdacrawl", "seed": 4})
    config = _with(made, str(tmp_path / "models"))
    saved = {"change": a_model("page_since", 0.3), "click": a_saved()}
    saved["impression"] = a_saved("impression")
    for task in saved:
        registry = registry_of(config, task)
        registry.path(1).mkdir(parents=True)
        registry.judge(1, judged(promoted=True))
    place = {Registry(registry_of(config, task).folder).path(1): m for task, m in saved.items()}
    monkeypatch.setattr("salticus.predict.serving.load_version", place.__getitem__)
    return config


def _with(config: Config, path: str) -> Config:
    import msgspec

    return msgspec.structs.replace(config, models=Models(path))


def test_after_a_kill_it_plans_byte_for_byte_what_it_would_have(config: Config) -> None:
    store, at = MemoryStore(), epoch_us(START)
    asyncio.run(store.add([NewPage(url, "offer") for url in URLS], at=at))
    twin = deepcopy(store)
    kill_at = 21
    whole = crawl(config, twin, VirtualClock(START), 8)
    crawl(config, store, VirtualClock(START), 8, kill_at)
    resumed = START + (kill_at + 1) * TICK
    again = crawl(config, store, VirtualClock(resumed), 8)
    mine, other = (loop.world.plans for loop in (whole, again))  # type: ignore[attr-defined]
    later = [number for number in other if number > kill_at]
    assert len(later) > 8
    assert all(mine[number] == other[number] for number in later)
    for part in (again.parts.predictor, again.parts.clicks, again.parts.impressions):
        assert getattr(part, "version_", 0) == 1, "its model serves"


def test_why_and_models_tell_what_models_say_of_demand(config: Config) -> None:
    store = MemoryStore()
    asyncio.run(store.add([NewPage(url, "offer") for url in URLS], at=epoch_us(START)))
    crawl(config, store, VirtualClock(START), 6)

    async def look() -> tuple[Any, Any, Any]:
        opened = Crawl(config, store, VirtualClock(START + timedelta(days=6)))
        told = await why(opened, URLS[0]), await why(opened, URLS[1])
        return *told, await learnt_weights(opened)

    wanted, other, weights = asyncio.run(look())
    assert set(weights) == {"change", "click", "impression"}
    for told in (wanted.demand, other.demand):
        assert told.weight in GRID
        assert told.a_day == pytest.approx(
            (1 - told.weight) * told.counts + told.weight * told.model
        )
    assert wanted.demand.model > other.demand.model
