"""The demo: two policies crawl the same mall on the same budget; the mall says who did better."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from salticus.config import Budget, Config, Models, Span, load
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import clock_of, open_crawl, stored
from salticus.crawl.warming import warm_up
from salticus.errors import SalticusError
from salticus.lab.demo.charts import write_charts
from salticus.lab.demo.copies import CopyHistory, busiest_day, read_copies
from salticus.lab.worlds.mall.access import read_entries
from salticus.lab.worlds.mall.audit import AnsweredVisits, audit, fresh_at, freshness_over
from salticus.lab.worlds.mall.folder import Plot, paths
from salticus.lab.worlds.mall.shoppers import Shopping, shopping_of
from salticus.lab.worlds.mall.stock import Stock
from salticus.lab.worlds.market.make import MarketSize, make_market
from salticus.types import NewPage, instant, moment
from salticus.views.freshness import ShareView, freshness_over_time
from salticus.views.progress import Progress
from salticus.web.desk import desk

DAY = timedelta(days=1)

PAGE = "demo.html"
LOG = "market"
Told = Callable[[str], None]


@dataclass(frozen=True)
class DemoSetup:
    """What is crawled, for how long, by whom. World time is `days`, wall time `seconds` a crawl."""

    offers: int
    shops: int
    days: float
    warmup: float  # days that are not scored
    seconds: float
    budget: Budget
    delay: float  # seconds between two requests to a shop
    seed: int = 0
    policies: tuple[str, ...] = ("uniform", "leap")

    def __str__(self) -> str:
        share = f"{self.budget.per_day(self.offers):,.0f} visits a day"
        names = " and ".join(self.policies)
        return (
            f"{names} crawl {self.offers:,} offers of {self.shops} shops on {share}, "
            f"{self.days:g} days in {self.seconds:g} s each"
        )

    @property
    def speed(self) -> float:
        """World seconds a wall second."""
        return self.days * 86_400 / self.seconds


SMALL = DemoSetup(2_000, 20, 20.0, 10.0, 60.0, Budget.parse("40%"), 0.01)
FULL = DemoSetup(20_000, 100, 20.0, 10.0, 270.0, Budget.parse("40%"), 0.02)


async def run_demo(folder: Path, course: DemoSetup, told: Told) -> dict[str, Any]:
    """Make the market, let each policy crawl it, and judge; charts go into the folder."""
    told("making the market")
    make_market(
        folder / LOG,
        MarketSize(course.offers, int(course.days) + 2),
        seed=course.seed,
        preset="han2020",
    )
    plot = Plot(
        shops=course.shops,
        seed=course.seed,
        speed=course.speed,
        delay=course.delay,
        log=folder / LOG,
        shoppers=True,
    )
    stock = plot.stock()
    shopping = shopping_of(folder / LOG, stock, seed=course.seed)
    results: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for policy in course.policies:
        told(f"compiling what {policy} needs")
        await warm_up(_settings(Config(), course, policy))
        told(f"{policy} crawls for {course.seconds:g} s")
        config = await _crawl(folder / policy, plot, course, policy)
        copies, span = await _seen(config, course)
        results[policy], curves[policy] = judged(stock, copies, shopping, _scored(span, course))
        clicked = shopping.take(shopping.clicks > 0)
        kept = await promise(config, stock, copies.held(), clicked)
        results[policy]["freshness estimate"] = kept
        entries = read_entries(paths(folder / policy)["access"])
        results[policy]["politeness violations"] = len(audit(entries, delay=plot.delay).breaches)
        histories = stock, copies, span
    write_charts(folder / PAGE, curves, histories)
    return results


async def _crawl(folder: Path, plot: Plot, course: DemoSetup, policy: str) -> Config:
    """One crawl of a mall of its own; its settings."""
    async with neighbour_mall(folder, plot):
        config = _settings(load(paths(folder)["settings"]), course, policy)
        start = clock_of(config).now()
        urls = paths(folder)["urls"].read_text("utf-8").split()
        await _add(config, urls, start)
        async with crawler(config, companions=(desk,)) as loop:
            with Progress() as progress:
                loop.watchers.append(progress)
                await loop.run(start + timedelta(days=course.days))
    return config


async def _seen(config: Config, course: DemoSetup) -> tuple[CopyHistory, tuple[datetime, datetime]]:
    """What the store held when, and when the crawl began and ended."""
    urls = paths(Path(config.folder))["urls"].read_text("utf-8").split()
    async with stored(config) as store:
        copies = read_copies(store, urls)
        start = moment((await store.table()).added.min())
    return copies, (start, start + timedelta(days=course.days))


def _settings(config: Config, course: DemoSetup, policy: str) -> Config:
    """Those of the mall; no model is trained, which would take the cores from both processes."""
    return msgspec.structs.replace(
        config,
        policy=policy,
        budget=course.budget,
        seed=course.seed,
        models=Models(retrain=Span(0)),
    )


async def _add(config: Config, urls: list[str], at: datetime) -> None:
    async with stored(config) as store:
        await store.add([NewPage(url) for url in urls], at=int(at.timestamp() * 1e6))


def _scored(
    span: tuple[datetime, datetime], course: DemoSetup
) -> tuple[datetime, datetime, datetime]:
    """The start of the crawl, the end of the warm-up, the end."""
    return span[0], span[0] + timedelta(days=course.warmup), span[1]


def judged(
    stock: Stock,
    copies: CopyHistory,
    shopping: Shopping,
    times: tuple[datetime, datetime, datetime],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a crawl achieved after the warm-up, and its staleness day by day."""
    start, scored, end = times
    held = copies.held()
    clicked = shopping.take(shopping.clicks > 0).between(start, end)
    stale = ~fresh_at(stock, held, clicked.row, clicked.at)
    late = clicked.at >= instant(scored)
    made = copies.visited_at[copies.visited_at >= instant(scored)]
    result = {
        "click_staleness": float(np.average(stale[late], weights=clicked.clicks[late])),
        "page_staleness": 1.0 - freshness_over(stock, held, scored, end),
        "visits": len(copies.visited_at),
        "visits scored": len(made),
        "clicks scored": int(clicked.clicks[late].sum()),
        "changes caught": sum(changed is True for changed in copies.visited_changed),
        "most visits in any day": busiest_day(copies.visited_at),
    }
    return result, list(_daily(stale, clicked, start, end))


