"""The live world on a real mall: its laws, and what becomes of visits that end badly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from salticus.checks.world import check_world
from salticus.clock import WaitingClock
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.loop import Loop
from salticus.crawl.opening import holder_of, stored
from salticus.errors import StoreLocked
from salticus.lab.worlds.mall.audit import audit
from salticus.lab.worlds.mall.faults import Fault
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import generate
from salticus.types import NewPage

SPEED = 86_400.0  # a world day in a wall second
PATIENT = {
    "contact": "test@example.org",
    "delay": "1ms",
    "timeout": "60s",
    "allow_private": ["127.0.0.1"],
}


def settings(folder: Path, mall: Mall, **more: object) -> Config:
    """A crawl of the mall on its clock."""
    clock = mall.clock
    assert isinstance(clock, WaitingClock)
    return parse(
        {
            "store": str(folder / "salticus.db"),
            "budget": "100%",
            "tick": "4h",
            "fetch": {
                "contact": "test@example.org",
                "delay": "5ms",
                "timeout": "3s",
                "max_size": "1 MB",
                "retries": 1,
                "allow_private": ["127.0.0.1"],
            },
            "clock": {
                "speed": SPEED,
                "world_origin": clock.world_origin,
                "wall_origin": clock.wall_origin,
                "path": str(clock.path),
            },
            **more,
        }
    )


@asynccontextmanager
async def open_mall(folder: Path, *faults: Fault, offers: int = 60) -> AsyncIterator[Mall]:
    stock = generate(shops=4, offers=offers, days=60, seed=5)
    world = stock.times.min().item().replace(tzinfo=UTC)
    clock = WaitingClock(
        folder / "clock", speed=SPEED, world_origin=world, wall_origin=datetime.now(UTC)
    )
    mall = Mall(stock, clock, faults=faults)
    await mall.start()
    try:
        yield mall
    finally:
        await mall.stop()


@asynccontextmanager
async def crawl_of(config: Config, mall: Mall, **options: bool) -> AsyncIterator[Loop]:
    async with stored(config) as store:
        await store.add([NewPage(url) for url in mall.urls], at=0)
    async with crawler(config, **options) as loop:
        yield loop


def test_a_crawl_on_a_store_by_its_url(tmp_path: Path) -> None:
    """What a crawl leaves in a store in memory, commands that open it by its name find."""

    async def main() -> tuple[int, int, str | None]:
        async with open_mall(tmp_path, offers=20) as mall:
            config = settings(tmp_path, mall, store="memory:live", fetch=PATIENT)
            async with crawl_of(config, mall, once=True) as loop:
                assert await holder_of(config) == str(os.getpid())
                await loop.run(once=True)
            async with stored(config) as store:
                summary = await store.summary()
            return summary.visits, summary.pages, await holder_of(config)

    visits, pages, holder = asyncio.run(main())
    assert pages == 20
    assert 0 < visits <= 20
    assert holder is None
    assert not list(tmp_path.glob("*.db"))


def test_laws_of_the_live_world(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_mall(tmp_path) as mall, crawl_of(settings(tmp_path, mall), mall) as loop:
            await check_world(loop.world, mall.clock, tick=timedelta(hours=12))

    asyncio.run(main())


def test_what_is_stored_is_what_the_mall_served(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_mall(tmp_path) as mall:
            config = settings(tmp_path, mall)
            async with crawl_of(config, mall) as loop:
                await loop.run(mall.clock.now() + timedelta(days=3))
            async with stored(config) as store:
                urls = {page["page_id"]: page["url"] for page in store.scan("pages")}
                held = {urls[v["page_id"]]: v["value"] for v in store.scan("values")}
                visits = list(store.scan("visits"))
        served = {f"http://{e.host}{e.path}": e.value for e in mall.log if e.value}
        assert held == served
        assert len(visits) >= 150
        assert {visit["changed"] for visit in visits} == {True, False, None}

    asyncio.run(main())


def test_every_bad_end_is_named(tmp_path: Path) -> None:
    """Each page of the mall goes wrong in one way, always; the observation says which."""
    kinds = {
        "500": "http",
        "404": "gone",
        "410": "gone",
        "hang": "timeout",
        "reset": "broken",
        "huge": "too_large",
        "bomb": "too_large",
        "429": "busy",
    }
    faults = [
        Fault(kind, share=1.0, paths=f"/o/{row}", retry=1 if kind == "429" else None)
        for row, kind in enumerate(kinds)
    ]
    loop_fault = Fault("redirect", share=1.0, paths="/o/8", to="loop")
    private = Fault("redirect", share=1.0, paths="/o/9", to="private")

    async def main() -> dict[str, str]:
        async with open_mall(tmp_path, *faults, loop_fault, private, offers=40) as mall:
            config = settings(tmp_path, mall, budget=4000, tick="60d")
            async with crawl_of(config, mall, once=True) as loop:
                await loop.run(once=True)
            async with stored(config) as store:
                found = {}
                for row, url in enumerate(mall.urls[:10]):
                    page = await store.page(url)
                    found[str(row)] = f"{page.status}"
                    assert page.fault, (url, page.status)
                    assert page.last_change is None
            return found

    found = asyncio.run(main())
    expected = dict(enumerate([*kinds.values(), "redirects", "disallowed"]))
    assert found == {str(row): status for row, status in expected.items()}


def test_a_second_crawler_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_mall(tmp_path) as mall:
            config = settings(tmp_path, mall)
            async with crawl_of(config, mall):
                with pytest.raises(StoreLocked, match="in use by another `salticus run`"):
                    async with crawler(config):
                        pass

    asyncio.run(main())


def test_pages_added_while_running_are_visited(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_mall(tmp_path) as mall:
            config = settings(tmp_path, mall)
            async with stored(config) as store:
                await store.add([NewPage(url) for url in mall.urls[:30]], at=0)
            async with crawler(config) as loop:
                run = asyncio.create_task(loop.run(mall.clock.now() + timedelta(days=4)))
                async with stored(config) as store:
                    await store.add([NewPage(url) for url in mall.urls[30:]], at=0)
                await run
            async with stored(config) as store:
                assert (await store.summary()).visited == 60

    asyncio.run(main())


def test_stopping_ends_visits_in_flight_and_no_others(tmp_path: Path) -> None:
    slow = Fault("slow", share=1.0, seconds=0.3)

    async def main() -> None:
        async with open_mall(tmp_path, slow) as mall:
            config = settings(tmp_path, mall)
            async with crawl_of(config, mall) as loop:
                run = asyncio.create_task(loop.run())
                while not (under_way := [e for e in mall.log if e.path.startswith("/o/")]):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                loop.stop()
                await run
            visits = [e for e in mall.log if e.path.startswith("/o/")]
            assert len(visits) <= len(under_way) + 4
            async with stored(config) as store:
                summary = await store.summary()
            assert summary.visits == len(visits)
            assert summary.answered == len([e for e in visits if e.status == 200])

    asyncio.run(main())


def test_old_observations_are_pruned_and_values_stay(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_mall(tmp_path) as mall:
            config = settings(tmp_path, mall, retention="1d")
            async with crawl_of(config, mall) as loop:
                await loop.run(mall.clock.now() + timedelta(days=3))
            async with stored(config) as store:
                at = np.array([visit["at"] for visit in store.scan("visits")])
                assert at.max() - at.min() < 1.5 * 86_400e6
                assert sum(1 for _ in store.scan("values")) >= 60
                assert (await store.summary()).visits > len(at)

    asyncio.run(main())


def test_what_a_redirects_target_asked_for_outlives_the_crawler(tmp_path: Path) -> None:
    """Shop 0 sends visitors on to other shops, which all ask for a minute of patience."""
    away = Fault("redirect", share=1.0, hosts="0", to="shop")
    busy = [Fault("429", share=1.0, hosts=str(shop), retry=60) for shop in (1, 2, 3)]

    async def main() -> None:
        async with open_mall(tmp_path, away, *busy) as mall:
            config = settings(tmp_path, mall, budget=4000)
            urls = [
                url for url, page in zip(mall.urls, mall.stock.pages, strict=True) if not page.shop
            ]
            async with stored(config) as store:
                await store.add([NewPage(url) for url in urls], at=0)
            for _ in range(2):
                async with crawler(config) as loop:
                    await loop.run(mall.clock.now() + timedelta(days=1))
            report = audit(mall.log, delay=0.005)
            assert report.clean, str(report)
            assert any(entry.status == 429 for entry in mall.log)

    asyncio.run(main())
