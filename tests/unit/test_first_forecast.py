"""What `why` foresees on the first days of a crawl is what the crawl then does."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from salticus.clock import VirtualClock
from salticus.config import parse
from salticus.crawl.opening import stored
from salticus.crawl.standing import without_news
from salticus.types import NewPage, Tick

from .test_why import START, TICK, Scripted, crawler, why_report

DEAD, LIVING = "http://dead.example/{}", "http://a.example/{}"
FIRST_DAYS: dict[str, tuple[list[str], dict[str, Any], int]] = {
    "one page, its first visit failed": ([DEAD.format(0)], {"budget": 1}, 1),
    "one page, answered": ([LIVING.format(0)], {"budget": 1}, 1),
    "nothing was visited yet": ([LIVING.format(n) for n in range(20)], {"budget": 10}, 0),
    "most pages are new": ([LIVING.format(n) for n in range(40)], {"budget": 24}, 3),
    "all visits failed": ([DEAD.format(n) for n in range(12)], {"budget": 24}, 6),
    "more visits than pages": ([LIVING.format(n) for n in range(6)], {"budget": 400}, 4),
    "more visits than pages, some fail": (
        [DEAD.format(n) for n in range(3)] + [LIVING.format(n) for n in range(3)],
        {"budget": 400},
        4,
    ),
}


@pytest.mark.parametrize("situation", FIRST_DAYS)
@pytest.mark.parametrize("explore", ["0%", "4.5%"])
def test_the_crawl_visits_when_it_was_foreseen(
    situation: str, explore: str, tmp_path: Path
) -> None:
    urls, settings, ticks = FIRST_DAYS[situation]
    plain = {"store": str(tmp_path / "salticus.db"), "seed": 3, "explore": explore}
    config, clock = parse(plain | settings), VirtualClock(START)

    async def main() -> None:
        async with stored(config) as store:
            await store.add([NewPage(url) for url in urls], at=int(START.timestamp() * 1e6))
            world = Scripted(store, config, clock)
            loop = crawler(config, world, store)
            await loop.run(START + ticks * TICK)
        named = {
            page.url: page.next_visit.tick
            for page in await why_report(config, urls, clock)
            if page.next_visit is not None
        }
        assert len(named) == len(urls), "every page has a next visit"
        async with stored(config) as store:
            world = Scripted(store, config, clock)
            loop = crawler(config, world, store)
            await loop.recover()
            seen: dict[str, int] = {}
            tick = Tick(loop.parts.ticks.number_, clock.now(), clock.now() + TICK)
            while len(seen) < len(urls) and tick.start < START + timedelta(days=30):
                plan = await loop.plan(tick)
                for target in await store.targets(plan.page):
                    seen.setdefault(target.url, tick.number)
                made = without_news(plan)  # nothing is learnt of what they find
                world.census.learn(made)
                loop.parts.ledger.learn(made)
                tick = Tick(tick.number + 1, tick.end, tick.end + TICK)
        assert seen == named

    asyncio.run(main())


def test_a_single_page_that_failed_is_tried_again_when_the_budget_allows(tmp_path: Path) -> None:
    """With one visit a day, that is a day later, and not when the lot falls on it."""
    config = parse({"store": str(tmp_path / "salticus.db"), "seed": 2, "budget": 1})
    clock, url = VirtualClock(START), DEAD.format(0)

    async def main() -> None:
        async with stored(config) as store:
            await store.add([NewPage(url)], at=int(START.timestamp() * 1e6))
            await crawler(config, Scripted(store, config, clock), store).run(START + TICK)
        (page,) = await why_report(config, [url], clock)
        assert page.next_visit is not None
        assert page.next_visit.tick <= 13

    asyncio.run(main())
