"""What it takes to add a part: one file outside the package, and a line of settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from salticus.clock import WaitingClock
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.loop import Loop
from salticus.crawl.opening import stored
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import generate
from salticus.store.base import Store
from salticus.types import NewPage, Outcomes

SPEED = 86_400.0  # a world day in a wall second, if the crawler keeps up

POLICY = '''
import numpy as np


class EvenOnly:
    """Shares the visits among pages with an even number, and leaves the others alone."""

    spends = False

    def expected(self, pages, visits):
        even = pages.ids % 2 == 0
        return np.where(even, min(1.0, visits / max(1, even.sum())), 0.0)

    def learn(self, outcomes):
        pass
'''

PREDICTOR = '''
from collections import Counter

import numpy as np

from salticus.predict.poisson import PoissonSurvival


class Neighbours:
    """A page changes as often as the pages of its host did, whatever it did itself."""

    def __init__(self, facts, history):
        self.facts, self.history = facts, history
        self.seen, self.changed = Counter(), Counter()

    def meet(self, pages, now):
        self.seen, self.changed = Counter(), Counter()
        for outcomes in self.history():
            told = outcomes.take(outcomes.changed >= 0)
            hosts = self.facts(told.page)["host"]
            self.seen.update(hosts)
            self.changed.update(h for h, c in zip(hosts, told.changed, strict=True) if c)

    def survival(self, pages, now):
        hosts = self.facts(pages.ids)["host"]
        rates = [(1 + self.changed[host]) / (2 + self.seen[host]) for host in hosts]
        return PoissonSurvival(np.array(rates))

    def learn(self, outcomes):
        pass
'''

PROPOSER = '''
import numpy as np

from salticus.allocate.capacity import fitting
from salticus.types import Draw, Purpose


class Favourite:
    """Proposes the first page in every tick."""

    purpose = Purpose.DISCOVER

    def draw(self, pages, grant, tick):
        rows = np.setdiff1d(np.flatnonzero(pages.open)[:1], grant.taken)
        return Draw.sure(fitting(pages, rows, grant.visits, grant.taken))
'''

EXTRACTOR = '''
from salticus.types import Value


class LastPart:
    """The value of a page is the last part of its address."""

    fast = False

    def extract(self, content):
        return Value("page", "last part " + content.url.rstrip("/").rpartition("/")[2])
'''

STORE = '''
from salticus.testing import MemoryStore


class Counting(MemoryStore):
    """A store in memory that counts how often it was told of visits."""

    recorded = 0

    async def record(self, records):
        type(self).recorded += len(records)
        await super().record(records)
'''


@asynccontextmanager
async def open_mall(folder: Path) -> AsyncIterator[Mall]:
    stock = generate(shops=4, offers=40, days=60, seed=5)
    world = stock.times.min().item().replace(tzinfo=UTC)
    origin = datetime.now(UTC)
    clock = WaitingClock(folder / "clock", speed=SPEED, world_origin=world, wall_origin=origin)
    mall = Mall(stock, clock)
    await mall.start()
    try:
        yield mall
    finally:
        await mall.stop()


def settings(folder: Path, mall: Mall, **more: object) -> Config:
    """A crawl of the mall on its clock, which waits for the crawler."""
    clock = mall.clock
    assert isinstance(clock, WaitingClock)
    return parse(
        {
            "store": str(folder / "salticus.db"),
            "budget": "100%",
            "explore": "0%",
            "tick": "4h",
            "fetch": {
                "contact": "test@example.org",
                "delay": "1ms",
                "timeout": "60s",
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


async def crawled(config: Config, mall: Mall, days: float) -> Loop:
    """Crawl the whole mall for so many days of its time."""
    async with stored(config) as store:
        await store.add([NewPage(url) for url in mall.urls], at=0)
    async with crawler(config) as loop:
        await loop.run(mall.clock.now() + timedelta(days=days))
    return loop


def visits(store: Store) -> Iterator[tuple[int, str, float]]:
    """Page, purpose and predicted chance of a change of every visit that was answered."""
    for row in store.scan("visits"):
        assert row["status"] in ("ok", "not_modified"), row
        yield row["page_id"], row["purpose"], row["chance"]


def written(folder: Path, source: str) -> Path:
    path = folder / "mine.py"
    path.write_text(source)
    return path


def test_a_policy(tmp_path: Path) -> None:
    async def main() -> set[int]:
        async with open_mall(tmp_path) as mall:
            policy = f"{written(tmp_path, POLICY)}:EvenOnly"
            config = settings(tmp_path, mall, policy=policy)
            await crawled(config, mall, days=2)
            async with stored(config) as store:
                return {page for page, _, _ in visits(store)}

    pages = asyncio.run(main())
    assert len(pages) == 20
    assert all(page % 2 == 0 for page in pages)


def test_a_predictor_that_reads_other_pages(tmp_path: Path) -> None:
    async def main() -> tuple[list[tuple[str, float]], list[float]]:
        async with open_mall(tmp_path) as mall:
            predictor = f"{written(tmp_path, PREDICTOR)}:Neighbours"
            config = settings(tmp_path, mall, predictor=predictor, policy="leap", budget="200%")
            loop = await crawled(config, mall, days=3)
            pages = loop.parts.insta.pages_
            assert pages is not None
            assert pages.survival is not None
            rates = pages.survival.rates()
            async with stored(config) as store:
                hosts = [host or "" for host in store.facts(pages.ids)["host"]]
                told = [chance for _, _, chance in visits(store)]
            return list(zip(hosts, rates.tolist(), strict=True)), told

    rates, told = asyncio.run(main())
    by_host: dict[str, set[float]] = {}
    for host, rate in rates:
        by_host.setdefault(host, set()).add(rate)
    assert len(by_host) == 4
    assert all(len(alike) == 1 for alike in by_host.values())  # of a page, as of its neighbours
    assert len(set.union(*by_host.values())) > 1  # and hosts differ
    assert np.isfinite([chance for chance in told if chance is not None]).any()


def test_a_proposer_of_visits(tmp_path: Path) -> None:
    async def main() -> tuple[int, list[tuple[int, str, float]]]:
        async with open_mall(tmp_path) as mall:
            proposer = f"{written(tmp_path, PROPOSER)}:Favourite"
            config = settings(tmp_path, mall, proposers=[proposer])
            loop = await crawled(config, mall, days=1)
            pages = loop.parts.insta.pages_
            assert pages is not None
            async with stored(config) as store:
                return int(pages.ids[0]), list(visits(store))

    favourite, made = asyncio.run(main())
    drawn = [page for page, purpose, _ in made if purpose == "discover"]
    assert set(drawn) == {favourite}
    assert len(drawn) > 2  # the policy visits a page once a day
    assert {page for page, purpose, _ in made if purpose == "policy"} - {favourite}


class Enough:
    """Stops a crawl when so many pages have answered, however long the workers take to start."""

    def __init__(self, loop: Loop, pages: int) -> None:
        self.loop, self.pages = loop, pages
        self.met: set[int] = set()

    def learn(self, outcomes: Outcomes) -> None:
        self.met.update(outcomes.page[outcomes.answered].tolist())
        if len(self.met) >= self.pages:
            self.loop.stop()


def test_an_extractor(tmp_path: Path) -> None:
    async def main() -> list[tuple[str, str]]:
        async with open_mall(tmp_path) as mall:
            extractor = f"{written(tmp_path, EXTRACTOR)}:LastPart"
            config = settings(tmp_path, mall, pages=[{"match": "*", "extractor": extractor}])
            async with stored(config) as store:
                await store.add([NewPage(url) for url in mall.urls], at=0)
            async with crawler(config) as loop:
                loop.watchers.append(Enough(loop, len(mall.urls)))
                await loop.run()
            async with stored(config) as store:
                urls = {row["page_id"]: row["url"] for row in store.scan("pages")}
                return [(urls[row["page_id"]], row["value"]) for row in store.scan("values")]

    values = asyncio.run(main())
    assert len(values) == 40  # none of them ever changes
    for url, value in values:
        assert value == "last part " + url.rstrip("/").rpartition("/")[2]


@pytest.mark.parametrize("kind", ["memory", "mine.py:Counting"])
def test_a_store(tmp_path: Path, kind: str) -> None:
    async def main() -> tuple[int, int, int | None]:
        async with open_mall(tmp_path) as mall:
            written(tmp_path, STORE)
            where = f"{tmp_path / kind}" if ".py" in kind else kind
            config = settings(tmp_path, mall, store=f"{where}:{tmp_path.name}")
            await crawled(config, mall, days=2)
            async with stored(config, create=False) as store:
                summary = await store.summary()
                return summary.pages, summary.visits, vars(type(store)).get("recorded")

    pages, made, told = asyncio.run(main())
    assert pages == 40
    assert made >= 40
    assert told == (made if ".py" in kind else None)
    assert not list(tmp_path.glob("*.db"))
