"""A copy is as old as its last answer: failed visits make nothing fresh, and all who are asked
whether a copy is out of date give one answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.allocate.leap import Leap
from salticus.clock import VirtualClock
from salticus.config import Config, parse
from salticus.crawl.loop import Loop
from salticus.crawl.opening import open_crawl, stored
from salticus.freshness.estimate import by_pages
from salticus.freshness.note import Gauging
from salticus.observe import digest
from salticus.predict.base import Predictor
from salticus.predict.gamma import GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.store.nouns import Query
from salticus.testing import START, blank_pages
from salticus.types import (
    Floats,
    NewPage,
    Observation,
    Outcomes,
    Pages,
    Plan,
    Status,
    Survival,
    Value,
    instant,
)
from salticus.types.coins import coins
from salticus.views.fresh import Fresh, fresh
from salticus.views.search import Found, search
from salticus.views.why import why_all
from salticus.web.desk import Clicks

from .test_why import DAY, Scripted, crawler

N, BEFORE, BLOCKED = 100, 8, 20  # pages; days on which all answer, and on which half do not
PERIOD = 7.5  # days from one change of a page to the next, on average


class HalfBlocked(Scripted):
    """Every second page does not answer from some day on; all change at the same pace."""

    def _seen(
        self, plan: Plan, row: int, url: str, before: str | None, since: int | None
    ) -> Observation:
        seen = super()._seen(plan, row, url, None, None)
        if seen.page % 2 and seen.at > _micros(BEFORE):
            return Observation(*(getattr(seen, f) for f in seen.__struct_fields__[:5]), "network")
        text = _text(seen.page, seen.at)
        seen.digest, seen.since = digest(text), since
        seen.changed = None if before is None else before != seen.digest
        seen.value = Value("offer", text, {"title": "Teapot"}) if before != seen.digest else None
        return seen


def _micros(days: float) -> int:
    return int((START + days * DAY).timestamp() * 1e6)


def _text(page: int, at: int) -> str:
    """The value of a page: how often a coin has changed it, tossed four times a day."""
    quarters = np.arange(4 * (at - _micros(0)) // 86_400_000_000)
    return f"{np.count_nonzero(coins(7, quarters, page) < 0.25 / PERIOD)} EUR"


class Known:
    """The predictor that knows how fast the pages change."""

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return PoissonSurvival(np.full(len(pages), 1.0 / PERIOD))

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing."""


@asynccontextmanager
async def crawled(
    folder: Path, days: float, predictor: Predictor | None = None, **settings: Any
) -> AsyncIterator[tuple[Loop, Config]]:
    """A crawl of so many days that is going on; the last tick is planned and half made."""
    plain = {"store": str(folder / "salticus.db"), "tick": "6h", "seed": 5, "explore": "5%"}
    config, clock = parse(plain | settings), VirtualClock(START)
    async with stored(config) as store:
        urls = [f"http://h{n % 7}.example/teapot/{n}" for n in range(N)]
        await store.add([NewPage(url) for url in urls], at=_micros(0))
        world = HalfBlocked(store, config, clock)
        world.crash_at = int(4 * days) - 1
        loop = crawler(config, world, store)
        loop.gauge = Gauging(store)
        if predictor is not None:
            loop.parts = replace(loop.parts, predictor=predictor)
        async for tick in loop.parts.ticks.until(START + days * DAY):
            plan = await loop.plan(tick)
            await loop.snapshot.save(plan)
            await loop.make(plan)
        clock.advance(timedelta(hours=5))
        yield loop, config


def test_half_of_the_pages_are_blocked_and_the_copy_is_not_called_fresh(tmp_path: Path) -> None:
    async def main() -> None:
        days = BEFORE + BLOCKED
        async with crawled(tmp_path, days, Known(), policy="uniform", budget="36%") as (loop, _):
            world = cast(HalfBlocked, loop.world)
            pages = await world.store.find(Query(limit=N))
            now = _micros(days)
            truth = np.mean([page.value == _text(page.page, now) for page in pages])
            ticks, found = await world.store.gauged(_micros(days - 1), now)
            estimate = by_pages(ticks, found)
            assert truth < 0.5, "half of the copies are 20 days old"
            assert abs(estimate.model - truth) < 0.07
            assert abs(estimate.model - 0.45) < 0.03

    asyncio.run(main())


