"""A live crawl of shops and publishers on one budget: new articles are found, fetched and read."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from salticus.clock import WaitingClock, meanwhile
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import stored
from salticus.lab.demo import busiest_day
from salticus.lab.worlds.mall.audit import CopyHistory, audit, fresh_at, read_copies
from salticus.lab.worlds.mall.folder import Plot
from salticus.lab.worlds.mall.press import Press, PressSettings
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.shoppers import go_shopping
from salticus.types import NewPage, Times
from salticus.web.desk import desk

SPEED = 43_200.0  # a world day in two wall seconds
BUDGET, DAYS = 400, 3
DELAY = 0.005
PLOT = Plot(
    shops=3,
    offers=60,
    days=DAYS + 1,
    seed=4,
    press=PressSettings(publishers=4, articles=12.0, shown=15, dead=2),
)


def settings(folder: Path, clock: WaitingClock) -> Config:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    origins = {"world_origin": clock.world_origin, "wall_origin": clock.wall_origin}
    fetch = {"contact": "t@example.org", "delay": f"{DELAY}s", "allow_private": ["127.0.0.1"]}
    return parse(
        {
            "store": str(folder / "salticus.db"),
            "budget": BUDGET,
            "tick": "2h",
            "policy": "leap",
            "fetch": {**fetch, "timeout": "60s"},
            "clock": {"speed": SPEED, **origins, "path": str(clock.path)},
            "desk": {"listen": listen},
        }
    )


async def crawled(folder: Path, press: Press) -> tuple[Mall, CopyHistory, Times]:
    """The mall after a crawl of it, what the crawl saw of offers and articles, and when it made its
    visits, those to sources too."""
    world = press.shops.times.min().item().replace(tzinfo=UTC)
    clock = WaitingClock(
        folder / "clock", speed=SPEED, world_origin=world, wall_origin=datetime.now(UTC)
    )
    mall, config = Mall(press.stock, clock, publishers=press.publishers), settings(folder, clock)
    await mall.start()
    try:
        offers = [NewPage(url) for url in mall.urls[: press.first]]
        sources = [
            NewPage(f"http://{mall.hosts[each.shop]}{each.path}", kind="source", max_interval=0.5)
            for each in press.sources
        ]
        async with stored(config) as store:
            await store.add([*offers, *sources], at=0)
        assert config.desk.listen is not None
        readers = go_shopping(press.readers, mall, config.desk.listen)
        async with crawler(config, companions=(desk,)) as loop, meanwhile(readers):
            await loop.run(clock.now() + timedelta(days=DAYS))
    finally:
        await mall.stop()
    async with stored(config) as store:
        at = np.array([visit["at"] for visit in store.scan("visits")], dtype=np.int64)
        return mall, read_copies(store, mall.urls), at.view("M8[us]")


def test_new_articles_are_found_and_fetched_within_the_budget(tmp_path: Path) -> None:
    press = PLOT.truth()
    mall, copies, visits = asyncio.run(crawled(tmp_path, press))
    assert busiest_day(visits) <= BUDGET
    report = audit(mall.log, delay=DELAY)
    assert report.clean, str(report)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = press.rows(start + timedelta(days=1), start + timedelta(days=DAYS - 1))
    delays = press.delays(rows, copies.answered())
    print(f"{len(rows)} articles, {np.isfinite(delays).mean():.2f} fetched", np.median(delays))
    assert len(rows) > 20
    assert np.median(delays) < 0.75, "every source is read twice a day at least"
    assert (delays >= 0).all()
    clicks = press.readers.between(start + timedelta(days=1), start + timedelta(days=DAYS))
    served = fresh_at(press.stock, copies.answered(), clicks.row, clicks.at)
    print(f"{len(clicks)} clicks, {served.mean():.2f} served")
    assert served.any()
    offers = set(copies.rows[copies.rows < press.first].tolist())
    assert offers == set(range(press.first)), "and no shop is forgotten for them"
