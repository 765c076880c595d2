"""Explanations come true: the planner visits in the tick that `why` named."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.clock import VirtualClock
from salticus.config import Config, parse
from salticus.crawl.census import Census
from salticus.crawl.loop import Loop
from salticus.crawl.opening import cost_of, open_crawl, stored
from salticus.crawl.parts import make_parts
from salticus.crawl.snapshot import Snapshot
from salticus.crawl.standing import HORIZON
from salticus.fetch.gate import Hosts
from salticus.observe import digest
from salticus.store.nouns import Edit, Query
from salticus.store.sqlite.database import instance_lock
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import START
from salticus.types import (
    Count,
    HostState,
    NewPage,
    Observation,
    Outcomes,
    Pages,
    Plan,
    Purpose,
    Record,
    Tick,
    Value,
    instant,
)
from salticus.views.fresh import Fresh, fresh, outdated_or_unknown, times
from salticus.views.reasons import Why, in_words
from salticus.views.why import why_all

DAY = timedelta(days=1)
TICK = timedelta(hours=2)
RULES: list[dict[str, Any]] = [
    {"match": "*/pin*", "interval": "9h"},
    {"match": "*/limit*", "max_interval": "1d"},
    {"tag": "slow", "min_interval": "3d"},
    {"match": "*/hours*", "hours": "08:00-14:00", "max_interval": "2d"},
    {"match": "*/paused*", "pause": True},
    {"tag": "dear", "importance": 50.0},
    {"match": "*/unimportant*", "importance": 0.0},
    {"host": "drawn.example", "render": True},
]
PAGES = {
    "fast": NewPage("http://a.example/fast", demand=6.0),
    "steady": NewPage("http://a.example/steady"),
    "read": NewPage("http://a.example/read", demand=40.0),
    "little read": NewPage("http://a.example/little", demand=0.01),
    "unread": NewPage("http://a.example/unread", demand=0.0),
    "unimportant": NewPage("http://a.example/unimportant", demand=9.0),
    "pinned": NewPage("http://a.example/pin"),
    "limited by rule": NewPage("http://b.example/limit", demand=0.001),
    "limited by hand": NewPage("http://b.example/own", demand=0.001, max_interval=1.5),
    "slow": NewPage("http://b.example/slow", demand=500.0, tags=("slow",)),
    "hours": NewPage("http://b.example/hours", demand=0.001),
    "paused by rule": NewPage("http://b.example/paused"),
    "paused by hand": NewPage("http://b.example/resting"),
    "dear": NewPage("http://b.example/dear", tags=("dear", "late")),
    "full host, read": NewPage("http://full.example/read", demand=9.0),
    "full host": NewPage("http://full.example/some", demand=7.0),
    "failing": NewPage("http://dead.example/failing", demand=5.0),
    "gone": NewPage("http://a.example/gone", demand=90.0),
    "drawn": NewPage("http://drawn.example/page", demand=4.0),
}
CROWD = [NewPage(f"http://c{n % 4}.example/{n}", demand=(0.2 + n % 7) / 4) for n in range(40)]
CROWD += [NewPage(f"http://full.example/{n}", demand=7.0 + n) for n in range(6)]
LATE = {
    "never visited": NewPage("http://d.example/new"),
    "seen elsewhere": NewPage("http://d.example/elsewhere", demand=3.0),
}


def settings(folder: Path, policy: str) -> Config:
    return parse(
        {
            "store": str(folder / "salticus.db"),
            "policy": policy,
            "budget": "120%",
            "explore": "6%",
            "seed": 5,
            "hosts": [{"match": "full.example", "delay": "90m"}],
            "pages": RULES,
        }
    )


Crawl = tuple[Config, VirtualClock]


class Scripted:
    """A world on a real store: pages change at a pace of their own, one fails, one is gone."""

    def __init__(self, store: SqliteStore, config: Config, clock: VirtualClock) -> None:
        self.store, self.config, self.clock = store, config, clock
        self.census = Census(store, max_interval=config.max_interval_days, rules=config.pages)
        self.crash_at = -1
        self.urls: dict[int, str] = {}

    async def pages(self, tick: Tick) -> Pages:
        hosts = Hosts(self.config, self.clock)
        hosts.restore(await self.store.hosts())
        await self.store.charge([(rule, cost_of(rule)) for rule in self.config.pages])
        await self.census.refresh()
        return self.census.pages(
            tick, lambda host: hosts.capacity(host, tick.start.timestamp(), TICK.total_seconds())
        )

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        if plan.tick.number == self.crash_at:
            plan = plan.take(np.arange(len(plan) // 2))
        targets = await self.store.targets(plan.page)
        await self.store.record(
            [
                Record(self._seen(plan, row, target.url, target.digest, target.seen))
                for row, target in enumerate(targets)
            ]
        )
        outcomes = await self.store.outcomes(plan.visit)
        self.census.learn(outcomes)
        yield outcomes

    def _seen(
        self, plan: Plan, row: int, url: str, before: str | None, since: int | None
    ) -> Observation:
        at = int(plan.due[row].astype(np.int64))
        seen = Observation(
            visit=int(plan.visit[row]),
            page=int(plan.page[row]),
            at=at,
            purpose=Purpose(int(plan.purpose[row])).label,
            propensity=float(plan.propensity[row]),
            status="ok",
        )
        if "dead" in url or "gone" in url:
            seen.status = "network" if "dead" in url else "gone"
            return seen
        days = 0.3 if "fast" in url else 30.0 if "steady" in url else 1.0 + seen.page % 9
        value = Value("offer", f"{at // int(days * 86_400e6)} EUR")
        seen.digest, seen.since = digest(value.text), since
        seen.changed = None if before is None else before != seen.digest
        seen.value = value if before != seen.digest else None
        return seen

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        nothing: list[Outcomes] = []
        for outcomes in nothing:
            yield outcomes


def crawler(config: Config, world: Scripted, store: SqliteStore) -> Loop:
    parts = make_parts(config, world.clock, store)
    return Loop(world, parts, Snapshot(parts.named(), store))


async def crawled(folder: Path, policy: str = "leap", *, days: int = 7) -> Crawl:
    """A crawl of some days that was killed in the middle of a tick; then two pages come."""
    config, clock = settings(folder, policy), VirtualClock(START)
    async with stored(config) as store:
        await store.add([*PAGES.values(), *CROWD], at=_micros(clock))
        await store.edit(Query(url=PAGES["paused by hand"].url), Edit(paused=True))
        world = Scripted(store, config, clock)
        world.crash_at = days * 12
        loop = crawler(config, world, store)
        async for tick in loop.parts.ticks.until(START + (days + 1) * DAY):
            plan = await loop.plan(tick)
            await loop.snapshot.save(plan)
            await loop.make(plan)
            if tick.number == world.crash_at:
                break
        clock.advance(TICK / 4)
        dead = HostState("dead.example", next_at=clock.wall() + 5.2 * 3600, strikes=4)
        page = await store.page(PAGES["failing"].url)
        failed = Observation(10**15, page.page, _micros(clock), "manual", 1.0, "network")
        await store.record([Record(failed, hosts=(dead,))])
        await store.add(list(LATE.values()), at=_micros(clock))
        page = await store.page(LATE["seen elsewhere"].url)
        then = _micros(clock) - 3 * 86_400_000_000
        seen = Observation(10**15 + 1, page.page, then, "manual", 1.0, "ok", digest="x")
        await store.record([Record(seen)])
    return config, clock


def _micros(clock: VirtualClock) -> int:
    return int(clock.now().timestamp() * 1e6)


async def planned(config: Config, clock: VirtualClock) -> dict[str, int]:
    """The tick of each page's next visit: the crawl restarts now; visits are made, and
    nothing is learnt from them."""
    async with stored(config) as store:
        world = Scripted(store, config, clock)
        loop = crawler(config, world, store)
        recalled = await loop.snapshot.recall()
        assert recalled is not None
        plan, outcomes = recalled
        loop.learn(outcomes)
        loop.study()
        plan = plan.without(outcomes.visit)
        await world.pages(plan.tick)
        visited: dict[int, int] = {}
        tick = Tick(plan.tick.number + 1, clock.now(), clock.now() + TICK)
        last = clock.now() + HORIZON
        while True:
            for page in plan.page.tolist():
                visited.setdefault(page, plan.tick.number)
            made = replace(
                Outcomes.dropped(plan, instant(tick.start)),
                made=np.ones(len(plan), dtype=np.bool_),
                status=np.zeros(len(plan), dtype=np.int8),
                at=plan.due,
            )
            world.census.learn(made)
            loop.parts.ledger.learn(made)
            if tick.start >= last:
                break
            plan = await loop.plan(tick)
            tick = Tick(tick.number + 1, tick.end, tick.end + TICK)
        pages = await store.find(Query())
        return {page.url: visited[page.page] for page in pages if page.page in visited}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    return asyncio.run(crawled(tmp_path_factory.mktemp("crawl")))


KINDS = {kind: page.url for kind, page in {**PAGES, **LATE}.items()}
EVERYONE = [*KINDS.values(), *(page.url for page in CROWD)]


@pytest.fixture(scope="module")
def told(crawl: Crawl) -> dict[str, Why]:
    found = asyncio.run(why_report(crawl[0], EVERYONE, crawl[1]))
    return {page.url: page for page in found}


async def why_report(config: Config, urls: list[str], clock: VirtualClock) -> list[Why]:
    async with open_crawl(config, clock) as crawl:
        return await why_all(crawl, urls)


def named(told: dict[str, Why]) -> dict[str, int]:
    """The tick that is named for each page that is visited at all."""
    visits = {url: page.next_visit for url, page in told.items()}
    return {url: visit.tick for url, visit in visits.items() if visit is not None}


# ------------------------------------------------------------------------------------------- when


def test_the_planner_visits_in_the_tick_that_why_named(crawl: Crawl, told: dict[str, Why]) -> None:
    assert len(KINDS) >= 20
    ticks = named(told)
    assert ticks == asyncio.run(planned(*crawl))
    assert len(set(ticks.values())) > 10, "they are not all visited at once"
    assert any(told[url].next_visit.planned for url in ticks), "some are planned already"


def test_without_a_price_the_policy_itself_is_foreseen(tmp_path: Path) -> None:
    config, clock = asyncio.run(crawled(tmp_path, "uniform", days=1))
    found = {page.url: page for page in asyncio.run(why_report(config, EVERYONE, clock))}
    assert named(found) == asyncio.run(planned(config, clock))
    assert all(page.price is None for page in found.values())
    assert {page.brought_by for page in found.values()} >= {"policy", "first visit", "pin"}


@pytest.mark.parametrize(
    ("kind", "binds", "causes"),
    [
        ("fast", "price", {"price"}),
        ("read", "none", {"price"}),
        ("steady", "price", {"price"}),
        ("unread", "price", {"explore", None}),
        ("unimportant", "price", {"explore", None}),
        ("pinned", "pin", {"pin"}),
        ("limited by rule", "price", {"max_interval"}),
        ("limited by hand", "price", {"max_interval"}),
        ("slow", "min_interval", {"price"}),
        ("hours", "hours", {"max_interval"}),
        ("paused by rule", "pause", {None}),
        ("paused by hand", "pause", {None}),
        ("full host", "host", {"price"}),
        ("failing", "host", {"price", "explore"}),
        ("gone", "rest", {"price", "explore"}),
        ("never visited", "none", {"first visit"}),
    ],
)
def test_why_names_what_binds(
    kind: str, binds: str, causes: set[str | None], told: dict[str, Why]
) -> None:
    page = told[KINDS[kind]]
    assert (page.binds, page.brought_by in causes) == (binds, True), page
    if binds in ("pause", "rest", "pin", "min_interval", "hours", "host"):
        assert binds in [bound.name for bound in page.bounds]


def test_the_lot_is_foreseen_too(told: dict[str, Why]) -> None:
    assert "explore" in {page.brought_by for page in told.values()}


def test_while_a_crawl_runs_the_coming_tick_follows_the_present_one(crawl: Crawl) -> None:
    config, clock = crawl
    with instance_lock(Path(config.store)):
        (page,) = asyncio.run(why_report(config, [KINDS["never visited"]], clock))
    assert page.next_visit.start > clock.now()
    assert page.next_visit.tick == page.coming_tick


# ------------------------------------------------------------------------------ how to be sooner


def test_so_much_more_demand_brings_a_visit_forward(tmp_path: Path) -> None:
    config, clock = asyncio.run(crawled(tmp_path, days=2))
    url = KINDS["steady"]
    (before,) = asyncio.run(why_report(config, [url], clock))
    factor, coming = before.price.demand_factor, before.coming_tick
    assert before.next_visit.tick > coming
    for more, sooner in ((0.999, False), (1.001, True)):
        asyncio.run(_demand(config, url, factor * more))
        (after,) = asyncio.run(why_report(config, [url], clock))
        assert (after.next_visit.tick == coming) == sooner


def test_clicks_are_named_as_where_demand_comes_from(tmp_path: Path) -> None:
    config, clock = asyncio.run(crawled(tmp_path, days=1))
    asyncio.run(_clicked(config, KINDS["dear"], _micros(clock), 30))
    dear, other = asyncio.run(why_report(config, [KINDS["dear"], KINDS["steady"]], clock))
    assert dear.demand.origin == other.demand.origin == "clicks"
    assert dear.demand.clicks == pytest.approx(30, rel=0.01)
    assert dear.demand.a_day > 50 * other.demand.a_day > 0
    assert "30 clicks, 0 impressions, times 50" in dict(in_words(dear))["demand"]


async def _clicked(config: Config, url: str, at: int, clicks: int) -> None:
    async with stored(config) as store:
        await store.count([Count(url, at, clicks=clicks)])


async def _demand(config: Config, url: str, demand: float) -> None:
    async with stored(config) as store:
        await store.edit(Query(url=url), Edit(demand=demand))


# --------------------------------------------------------------------------------- what is known


def test_why_tells_what_the_estimate_rests_on(told: dict[str, Why]) -> None:
    fast, steady, new = (told[KINDS[kind]] for kind in ("fast", "steady", "never visited"))
    assert fast.estimate.changes_a_day > 3 * steady.estimate.changes_a_day
    assert fast.estimate.seen.changes > 3
    for page in (fast, steady):
        parts, ahead = page.estimate.parts, [*page.copy.changed_in_days.values()]
        assert parts.own_share + parts.prior_share == pytest.approx(1.0)
        mean = parts.prior_share * parts.prior_changes_a_day
        mean += parts.own_share * parts.own_changes / parts.own_days
        assert mean == pytest.approx(page.estimate.changes_a_day)
        assert ahead == sorted(ahead)
        assert page.copy.changed_by_now <= ahead[0]
        assert page.estimate.hours is not None
    assert new.estimate.parts.prior_share == pytest.approx(1.0)
    assert new.copy.changed_by_now == 1.0, "there is no copy"
    demand = told[KINDS["dear"]].demand
    assert (demand.a_day, demand.origin, demand.importance) == (50.0, "uniform", 50.0)


def test_a_copy_is_as_old_as_the_last_answer(crawl: Crawl) -> None:
    config, clock = crawl

    async def main() -> None:
        async with open_crawl(config) as late:
            pages = await late.store.find(Query(sort="added"))
            last = times([page.last_answer for page in pages])
            ids = np.array([page.page for page in pages])
            old = await outdated_or_unknown(late, ids, last)
        assert (old[np.isnat(last)] == 1.0).all()
        assert ((old >= 0) & (old <= 1)).all()
        async with open_crawl(config, clock) as crawl:
            now = await fresh(crawl, [page.url for page in pages], foresee=True)
        for page, found, chance in zip(pages, now, old, strict=True):
            assert isinstance(found, Fresh)
            assert found.fresh >= 1.0 - chance - 1e-12, "by the true clock it is much later"
            assert found.fresh <= (page.last_answer is not None and page.status != "gone")

    asyncio.run(main())


def test_explanations_can_be_read(told: dict[str, Why]) -> None:
    said = {kind: dict(in_words(told[url])) for kind, url in KINDS.items()}
    assert all(text and "None" not in text for page in said.values() for text in page.values())
    assert "would bring the visit into the coming tick" in said["steady"]["the visit price"]
    assert said["unread"]["the visit price"].count("nobody reads it") == 1
    assert "times 50 for pages with the tag 'dear'" in said["dear"]["demand"]
    assert said["pinned"]["pin"].startswith("visited every 9:00:00 by its rule")
    assert "0.33 visits in the coming tick (a request every 5400 s)" in said["full host"]["host"]
    assert said["never visited"]["the copy"] == "there is none yet"
    assert "because nothing is held of it yet" in said["never visited"]["next visit"]