def _daily(
    stale: Any, clicked: Shopping, start: datetime, end: datetime
) -> Iterator[dict[str, Any]]:
    """ShareView of clicks in every half day that met a stale copy."""
    step = timedelta(hours=12)
    while start + step <= end:
        here = (clicked.at >= instant(start)) & (clicked.at < instant(start + step))
        if here.any():
            yield {"at": start.isoformat(), "stale": float(stale[here].mean())}
        start += step


def table_of(facts: Mapping[str, Any], policies: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """The results as rows, for people; the last compares the last policy with the first."""
    for name in facts[policies[0]]:
        if name != "freshness estimate":
            yield (name.replace("_", " "), *(facts[policy][name] for policy in policies))
    for by in ("pages", "clicks"):
        kept = [facts[policy]["freshness estimate"][by] for policy in policies]
        told = [f"{k['held']} of {k['days']}, ± {k['half_width'] or 0:.3f}" for k in kept]
        yield (f"estimate by {by} held the truth on", *told)
    first, last = (facts[policy]["click_staleness"] for policy in (policies[0], policies[-1]))
    yield ("click staleness beside the first", "1", *[f"{last / first:.2f}" if first else "–"])


@asynccontextmanager
async def neighbour_mall(folder: Path, plot: Plot) -> AsyncIterator[None]:
    """A mall is open in `folder`, in a process of its own, until the end of the block."""
    spelt = msgspec.json.encode(plot, enc_hook=str).decode()
    command = [sys.executable, "-m", "salticus.lab.worlds.mall.folder", str(folder), spelt]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
    try:
        await _opened(process, paths(folder)["urls"])
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _opened(process: asyncio.subprocess.Process, sign: Path) -> None:
    """Until the mall is open; it writes its addresses last."""
    while not await asyncio.to_thread(sign.exists):
        if process.returncode is not None:
            raise SalticusError(f"the mall could not be opened (exit code {process.returncode})")
        await asyncio.sleep(0.05)


async def promise(
    config: Config, stock: Stock, held: AnsweredVisits, clicked: Shopping
) -> dict[str, dict[str, Any]]:
    """By pages and by clicks: days that were estimated, days whose interval held the truth, and the
    median half-width.

    Only whole days count. The first is left out: every page is new in it.
    """
    async with open_crawl(config) as crawl:
        told = [day for day in await freshness_over_time(crawl, DAY) if day.ticks >= 12][1:]
    spans = [(day.start, day.end) for day in told]
    truths = {
        "pages": [freshness_over(stock, held, *span) for span in spans],
        "clicks": [_by_clicks(stock, held, clicked.between(*span)) for span in spans],
    }
    shares = {"pages": [day.pages for day in told], "clicks": [day.clicks for day in told]}
    return {name: _kept(shares[name], truth) for name, truth in truths.items()}


def _by_clicks(stock: Stock, held: AnsweredVisits, clicked: Shopping) -> float:
    """ShareView of clicks that met a copy in step with the truth."""
    if not len(clicked):
        return float("nan")
    fresh = fresh_at(stock, held, clicked.row, clicked.at)
    return float(np.average(fresh, weights=clicked.clicks))


def _kept(told: list[ShareView], truth: list[float]) -> dict[str, Any]:
    known = [
        (day, day.freshness or 0.0, day.half_width, true)
        for day, true in zip(told, truth, strict=True)
        if day.half_width is not None and not np.isnan(true)
    ]
    widths = [half for _, _, half, _ in known]
    off = [share - true for _, share, _, true in known]
    held = [(day.low or 0.0) <= true <= (day.high or 0.0) for day, _, _, true in known]
    return {
        "days": len(known),
        "held": sum(held),
        "half_width": float(np.median(widths)) if widths else None,
        "bias": float(np.mean(off)) if off else None,
    }
