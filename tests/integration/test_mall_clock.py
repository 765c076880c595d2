"""A mall's time waits for its crawler: while it plans, or while there is none, no day is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from salticus.config import Config, load
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import clock_of, stored
from salticus.lab.worlds.mall.folder import Plot, open_mall, paths
from salticus.types import NewPage, Tick
from salticus.views.trial import trial

DAY = timedelta(days=1)


@asynccontextmanager
async def crawled(folder: Path, policy: str) -> AsyncIterator[Config]:
    """The settings of a crawl of an open mall in which two days pass in a second."""
    stop, ready = asyncio.Event(), asyncio.Event()
    plot = Plot(shops=2, offers=20, days=900, speed=2 * 86_400, delay=0.001)
    mall = asyncio.create_task(open_mall(folder, plot, stop, lambda _: ready.set()))
    await ready.wait()
    config = msgspec.structs.replace(load(paths(folder)["settings"]), policy=policy)
    async with stored(config) as store:
        urls = paths(folder)["urls"].read_text("utf-8").split()
        await store.add([NewPage(url) for url in urls], at=0)
    try:
        yield config
    finally:
        stop.set()
        await mall


SLOW = """
import time
from salticus.allocate.baselines import Uniform

class Slow(Uniform):
    def expected(self, pages, visits):
        time.sleep(0.1)  # two ticks in this mall
        return super().expected(pages, visits)
"""


def test_a_crawler_that_plans_slowly_misses_no_tick(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)

    async def main() -> None:
        async with crawled(tmp_path / "mall", f"{path}:Slow") as config:
            begun: list[Tick] = []
            async with crawler(config) as loop:
                plan, start = loop.plan, loop.parts.ticks.clock.now()

                async def noted(tick: Tick):
                    begun.append(tick)
                    return await plan(tick)

                loop.plan = noted
                await loop.run(start + DAY)
        assert len(begun) >= 11, "12 ticks of 2 h are a day; the last may be cut"
        gaps = [after.start - before.end for before, after in zip(begun, begun[1:], strict=False)]
        assert max(gaps) <= timedelta(hours=2)

    asyncio.run(main())


def test_the_doctor_gets_its_turn_in_a_mall_that_is_not_crawled(tmp_path: Path) -> None:
    """Each host waits its delay first, and that by the mall's clock."""

    async def main() -> None:
        async with crawled(tmp_path / "mall", "uniform") as config:
            url = paths(tmp_path / "mall")["urls"].read_text("utf-8").split()[0]
            found = {finding.about: finding.said async for finding in trial(config, url)}
        assert "200" in found["fetch"]

    asyncio.run(main())


def test_nothing_happens_in_a_mall_that_is_not_crawled(tmp_path: Path) -> None:
    async def main() -> None:
        async with crawled(tmp_path / "mall", "uniform") as config:
            seen: set[datetime] = set()
            until = time.monotonic() + 0.05
            while time.monotonic() < until:
                seen.add(clock_of(config).now())
                await asyncio.sleep(0)
            assert len(seen) == 1

    asyncio.run(main())