def test_pages_that_do_not_answer_get_no_more_visits_than_those_that_do(tmp_path: Path) -> None:
    async def main() -> None:
        async with crawled(tmp_path, BEFORE + BLOCKED, policy="leap", budget="36%") as (loop, _):
            world = cast(HalfBlocked, loop.world)
            pages = await world.store.find(Query(limit=N))
            dead = [page.visits for page in pages if page.page % 2]
            living = [page.visits for page in pages if not page.page % 2]
            assert np.mean(dead) < np.mean(living)
            assert min(page.failures for page in pages if page.page % 2) > 0, "and they get some"

    asyncio.run(main())


def outdated(found: list[Found]) -> Floats:
    return np.array([hit.outdated for hit in found], dtype=np.float64)


def test_search_desk_fresh_and_why_give_one_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with crawled(tmp_path, BEFORE + 3, budget="100%") as (loop, config):
            world = cast(HalfBlocked, loop.world)
            clock = world.clock
            clicks = Clicks(loop, cast(Any, world), clock)
            found = await clicks.search("teapot", N)
            await clicks.flush()
            urls = [hit.url for hit in found]
            assert len(urls) == N
            desk = outdated(found)
            async with open_crawl(config, clock) as crawl:
                told = [each for each in await fresh(crawl, urls) if isinstance(each, Fresh)]
                why = [each.copy.changed_by_now for each in await why_all(crawl, urls)]
                searched = {hit.url: hit for hit in await search(crawl, "teapot", N)}
            assert desk == pytest.approx(1.0 - np.array([each.fresh for each in told]), abs=1e-9)
            assert desk == pytest.approx(np.array(why), abs=1e-9)
            assert desk == pytest.approx(outdated([searched[url] for url in urls]), abs=1e-9)
            ids = np.array([hit.page for hit in found])
            silent = ids % 2 == 1
            assert desk[silent].min() > desk[~silent].mean(), "they answered three days ago"

    asyncio.run(main())


def failed(at: Any, times: int) -> Outcomes:
    """So many visits of the second page in a row that were not answered, the last at that time."""
    when = at - np.arange(times)[::-1] * np.timedelta64(1, "m")
    status = np.full(times, Status.TIMEOUT, dtype=np.int8)
    page = np.full(times, blank_pages(2).ids[1])
    return Outcomes.known(page=page, at=when, status=status)


@given(st.floats(0.01, 30.0), st.floats(0.01, 30.0), st.floats(0.05, 5.0), st.floats(0.01, 3.0))
def test_a_silent_page_is_worth_less_with_every_failure(
    silent: float, waited: float, shape: float, rate: float
) -> None:
    """Both were visited at the same time; the one has not answered for so many days before. At
    first a failure may be chance; after many the page waits as long again as it was silent."""
    visit = instant(START) - np.timedelta64(int(waited * 86_400e6), "us")
    answer = visit - np.timedelta64(int(silent * 86_400e6), "us")
    curves = GammaSurvival(np.full(2, shape), np.full(2, shape / rate))
    pages = replace(blank_pages(2).answered(np.array([visit, answer])), survival=curves)
    unvisited, _ = Leap().worth(pages)
    pages = replace(pages, last_visit=np.full(2, visit))
    before = unvisited[1]
    for times in (1, 2, 4, 8):
        leap = Leap()
        leap.learn(failed(visit, times))
        worth, alone = leap.worth(pages)
        assert worth[1] <= before * (1 + 1e-9)
        before = worth[1]
    leap.learn(failed(visit, 1000))
    hope = pages.answering(instant(START))[1] + 0.002
    assert leap.worth(pages)[0][1] <= unvisited[1] * hope + 1e-9, "nothing but patience is left"
    chance = pages.answering(instant(START))
    assert chance[0] == 1.0
    assert 0.0 < chance[1] < 1.0
    later = pages.answering(instant(START) + np.timedelta64(1, "D"))
    assert later[1] > chance[1], "patience grows into hope"
    stale = pages.outdated(instant(START))
    assert stale[1] >= stale[0]


def test_a_page_that_never_answered_is_outdated_and_is_not_taken_for_new() -> None:
    start = instant(START)
    visits = np.array(["NaT", "2025-12-31", "2025-12-31"], dtype="M8[us]")
    answers = np.array(["NaT", "NaT", "2025-12-31"], dtype="M8[us]")
    added = np.full(3, start - np.timedelta64(9, "D"))
    pages = replace(blank_pages(3), last_visit=visits, last_answer=answers, added=added)
    pages = replace(pages, survival=GammaSurvival(np.ones(3), np.ones(3)))
    assert pages.outdated(start)[:2].tolist() == [1.0, 1.0]
    leap = Leap()
    leap.learn(failed(visits[1], 8))
    worth, _ = leap.worth(pages)
    assert worth[0] > worth[2], "a new page comes before one that was just read"
    assert worth[1] < worth[2], "one that has been tried in vain does not"
