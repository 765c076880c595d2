"""Shops and publishers on one budget, crawled over HTTP: what finding brings, what it costs."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from salticus.clock import WaitingClock, meanwhile
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import stored
from salticus.lab.simulate.compare import known
from salticus.lab.worlds.mall.audit import AccessEntry, CopyHistory, fresh_at, read_copies
from salticus.lab.worlds.mall.press import Press, PressSettings, make_press
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.shoppers import Shopping, go_shopping, made_shopping
from salticus.lab.worlds.mall.stock import generate
from salticus.types import Bools, NewPage, Times, instant, moment
from salticus.web.desk import desk

Told = Callable[[str], None]

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What is crawled, and how: `days` of world time, at `speed` world seconds a second at most, of
    which the first `warmup` are not measured. People make `clicks` a day in the shops; how often
    they read is said by the `press`. Two requests to a host are `delay` seconds apart."""

    press: PressSettings = PressSettings(publishers=6, dead=2)
    shops: int = 3
    offers: int = 300
    clicks: float = 1000.0
    days: int = 8
    warmup: int = 3
    tick: str = "30m"
    speed: float = 7200.0
    delay: float = 0.005
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class LiveWorld:
    """What is true of a mall, and what people do there."""

    press: Press
    shopping: Shopping
    start: datetime

    def without_press(self) -> LiveWorld:
        """Its shops alone."""
        shops = self.press.shops
        press = make_press(shops, PressSettings(), start=self.start, days=1)
        return replace(self, press=press, shopping=self.shopping.take(self.in_shops(self.shopping)))

    def in_shops(self, some: Shopping) -> Bools:
        """Which clicks are on offers."""
        return np.asarray(some.row < self.press.first)


@dataclass(frozen=True, slots=True, eq=False)
class LiveCrawl:
    """What a crawl saw of offers and articles, when it visited sources and anything at all, and the
    record of the mall."""

    copies: CopyHistory
    at_sources: Times
    at: Times
    log: list[AccessEntry]

    def judged(self, world: LiveWorld, start: datetime, end: datetime) -> LiveScore:
        """What it achieved from `start` until before `end`."""
        press, answered = world.press, self.copies.answered()
        delays = 24.0 * press.delays(press.rows(start, end), answered)
        clicks = world.shopping.between(start, end)
        fresh = fresh_at(press.stock, answered, clicks.row, clicks.at)
        bought = world.in_shops(clicks)
        of_offers = self.copies.rows < press.first
        return LiveScore(
            delay=float(np.median(delays)) if len(delays) else math.nan,
            fetched=float(np.isfinite(delays).mean()) if len(delays) else math.nan,
            read=float(fresh[~bought].mean()) if not bought.all() else math.nan,
            staleness=1.0 - float(fresh[bought].mean()),
            visits=_many(self.at, start, end),
            to_sources=_many(self.at_sources, start, end),
            to_offers=_many(self.copies.at[of_offers], start, end),
        )


@dataclass(frozen=True, slots=True)
class LiveScore:
    """The median `delay`, in hours, from the birth of an article to the first visit that got it,
    those never visited counting as infinite; which share of them was `fetched`, which share of the
    clicks on articles could be `read`; the click staleness of the shops; and visits."""

    delay: float
    fetched: float
    read: float
    staleness: float
    visits: int
    to_sources: int
    to_offers: int


def live_world(settings: LiveSettings) -> LiveWorld:
    """The world of these settings; the same for the same settings."""
    shops = generate(settings.shops, settings.offers, settings.days + 1, settings.seed)
    start = moment(shops.times.min())
    span = settings.days + 1
    press = make_press(shops, settings.press, start=start, days=span, seed=settings.seed)
    bought = made_shopping(shops, settings.clicks, start, span, seed=settings.seed)
    both = bought.join(press.readers)
    return LiveWorld(press, both.take(np.argsort(both.at, kind="stable")), start)


