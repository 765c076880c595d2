"""The desk of a running crawl: clicks are counted, and bring visits; a restart forgets nothing."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np
import polars as pl
import pytest

from salticus.clock import WaitingClock
from salticus.config import Config, Models, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.loop import Loop
from salticus.crawl.opening import stored
from salticus.features.metadata import Vocabulary
from salticus.features.names import all_names
from salticus.lab.worlds.mall.audit import audit
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import generate
from salticus.models.file import Saved, asked, save_model
from salticus.models.linear import LinearModel
from salticus.models.model import Calibrated, Curve
from salticus.models.registry import Judgement, Registry
from salticus.types import NewPage, Plan, Tick
from salticus.web.desk import desk

OFFERS = 600


def settings(folder: Path, mall: Mall, **desk: Any) -> Config:
    clock = mall.clock
    assert isinstance(clock, WaitingClock)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        address = f"127.0.0.1:{sock.getsockname()[1]}"
    origins = {"world_origin": clock.world_origin, "wall_origin": clock.wall_origin}
    time = {"speed": clock.speed, **origins, "path": str(clock.path)}
    fetch = {"contact": "t@example.org", "delay": "5ms", "allow_private": ["127.0.0.1"]}
    return parse(
        {
            "store": str(folder / "salticus.db"),
            "budget": "100%",
            "tick": "4h",
            "policy": "leap",
            "explore": "5%",
            "fetch": fetch,
            "clock": time,
            "desk": {"listen": address, **desk},
        }
    )


@asynccontextmanager
async def open_mall(folder: Path, speed: float) -> AsyncIterator[Mall]:
    stock = generate(shops=4, offers=OFFERS, days=60, seed=5)
    world = stock.times.min().item().replace(tzinfo=UTC)
    clock = WaitingClock(
        folder / "clock", speed=speed, world_origin=world, wall_origin=datetime.now(UTC)
    )
    mall = Mall(stock, clock)
    await mall.start()
    try:
        yield mall
    finally:
        await mall.stop()


@asynccontextmanager
async def crawling(config: Config, mall: Mall) -> AsyncIterator[Loop]:
    """A crawl that has visited every page once and goes on."""
    async with stored(config) as store:
        await store.add([NewPage(url) for url in mall.urls], at=0)
    async with crawler(config, companions=(desk,)) as loop:
        running = asyncio.create_task(loop.run())
        while sum(e.status == 200 and e.path != "/robots.txt" for e in mall.log) < OFFERS:
            assert not running.done(), running
            await asyncio.sleep(0.01)
        try:
            yield loop
        finally:
            loop.stop()
            await running


async def post(config: Config, path: str, body: Any) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session:
        data = io.BytesIO(body if isinstance(body, bytes) else msgspec.json.encode(body))
        async with session.post(f"http://{config.desk.listen}{path}", data=data) as answer:
            return answer.status, msgspec.json.decode(await answer.read())


async def get(config: Config, path: str, **asked: str) -> Any:
    """What the desk answers; None if it sends the reader elsewhere."""
    async with aiohttp.ClientSession() as session:
        url = f"http://{config.desk.listen}{path}"
        async with session.get(url, params=asked, allow_redirects=False) as answer:
            body = await answer.read()
            return None if answer.status == 302 else msgspec.json.decode(body)


def test_clicks_bring_visits_at_once_and_hold_their_share(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_mall(tmp_path, speed=43_200) as mall:
            config = settings(tmp_path, mall, insta="50%", share="20%")
            async with crawling(config, mall):
                sent, visits = 0, 0
                for number in range(30):
                    rows = [{"url": mall.urls[number * 20 + k]} for k in range(20)]
                    status, told = await post(config, "/clicks", rows)
                    assert (status, told["taken"], told["asked"]) == (200, 20, 20)
                    sent, visits = sent + told["sent"], visits + told["visits"]
                    await asyncio.sleep(0.02)
            assert abs(sent / 600 - 0.2) < 0.02, "the share of the gate is held"
            assert visits > 0.5 * sent, "there was room for most of them"
        assert audit(mall.log, delay=0.005).clean
        async with stored(config) as store:
            requests = await store.asked()
            assert len(requests) == 600
            assert sum(request.sent for request in requests) == sent
            begun = {r.visit: r.at for r in requests if r.visit is not None}
            assert len(begun) == visits
            outcomes = await store.outcomes_after(10**15)
            assert len(outcomes) > 0.8 * visits, "but for pages that were being visited already"
            asked = np.array([begun[visit] for visit in outcomes.visit.tolist()])
            waited = (outcomes.at.view(np.int64) - asked) / 1e6 / 43_200
            assert waited.max() < 2.0, "a visit is made within two seconds of real time"
            assert sum(row["clicks"] for row in store.scan("demand")) == 600

    asyncio.run(main())


def test_what_comes_in_wrong_is_refused_and_hurts_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_mall(tmp_path, speed=43_200) as mall:
            config = settings(tmp_path, mall)
            async with crawling(config, mall):
                url = mall.urls[0]
                wrong: list[tuple[Any, str]] = [
                    (b"{", "Input data was truncated"),
                    ([{"url": url, "clicks": -3}], "none below 0"),
                    ([{"url": url, "clicks": 10**9}], "at most 10000"),
                    ([{"url": url, "at": "2999-01-01"}], "yet to come"),
                    ([{"url": url, "at": "noon"}], "no time"),
                    ([{"uri": url}], "uri"),
                    ([{"url": url}] * 100_001, "at most 100000"),
                ]
                for body, word in wrong:
                    status, told = await post(config, "/clicks", body)
                    assert (status, word in told["error"]) == (400, True), told
                status, told = await post(config, "/clicks", {"url": "http://no.example/"})
                assert (status, told["taken"]) == (200, 1)
                found = await get(config, "/search", q="Fjord", limit="3")
                assert len(found) == 3
                assert all("Fjord" in hit["title"] and 0 <= hit["outdated"] <= 1 for hit in found)
                assert "limit" in (await get(config, "/search", q="tea", limit="1e9"))["error"]
                assert (
                    "no such page" in (await get(config, "/go", url="http://no.example/"))["error"]
                )
                assert await get(config, "/go", url=found[0]["url"]) is None
                status, told = await post(config, "/push", [url, "http://no.example/"])
                assert (status, told) == (200, {"known": 1})
            async with stored(config) as store:
                counted = [(row["clicks"], row["impressions"]) for row in store.scan("demand")]
                assert np.sum(counted, axis=0).tolist() == [1, 3], "what was shown and clicked"
                assert [row["kind"] for row in store.scan("signals")] == ["push"]

    asyncio.run(main())


def same(first: Plan, second: Plan) -> bool:
    """Whether two plans are equal to the last byte."""
    columns = [f.name for f in fields(first) if f.name != "tick"]
    return first.tick == second.tick and all(
        getattr(first, name).tobytes() == getattr(second, name).tobytes() for name in columns
    )


def employ(folder: Path) -> str:
    """A registry whose model looks at a page's last month."""
    edges, one = (6, 24), np.array([[0.6], [0.6]])
    words = Vocabulary(("brand",), {"brand": np.array([3, 5], dtype=np.uint64)})
    metadata = words.encode(pl.DataFrame({"brand": ["x"]}))
    inputs = asked(all_names(edges), 0, metadata)
    about = {"task": "change", "edges": list(edges), "inputs": inputs}
    linear = LinearModel("page_month", edges, one, -one, np.array([-0.5, 0.5]), np.empty(0))
    model = Calibrated(linear, (Curve(), Curve()))
    registry = Registry(folder / "models")
    save_model(registry.path(1), Saved(model, (words.settings(), words.arrays()), about))
    when = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    registry.judge(1, Judgement(when[1], when, when, 300, 0, {}, {}, True, "for the test"))
    return str(registry.folder)


