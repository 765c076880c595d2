"""An open crawl answers as one that was opened just now, and reads again only what changed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import salticus
from salticus.clock import VirtualClock
from salticus.config import Config, load, parse
from salticus.crawl.opening import Crawl, open_crawl, stored
from salticus.store.nouns import Edit, Query
from salticus.types import Count
from salticus.views.fresh import Fresh, Unknown, fresh, plan
from salticus.views.search import search
from salticus.views.status import status

from .cli_stage import ABOUT, FRESH, GONE, NOW, SETTINGS, TEA, Stage, seen
from .test_why import START, TICK, Scripted, crawler

URLS = [TEA, ABOUT, GONE, FRESH, "http://nowhere.example/"]
CLOCK = VirtualClock(datetime.fromtimestamp(NOW / 1e6, UTC) + timedelta(minutes=1))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, 'policy = "leap"\n' + SETTINGS)
    stage.furnish()
    return stage


async def asked(crawl: Crawl) -> list[Fresh | Unknown]:
    return await fresh(crawl, URLS)


async def anew(config: Config) -> list[Fresh | Unknown]:
    async with open_crawl(config, CLOCK) as crawl:
        return await asked(crawl)


def chances(found: list[Fresh | Unknown]) -> list[float]:
    return [page.fresh for page in found if isinstance(page, Fresh)]


def test_a_crawl_that_is_kept_open_follows_the_store(stage: Stage) -> None:
    config = load(stage.file)

    async def main() -> None:
        async with open_crawl(config, CLOCK) as crawl, open_crawl(config, CLOCK) as other:
            before = await asked(crawl)
            assert before == await asked(crawl) == await anew(config)
            await other.store.record([seen(9, 4, 0.5, "5 EUR"), seen(10, 1, 0.4, changed=False)])
            await other.store.count([Count(TEA, NOW, clicks=5)])
            await salticus.add(other, ["http://c.example/new"])
            after = await asked(crawl)
            assert chances(after) == pytest.approx(chances(await anew(config)))
            assert after != before
            new, *_ = await fresh(crawl, ["http://c.example/new"])
            assert isinstance(new, Fresh)
            assert new.fresh == 0.0
            await other.store.edit(Query(url=TEA), Edit(paused=True))
            assert (await asked(crawl))[0].state == "paused"  # type: ignore[union-attr]

    asyncio.run(main())


def test_a_crawl_that_is_kept_open_follows_the_crawler(tmp_path: Path) -> None:
    """Visits are planned and made, and the predictor learns, while somebody looks on."""
    config = parse({"store": str(tmp_path / "salticus.db"), "seed": 3, "budget": 40})
    clock, urls = VirtualClock(START), [f"http://a.example/{n}" for n in range(12)]

    async def main() -> None:
        async with stored(config) as store, open_crawl(config, clock) as crawl:
            await store.add([salticus.NewPage(url) for url in urls], at=crawl.micros)
            loop = crawler(config, Scripted(store, config, clock), store)
            for number in range(1, 7):
                await loop.run(START + number * TICK)
                async with open_crawl(config, clock) as other:
                    assert await fresh(crawl, urls) == await fresh(other, urls)
                    assert await fresh(crawl, urls, foresee=True) == await fresh(
                        other, urls, foresee=True
                    )
            assert max(chances(await fresh(crawl, urls))) > 0.0

    asyncio.run(main())


def test_the_state_is_read_again_only_when_it_changed(stage: Stage) -> None:
    config = load(stage.file)

    async def main() -> None:
        async with open_crawl(config, CLOCK) as crawl, open_crawl(config, CLOCK) as other:
            first = (await crawl.standing()).parts
            assert (await crawl.standing()).parts is first
            await other.store.record([seen(9, 4, 0.5, "5 EUR")])
            assert (await crawl.standing()).parts is first, "a visit is no reason to read all again"
            assert len((await other.foreseeing()).plan())
            await other.store.remember([await _remembered(other)])
            assert (await crawl.standing()).parts is not first

    asyncio.run(main())


async def _remembered(crawl: Crawl) -> bytes:
    from salticus.crawl.snapshot import Snapshot, no_plan

    snapshot = Snapshot({}, crawl.store)
    await snapshot.save(no_plan(crawl.now()))
    return await crawl.store.recall() or b""


def test_looking_changes_nothing(stage: Stage) -> None:
    async def main() -> None:
        async with open_crawl(stage.file, CLOCK) as crawl:
            before = await status(crawl), await asked(crawl)
            visits = await plan(crawl)
            assert {visit.url for visit in visits} <= {
                p.url for p in await crawl.store.find(Query())
            }
            assert visits == await plan(crawl)
            assert [visit.due for visit in visits] == sorted(visit.due for visit in visits)
            (hit,) = await search(crawl, "tea")
            tea = before[1][0]
            assert isinstance(tea, Fresh)
            assert hit.outdated == pytest.approx(1.0 - tea.fresh, abs=1e-4), (
                "one answer to one question"
            )
            assert (await status(crawl), await asked(crawl)) == before

    asyncio.run(main())


def test_changes_come_with_content_from_a_cursor_on(stage: Stage) -> None:
    async def main() -> None:
        async with salticus.open_crawl(stage.file, CLOCK) as crawl:
            every = [c async for c in salticus.changes(crawl, content=True)]
            assert every[-1].content == (await salticus.copy_of(crawl, every[-1].url)).content
            wanted = salticus.Wanted(after=every[0].seq)
            later = [c async for c in salticus.changes(crawl, wanted, content=True)]
            assert later == every[1:]

    asyncio.run(main())