async def crawl_live(
    folder: Path, world: LiveWorld, settings: LiveSettings, policy: str, budget: float
) -> LiveCrawl:
    """Crawl a world with a policy and so many visits a day; the store stays in the folder."""
    origins = {"world_origin": world.start, "wall_origin": datetime.now(UTC)}
    clock = WaitingClock(folder / "clock", speed=settings.speed, **origins)
    mall = Mall(world.press.stock, clock, publishers=world.press.publishers)
    with socket.create_server(("127.0.0.1", 0)) as free:
        people = f"127.0.0.1:{free.getsockname()[1]}"
    config = parse(
        {
            "store": str(folder / "salticus.db"),
            "budget": budget,
            "tick": settings.tick,
            "policy": policy,
            "seed": settings.seed,
            "fetch": {
                "contact": "mall@example.org",
                "delay": f"{settings.delay}s",
                "timeout": "60s",
                "allow_private": ["127.0.0.1"],
            },
            "clock": {"speed": settings.speed, **origins, "path": str(clock.path)},
            "desk": {"listen": people},
            "models": {"retrain": "0s"},
        }
    )
    await mall.start()
    try:
        await _add(config, world, mall)
        readers = go_shopping(world.shopping, mall, people)
        async with crawler(config, companions=(desk,)) as loop, meanwhile(readers):
            await loop.run(world.start + settings.days * _DAY)
    finally:
        await mall.stop()
    return await _seen(config, mall)


def study(
    settings: LiveSettings, budget: float, rival: str = "miniflux", told: Told = lambda step: None
) -> dict[str, Any]:
    """`compare` as plain data, with what leap achieved beside the others: the ratio of the median
    delays, and that of the click staleness of the shops."""
    scores = compare(settings, budget, rival, told)
    figures = {name: asdict(score) for name, score in scores.items()}
    leap, other, alone = scores.values()
    return {
        "protocol": {**asdict(settings), "budget": budget, "rival": rival},
        "rows": [
            {"crawl": crawl, **{name: known(value) for name, value in row.items()}}
            for crawl, row in figures.items()
        ],
        "delay_ratio": known(leap.delay / other.delay),
        "staleness_ratio": known(leap.staleness / alone.staleness),
    }


def compare(
    settings: LiveSettings, budget: float, rival: str = "miniflux", told: Told = lambda step: None
) -> dict[str, LiveScore]:
    """Crawl one world with `leap`, with a rival, and its shops alone with leap and the visits that
    these got from leap when there was more to crawl; how each did after the warm-up."""
    world = live_world(settings)
    start, end = (world.start + days * _DAY for days in (settings.warmup, settings.days))

    def crawled(world: LiveWorld, policy: str, budget: float) -> LiveScore:
        told(f"{policy}, {budget:.0f} visits a day")
        with TemporaryDirectory(prefix="salticus-study-") as folder:
            seen = asyncio.run(crawl_live(Path(folder), world, settings, policy, budget))
        return seen.judged(world, start, end)

    both = crawled(world, "leap", budget)
    left = both.to_offers / (settings.days - settings.warmup)
    return {
        "leap": both,
        rival: crawled(world, rival, budget),
        "shops alone": crawled(world.without_press(), "leap", left),
    }


def _many(times: Times, start: datetime, end: datetime) -> int:
    return int(np.count_nonzero((times >= instant(start)) & (times < instant(end))))


async def _add(config: Config, world: LiveWorld, mall: Mall) -> None:
    offers = [NewPage(url) for url in mall.urls[: world.press.first]]
    sources = [
        NewPage(f"http://{mall.hosts[each.shop]}{each.path}", kind="source")
        for each in world.press.sources
    ]
    async with stored(config) as store:
        await store.add([*offers, *sources], at=0)


async def _seen(config: Config, mall: Mall) -> LiveCrawl:
    async with stored(config) as store:
        sources = {p["page_id"] for p in store.scan("pages") if p["kind"] == "source"}
        visits = [(visit["page_id"] in sources, visit["at"]) for visit in store.scan("visits")]
        of_source = np.array([source for source, _ in visits], dtype=np.bool_)
        at = np.array([when for _, when in visits], dtype=np.int64).view("M8[us]")
        return LiveCrawl(read_copies(store, mall.urls), at[of_source], at, mall.log)