@pytest.mark.parametrize("policy", ["leap", "kab5", "leap with a model"])
def test_a_restored_crawl_plans_the_same_to_the_last_byte(tmp_path: Path, policy: str) -> None:
    """Killed in the middle of a tick, with clicks and urgent visits since the last snapshot."""
    policy, model = policy.split()[0], " " in policy

    async def main() -> None:
        async with open_mall(tmp_path, speed=86_400) as mall:
            config = settings(tmp_path, mall, insta="30%", share="50%")
            config = msgspec.structs.replace(config, policy=policy)
            if model:
                config = msgspec.structs.replace(config, models=Models(path=employ(tmp_path)))
            async with stored(config) as store:
                await store.add([NewPage(url) for url in mall.urls], at=0)
            async with crawler(config, companions=(desk,)) as loop:
                await loop.run(mall.clock.now() + timedelta(days=2))
            async with crawler(config, companions=(desk,)) as loop:
                await loop.recover()
                before = await _half_a_tick(loop, config, mall)
                copy = tmp_path / "copy.db"
                async with stored(config) as store:
                    await store.backup(copy)
                then = _following(before, mall)
                await _rested(mall)
                mine = await loop.plan(then)
                loop.stop()
            twin = msgspec.structs.replace(
                config, store=str(copy), desk=msgspec.structs.replace(config.desk, listen=other())
            )
            async with crawler(twin, companions=(desk,)) as restored:
                await restored.recover()
                await _rested(mall)
                theirs = await restored.plan(then)
        assert len(mine) > 0
        assert same(mine, theirs)
        assert not model or loop.parts.predictor.version_ == 1, "the model has served"  # type: ignore[attr-defined]
        states = (part.state() for part in (loop.parts.insta, restored.parts.insta))
        ours, its = states
        assert all(ours[name].tobytes() == its[name].tobytes() for name in ours)

    asyncio.run(main())


def other() -> str:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return f"127.0.0.1:{sock.getsockname()[1]}"


async def _half_a_tick(loop: Loop, config: Config, mall: Mall) -> Tick:
    """Plan a tick and make the first half of its visits, with clicks on other pages meanwhile."""
    now = mall.clock.now()
    tick = Tick(900, now, now + timedelta(days=2))
    plan = await loop.plan(tick)
    await loop.snapshot.save(plan)
    half = plan.take(np.arange(len(plan) // 2))
    half = replace(half, due=np.full(len(half), plan.due.min()))
    async with stored(config) as store:
        ids = (await store.ids(mall.urls)).tolist()
    others = [url for url, page in zip(mall.urls, ids, strict=True) if page not in plan.page]
    making = asyncio.create_task(loop.make(half))
    for number in range(5):
        rows = [{"url": url} for url in others[number * 10 : number * 10 + 10]]
        status, told = await post(config, "/clicks", rows)
        assert (status, told["asked"]) == (200, len(rows))
    await making  # until the tick ends; the counts are stored by then
    return tick


async def _rested(mall: Mall) -> None:
    """Until every host may be asked again, as what it can take counts from then."""
    await mall.clock.until(mall.clock.now() + timedelta(hours=1))  # 42 ms on the wall


def _following(tick: Tick, mall: Mall) -> Tick:
    return Tick(tick.number + 1, tick.end, tick.end + timedelta(hours=4))
