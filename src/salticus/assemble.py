"""From settings to a crawler: every part is made here, and given to those who need it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from salticus import allocate, plugins, predict, schedule
from salticus.allocate.explore import Explore
from salticus.allocate.gate import BUILTIN as GATES
from salticus.allocate.gate.base import Gate
from salticus.allocate.insta import Insta
from salticus.allocate.limits import check_feasible
from salticus.clock import Clock, SystemClock
from salticus.config import Config, Rule, check_hours
from salticus.errors import ConfigError
from salticus.gauge.note import Gauging
from salticus.gauge.panel import Panel
from salticus.loop import Loop
from salticus.memory import Memory
from salticus.observe import digest
from salticus.predict.registry import Registry
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.store.base import PageState, Query
from salticus.store.lock import instance_lock, is_locked
from salticus.store.sqlite import SqliteStore
from salticus.types import Pages, Plan, Purpose, Tick, instant, unplanned
from salticus.worlds.census import Census


async def foreseen(config: Config, store: SqliteStore) -> tuple[Pages, list[str]]:
    """All pages with the curves that the crawl has learnt, and the names of their hosts."""
    standing = await recalled(config, store)
    pages = await standing.world.pages(standing.coming)
    curves = standing.loop.predictor.survival(pages, standing.coming.start)
    return replace(pages, survival=curves), standing.world.census.hosts

if TYPE_CHECKING:
    from salticus.fetch.base import Fetcher, Renderer
    from salticus.fetch.gate import Hosts
    from salticus.fetch.polite import PoliteFetcher
    from salticus.worlds.foreseen import Foreseen
    from salticus.worlds.live import Live

RENDERED = 5  # what a rendered visit costs if its rule does not say
MANUAL = 1000  # pages that are visited by one order of the user's
_PATIENCE_S = 3600.0  # wall seconds that these visits may take in all
_LESSON = 50_000  # stored visits that are learnt at a time


def clock_of(config: Config) -> SystemClock:
    """The clock that the settings describe."""
    time = config.clock
    return SystemClock(
        speed=time.speed, world_origin=time.world_origin, wall_origin=time.wall_origin
    )


@asynccontextmanager
async def stored(config: Config) -> AsyncIterator[SqliteStore]:
    """The store that the settings name, for a command that does not crawl."""
    store = await SqliteStore.open(config.store, keep_content=config.extract.keep_content)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def crawler(config: Config, *, once: bool = False) -> AsyncIterator[Loop]:
    """A loop on the live web, ready to run; everything is closed at the end.

    With `once` the visits are due at once, and a day's budget may have been saved up for them.
    Raises StoreLocked if another crawler runs on the store, ConfigError and Infeasible for
    settings that cannot be kept.
    """
    _check_contact(config)
    clock = clock_of(config)
    async with (
        fetching(config, clock) as fetcher,
        guided(config, clock, fetcher, once=once) as (loop, _),
    ):
        yield loop


@asynccontextmanager
async def guided(
    config: Config, clock: SystemClock, fetcher: Fetcher, *, once: bool = False
) -> AsyncIterator[tuple[Loop, Live]]:
    """A loop and its world whose visits are made by the fetcher given, such as another crawler.

    All that `crawler` says holds.
    """
    async with _live(config, clock, fetcher) as (world, store):
        await _check(config, world, clock)
        loop = _loop(config, world, clock, store, once=once)
        beside = _retraining(config, clock)
        async with _hooks(config, store), _desk(config, loop, world, clock), beside:
            yield loop, world


@asynccontextmanager
async def _live(
    config: Config, clock: Clock, fetcher: Fetcher
) -> AsyncIterator[tuple[Live, SqliteStore]]:
    """The live web as a world on the store that the settings name, which is locked meanwhile."""
    from salticus.extract.pool import Extraction
    from salticus.extract.rules import check_rules
    from salticus.worlds.live import Live  # aiohttp takes a while; other commands need it not

    check_rules(config.pages)
    with instance_lock(Path(config.store)):
        async with stored(config) as store:
            extraction = Extraction(config.extract, rules=config.pages)
            try:
                fetcher.restore(await store.hosts())
                costs = [(rule, cost_of(rule)) for rule in config.pages]
                world = Live(store, fetcher, extraction, clock, config, costs)
                world.watch.restore([(a.host, a.kind) for a in await store.alerts()])
                yield world, store
            finally:
                await extraction.close()


@asynccontextmanager
async def fetching(config: Config, clock: Clock) -> AsyncIterator[PoliteFetcher]:
    """A polite fetcher; with a browser behind it if a rule asks for one."""
    from salticus.fetch.http import HttpEngine
    from salticus.fetch.identity import Identities
    from salticus.fetch.polite import PoliteFetcher

    engine = HttpEngine(config.fetch, clock, identities=Identities(config))
    fetcher = PoliteFetcher(engine, config, clock, _renderer(config))
    try:
        yield fetcher
    finally:
        await fetcher.close()


def _check_contact(config: Config) -> None:
    if not config.fetch.contact:
        raise ConfigError(
            "fetch.contact is empty; give an e-mail or web address that site owners can turn to"
        )


def _renderer(config: Config) -> Renderer | None:
    if not any(rule.render for rule in config.pages):
        return None
    from salticus.fetch.render import BrowserRenderer  # playwright is an extra

    return BrowserRenderer(config.fetch)


def cost_of(rule: Rule) -> float:
    """What a visit to a page of this rule costs; rendering asks a host for far more than a page."""
    return float(rule.cost or (RENDERED if rule.render else 1))


@asynccontextmanager
async def _hooks(config: Config, store: SqliteStore) -> AsyncIterator[None]:
    """Whatever the settings want done on changes is done meanwhile."""
    if config.on_change is None:
        yield
        return
    from salticus.hooks import Hooks

    stop = asyncio.Event()
    running = asyncio.create_task(
        Hooks(config.on_change, store, Path(config.folder)).run(stop), name="hooks"
    )
    try:
        yield
    finally:
        stop.set()
        await running


@asynccontextmanager
async def _desk(config: Config, loop: Loop, world: Live, clock: Clock) -> AsyncIterator[None]:
    """The desk is open meanwhile, if the settings give it an address."""
    if config.desk.listen is None:
        yield
        return
    from salticus.desk.clicks import Clicks
    from salticus.desk.server import opened

    world.lingers = True
    clicks = Clicks(loop, world, clock)
    try:
        async with opened(clicks, config.desk.listen):
            yield
    finally:
        await clicks.flush()


@asynccontextmanager
async def _retraining(config: Config, clock: Clock) -> AsyncIterator[None]:
    """Models are trained beside the crawl, if one of them may come to serve in it."""
    every = config.models.retrain
    if not every or not config.file or predictor_of(config) != "serving":
        yield
        return
    from salticus.retraining import Retraining, train_command

    stop, registry = asyncio.Event(), Registry(Path(config.models.path))
    retraining = Retraining(train_command(Path(config.file)), registry, every, clock)
    running = asyncio.create_task(
        retraining.run(stop, next_training(registry, every, clock.now(), config.tick)),
        name="retraining",
    )
    try:
        yield
    finally:
        stop.set()
        await running


def next_training(registry: Registry, every: timedelta, now: datetime, tick: timedelta) -> datetime:
    """A tick from now, or when it is time again after the last model that was judged."""
    judged = [e.at for e in registry.history() if e.what in ("promoted", "kept")]
    soon = now + tick
    return max(soon, datetime.fromisoformat(judged[-1]) + every) if judged else soon


async def visit_now(config: Config, urls: Sequence[str]) -> list[PageState]:
    """Visit known pages at once, and the sitemaps that sitemaps among them name.

    These visits are the user's own: they are polite like all others, but do not count against the
    budget. Raises StoreLocked if a crawler runs on the store.
    """
    _check_contact(config)
    clock = clock_of(config)
    async with (
        fetching(config, clock) as fetcher,
        _live(config, clock, fetcher) as (world, store),
    ):
        waiting = [await store.page(url) for url in urls]
        seen: dict[int, PageState] = {}
        while waiting and len(seen) < MANUAL:
            await _make(world, clock, [page.page for page in waiting])
            seen |= {page.page: await store.page(page.url) for page in waiting}
            sources = await store.find(Query(kind="source", state="new"))
            waiting = [p for p in sources if p.page not in seen and p.sources][:MANUAL]
        async for _ in world.finish():
            pass
        return list(seen.values())


async def _make(world: Live, clock: Clock, pages: Sequence[int]) -> None:
    """Visit pages now."""
    now = clock.now()
    tick = Tick(0, now, now + timedelta(seconds=_PATIENCE_S * clock.speed))
    await world.pages(tick)
    async for _ in world.visit(by_hand(pages, tick)):
        pass


def by_hand(pages: Sequence[int], tick: Tick) -> Plan:
    """The user's own visits, beyond the budget, due at once.

    They are numbered by the start of the tick.
    """
    return Plan(
        visit=unplanned(instant(tick.start), len(pages)),
        page=np.array(pages, dtype=np.int64),
        due=np.full(len(pages), instant(tick.start)),
        purpose=np.full(len(pages), Purpose.MANUAL, dtype=np.int8),
        propensity=np.ones(len(pages)),
        tick=tick,
    )


async def import_log(config: Config, folder: Path, *, values: bool = True) -> dict[str, int]:
    """Warm the store with a log: its pages, its visits, its clicks; how many were new.

    All of it or nothing: InputError says what is wrong with the log, StoreLocked that a crawler
    runs on the store. What the visits teach of change rates is learnt once they are stored.
    """
    from salticus.log.folder import Log
    from salticus.log.past import Past

    past = Past(Log(folder), digest, values=values)
    past.check()
    clock = clock_of(config)
    with instance_lock(Path(config.store)):
        async with stored(config) as store:
            at = int(clock.now().timestamp() * 1e6)
            loaded = await store.load(past.pages(), past.visits, at=at, most=past.most)
            await _teach(config, clock, store, range(loaded.first, loaded.end))
    return {"pages": loaded.pages, "visits": loaded.visits}


async def _teach(config: Config, clock: Clock, store: SqliteStore, visits: range) -> None:
    """Let the predictor learn stored visits, and keep what it has learnt for the next run."""
    parts = _parts(config, clock, store, once=False)
    memory = Memory(parts, store)
    recalled = await memory.recall()
    for start in visits[::_LESSON]:
        numbers = np.arange(start, min(start + _LESSON, visits.stop))
        parts["predictor"].learn(await store.outcomes(numbers))
    if visits:
        if hasattr(parts["predictor"], "look_back"):
            parts["predictor"].look_back()  # imported visits may lie before known ones
        await memory.save(None if recalled else _no_plan(clock.now()))


def _no_plan(now: datetime) -> Plan:
    none = np.empty(0, dtype=np.int64)
    return Plan(
        visit=none,
        page=none,
        due=none.view("M8[us]"),
        purpose=none.astype(np.int8),
        propensity=none.astype(np.float64),
        tick=Tick(0, now, now),
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """A crawl as its store tells of it, for commands that do not crawl.

    `loop` knows what the crawl knows, in a world that is only foreseen. `open` are visits that are
    planned and not made yet, `coming` is the next tick to plan. `hosts` tell what they can take.
    """

    config: Config
    loop: Loop
    world: Foreseen
    hosts: Hosts
    open: Plan
    coming: Tick
    now: datetime


async def recalled(config: Config, store: SqliteStore, clock: Clock | None = None) -> Standing:
    """The crawl's parts as they are now, or would be if it went on now. Only reads the store, and
    needs no lock: a crawl may be running."""
    from salticus.fetch.gate import Hosts
    from salticus.worlds.foreseen import Foreseen

    clock = clock or clock_of(config)
    now, wall = clock.now(), clock.wall()
    parts = _parts(config, clock, store, once=False)
    if hasattr(parts["predictor"], "tells"):
        parts["predictor"].tells = False  # we only look on
    hosts = Hosts(config, clock)
    hosts.restore(await store.hosts())
    census = Census(store, max_interval=config.max_interval_days, rules=config.pages)

    def room(host: str, tick: Tick) -> float:
        ahead, length = tick.start - now, tick.end - tick.start
        start = wall + ahead.total_seconds() / clock.speed
        return hosts.capacity(host, start, length.total_seconds() / clock.speed)

    world = Foreseen(census, room)
    loop = Loop(world=world, memory=Memory({**parts, "demand": census.demand}, store), **parts)
    left = await loop.recover()
    plan = _no_plan(now) if left is None else left
    loop.study()
    loop.memory = Memory({})  # nothing is kept of what is foreseen
    await census.refresh()
    await census.heed()
    running = is_locked(Path(config.store))
    start = max(now, plan.tick.end) if running else now
    coming = Tick(loop.ticks.number_, start, start + config.tick)
    return Standing(config, loop, world, hosts, plan, coming, now)


async def visit_price(config: Config, store: SqliteStore) -> float | None:
    """The visit price of the last plan; None if the policy has none, or has not planned yet."""
    policy = _parts(config, clock_of(config), store, once=False)["policy"]
    await Memory({"policy": policy}, store).recall()
    price = float(getattr(policy, "price_", np.nan))
    return None if np.isnan(price) else price


async def foreseen(config: Config, store: SqliteStore) -> tuple[Pages, list[str]]:
    """All pages with the curves that the crawl has learnt, and the names of their hosts."""
    standing = await recalled(config, store)
    pages = await standing.world.pages(standing.coming)
    curves = standing.loop.predictor.survival(pages, standing.coming.start)
    return replace(pages, survival=curves), standing.world.census.hosts


def _loop(
    config: Config, world: Live, clock: SystemClock, store: SqliteStore, *, once: bool
) -> Loop:
    parts = _parts(config, clock, store, once=once)
    parts["gauge"] = Gauging(store)
    memory = Memory({**parts, "demand": world.demand}, store)
    return Loop(world=world, memory=memory, **parts)


def _parts(config: Config, clock: Clock, store: SqliteStore, *, once: bool) -> dict[str, Any]:
    """What plans and learns, by role."""
    policy = plugins.make("policy", config.policy, allocate.BUILTIN, seed=config.seed)
    spacing = getattr(policy, "spacing", config.spacing)
    return {
        "ticks": Ticks(clock, config.tick),
        "predictor": _predictor(config, predictor_of(config, policy), store),
        "policy": policy,
        "spacing": plugins.make("spacing", spacing, schedule.BUILTIN, seed=config.seed),
        "ledger": Ledger(config.budget, carry=timedelta(days=1) if once else None),
        "planner": Planner(seed=config.seed, at_once=once),
        "explore": Explore(config.explore, seed=config.seed),
        "panel": Panel(store),
        "insta": _insta(config),
    }


def _insta(config: Config) -> Insta:
    desk = config.desk
    if desk.listen is None or not desk.insta:
        return Insta()
    gate: Gate = plugins.make("gate", desk.gate, GATES, share=float(desk.share))
    return Insta(gate, share=float(desk.insta), seed=config.seed)


def predictor_of(config: Config, policy: object = None) -> str:
    """The name of the predictor: the user's word, else the policy's. Where the policy wants the
    rhythm, a model may come to serve beside it."""
    if config.predictor is not None:
        return config.predictor
    policy = policy or plugins.load("policy", config.policy, allocate.BUILTIN)
    wanted = str(getattr(policy, "predictor", "gamma"))
    return "serving" if wanted == "rhythm" else wanted


def _predictor(config: Config, name: str, store: SqliteStore) -> Any:
    if name != "serving":
        return plugins.make("predictor", name, predict.BUILTIN)
    from salticus.estimates.modelled import Sources
    from salticus.estimates.serving import Serving  # takes a while; not everyone needs it

    return Serving(Registry(Path(config.models.path)), Sources(store.facts, store.history))


async def _check(config: Config, world: Live, clock: SystemClock) -> None:
    """Refuse settings that cannot hold together.

    What hosts can take is counted over a day: now they may be asleep, or asking for patience.
    """
    check_hours(config)  # again: the tick may come from the command line
    now = clock.now()
    pages = await world.pages(Tick(0, now, now + timedelta(days=1)))
    tick = Tick(0, now, now + config.tick)
    pages = replace(pages, tick=tick, capacity=pages.capacity * tick.days)
    check_feasible(pages, config.budget.per_day(len(pages)), tick, world.census.hosts)
