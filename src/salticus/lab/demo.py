"""The demo: two policies crawl the same mall on the same budget; the mall says who did better."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.config import Budget, Config, Span, load
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import clock_of, open_crawl, stored
from salticus.crawl.warming import warm_up
from salticus.lab.newcomers import Newcomers
from salticus.lab.worlds.mall.audit import (
    AnsweredVisits,
    CopyHistory,
    audit,
    fresh_at,
    freshness_over,
    read_copies,
    read_entries,
)
from salticus.lab.worlds.mall.folder import Plot, neighbour_mall, paths
from salticus.lab.worlds.mall.shoppers import Shopping, shopping_of
from salticus.lab.worlds.mall.stock import Stock
from salticus.lab.worlds.market.make import MarketSize, make_market
from salticus.types import Ints, NewPage, Times, instant, moment
from salticus.types.coins import coins
from salticus.types.dates import epoch_us
from salticus.views.freshness import ShareView, freshness_over_time
from salticus.views.progress import Progress
from salticus.web.desk import desk

PAGE = "demo.html"
MODELS = "+models"  # at the end of a policy's name: models are trained when the score begins

_DAY = timedelta(days=1)
_HALF_DAY = timedelta(hours=12)
_SHOWN = 6  # offers
_OUTCOMES = {True: "change found", False: "no change", None: "first visit or failed"}
_COLOURS = ("#d1495b", "#8d99ae", "#edae49")  # of the outcomes
_TIME = kit.by("at:T", title="world time (UTC)", scale={"type": "utc"})

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
    new: float = 0.0  # share of the offers that are added only when the score begins

    def __str__(self) -> str:
        share = f"{self.budget.per_day(self.offers):,.0f} visits a day"
        names = " and ".join(self.policies)
        return (
            f"{names} crawl {self.offers:,} offers of {self.shops} shops on {share}, "
            f"{self.days:g} days in {self.seconds:g} s each"
        )


SMALL = DemoSetup(2_000, 20, 20.0, 10.0, 60.0, Budget.parse("40%"), 0.01)
MODELLED = DemoSetup(
    5_000,
    40,
    26.0,
    16.0,
    130.0,
    Budget.parse("40%"),
    0.01,
    policies=("leap", "leap+models"),
    new=0.1,
)
FULL = DemoSetup(20_000, 100, 20.0, 10.0, 270.0, Budget.parse("40%"), 0.02)


@dataclass(frozen=True)
class _Crawled:
    """What a crawl saw of the mall, from `start` to `end`."""

    copies: CopyHistory
    start: datetime
    end: datetime
    scored: datetime  # from when on
    new: Ints  # rows of the offers that were added then
    trained: dict[str, str]

    def known(self, stock: Stock, when: datetime) -> Ints:
        """The rows of the offers that it had been told of by then."""
        every = np.arange(len(stock))
        return every if when >= self.scored else np.setdiff1d(every, self.new)


async def run_demo(folder: Path, course: DemoSetup, told: Told) -> dict[str, Any]:
    """Make the market, let each policy crawl it, and judge; charts go into the folder."""
    told("making the market")
    log = folder / "market"
    make_market(log, MarketSize(course.offers, int(course.days) + 2), seed=course.seed)
    plot = Plot(
        shops=course.shops,
        seed=course.seed,
        speed=course.days * 86_400 / course.seconds,
        delay=course.delay,
        log=log,
        shoppers=True,
    )
    stock = plot.stock()
    shopping = shopping_of(log, stock, seed=course.seed)
    results: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for policy in course.policies:
        told(f"compiling what {policy} needs")
        await warm_up(_settings(Config(), course, policy))
        told(f"{policy} crawls for {course.seconds:g} s")
        config, crawled = await _crawl(folder / policy, plot, course, policy)
        clicked = shopping.take(shopping.clicks > 0)
        results[policy], curves[policy] = _judged(stock, crawled, clicked)
        if course.new:
            new = Newcomers(crawled.copies, crawled.new, clicked, (crawled.scored, crawled.end))
            results[policy] |= new.delays()
            results[policy]["models"] = crawled.trained
        results[policy]["freshness estimate"] = await _promise(config, stock, crawled, clicked)
        entries = read_entries(paths(folder / policy)["access"])
        results[policy]["politeness violations"] = len(audit(entries, delay=plot.delay).breaches)
    _write_charts(folder / PAGE, curves, stock, crawled)
    return results


async def _crawl(
    folder: Path, plot: Plot, course: DemoSetup, policy: str
) -> tuple[Config, _Crawled]:
    """One crawl of a mall of its own: its settings, and what it saw."""
    async with neighbour_mall(folder, plot):
        config = _settings(load(paths(folder)["settings"]), course, policy)
        start = clock_of(config).now()
        scored, end = (start + timedelta(days=days) for days in (course.warmup, course.days))
        urls = paths(folder)["urls"].read_text("utf-8").split()
        later = np.flatnonzero(coins(course.seed, np.arange(len(urls)), 0) < course.new)
        first = sorted({*urls} - {urls[row] for row in later.tolist()})
        await _add(config, first, start)
        trained: dict[str, str] = {}
        if course.new:
            await _run(config, scored)
            trained = await _train(config) if MODELS in policy else {}
            await _add(config, [urls[row] for row in later.tolist()], clock_of(config).now())
        await _run(config, end)
    async with stored(config) as store:
        return config, _Crawled(read_copies(store, urls), start, end, scored, later, trained)


async def _add(config: Config, urls: list[str], now: datetime) -> None:
    async with stored(config) as store:
        await store.add([NewPage(url) for url in urls], at=epoch_us(now))


async def _run(config: Config, end: datetime) -> None:
    async with crawler(config, companions=(desk,)) as loop:
        with Progress() as progress:
            loop.watchers.append(progress)
            await loop.run(end)


async def _train(config: Config) -> dict[str, str]:
    """Train models on what was crawled so far; which of them serve, and why."""
    from salticus.crawl.training import train_all  # sklearn takes a while

    async with open_crawl(config) as crawl:
        found = await train_all(crawl)
    said = ("serves" if each.promoted else "does not serve" for each in found)
    return {each.task: f"{word}: {each.why}" for word, each in zip(said, found, strict=True)}


def _settings(config: Config, course: DemoSetup, policy: str) -> Config:
    """Those of the mall; no model is trained while it runs, which would take the cores from both
    processes."""
    return msgspec.structs.replace(
        config,
        policy=policy.removesuffix(MODELS),
        budget=course.budget,
        seed=course.seed,
        models=msgspec.structs.replace(config.models, retrain=Span(0)),
    )


# ----------------------------------------------------------------------------------------- judging


def _judged(
    stock: Stock, crawled: _Crawled, clicked: Shopping
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a crawl achieved since the score began, and its staleness by half days."""
    copies, start, scored, end = crawled.copies, crawled.start, crawled.scored, crawled.end
    held = copies.answered()
    clicked = clicked.between(start, end)
    stale = ~fresh_at(stock, held, clicked.row, clicked.at)
    late = clicked.at >= instant(scored)
    result = {
        "click_staleness": float(np.average(stale[late], weights=clicked.clicks[late])),
        "page_staleness": 1.0 - freshness_over(stock, held, (scored, end)),
        "visits": len(copies.at),
        "visits scored": int(np.count_nonzero(copies.at >= instant(scored))),
        "clicks scored": int(clicked.clicks[late].sum()),
        "changes caught": sum(changed is True for changed in copies.changed),
        "most visits in any day": busiest_day(copies.at),
    }
    curve = []
    while start + _HALF_DAY <= end:
        here = (clicked.at >= instant(start)) & (clicked.at < instant(start + _HALF_DAY))
        if here.any():
            curve.append({"at": start.isoformat(), "stale": float(stale[here].mean())})
        start += _HALF_DAY
    return result, curve


def busiest_day(times: Times) -> int:
    """The most visits in any 24 hours."""
    times = np.sort(times)
    before = np.searchsorted(times, times - np.timedelta64(1, "D"), "right")
    return int((np.arange(len(times)) - before).max(initial=-1)) + 1


async def _promise(
    config: Config, stock: Stock, crawled: _Crawled, clicked: Shopping
) -> dict[str, dict[str, Any]]:
    """By pages and by clicks: days that were estimated, days whose interval held the truth, and the
    median half-width.

    Only whole days count. The first is left out: every page is new in it. The truth is that of the
    pages that the crawl was told of by then.
    """
    held = crawled.copies.answered()
    async with open_crawl(config) as crawl:
        told = [day for day in await freshness_over_time(crawl, _DAY) if day.ticks >= 12][1:]
    spans = [((day.start, day.end), crawled.known(stock, day.start)) for day in told]
    pages = [freshness_over(stock, held, span, known) for span, known in spans]
    people = [(clicked.between(*span), known) for span, known in spans]
    clicks = [_by_clicks(stock, held, some.take(np.isin(some.row, k))) for some, k in people]
    return {
        "pages": _kept([day.pages for day in told], pages),
        "clicks": _kept([day.clicks for day in told], clicks),
    }


def _by_clicks(stock: Stock, held: AnsweredVisits, clicked: Shopping) -> float:
    """Share of clicks that met a copy in step with the truth."""
    if not len(clicked):
        return float("nan")
    fresh = fresh_at(stock, held, clicked.row, clicked.at)
    return float(np.average(fresh, weights=clicked.clicks))


def _kept(told: list[ShareView], truth: list[float]) -> dict[str, Any]:
    days = zip(told, truth, strict=True)
    known = [(d, true) for d, true in days if d.half_width is not None and not np.isnan(true)]
    half_widths = [day.half_width or 0.0 for day, _ in known]
    errors = [(day.freshness or 0.0) - true for day, true in known]
    return {
        "days": len(known),
        "held": sum((day.low or 0.0) <= true <= (day.high or 0.0) for day, true in known),
        "half_width": float(np.median(half_widths)) if known else None,
        "bias": float(np.mean(errors)) if known else None,
    }


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


# ------------------------------------------------------------------------------------------ charts


def _write_charts(
    path: Path, curves: Mapping[str, list[dict[str, Any]]], stock: Stock, crawled: _Crawled
) -> None:
    """How stale the copy was that people clicked on, and what the last policy saw of offers."""
    sheet = Sheet("Two crawls of one mall")
    sheet.chart(
        _staleness(curves),
        "Share of clicks that met a copy out of date, by half days of world time. Both crawls "
        "begin with nothing; both spend the same budget.",
    )
    sheet.heading("True prices, and visits")
    for row in _shown(stock, crawled):
        sheet.chart(_history(stock, crawled, row))
    sheet.write(path)


def _staleness(curves: Mapping[str, list[dict[str, Any]]]) -> Any:
    points = [{"policy": policy, **point} for policy, curve in curves.items() for point in curve]
    title = "clicks on a stale copy (square-root scale)"
    axis = {"format": "%", "values": [0, 0.01, 0.05, 0.1, 0.25, 0.5, 1]}
    chart = kit.plot(
        points,
        x=_TIME,
        y=kit.by("stale:Q", title=title, axis=axis, scale={"type": "sqrt"}),
        color=kit.colours("policy", list(curves), (kit.GREY, kit.BLUE, kit.ORANGE), title=None),
        tooltip=[kit.by("policy:N"), kit.by("at:T"), kit.tip("stale", ".1%")],
    )
    return chart.mark_line(point=True).properties(width=kit.WIDTH, height=300)


def _shown(stock: Stock, crawled: _Crawled) -> list[int]:
    """The offers that changed often, seldom and in between, of those there and visited."""
    start, end = instant(crawled.start), instant(crawled.end)
    inside = (stock.times > start) & (stock.times < end)
    changes = np.add.reduceat(inside.astype(np.int64), stock.offsets[:-1])
    copied = [held is not None for held in crawled.copies.held]
    there = stock.times[stock.offsets[:-1]] <= start
    changes[~(there & np.isin(np.arange(len(stock)), crawled.copies.rows[copied]))] = 0
    lively = np.flatnonzero(changes)
    ranked = lively[np.argsort(-changes[lively], kind="stable")]
    places = np.linspace(0, len(ranked) - 1, min(_SHOWN, len(ranked))).astype(np.int64)
    return list(ranked[places].tolist())


def _history(stock: Stock, crawled: _Crawled, row: int) -> Any:
    """The true prices of a page as a line, its visits as dots at the price then held."""
    page, copies = stock.pages[row], crawled.copies
    prices = [(at, _price(v)) for at, v in stock.history(row) if v and at < crawled.end]
    first = max(k for k, (at, _) in enumerate(prices) if at <= crawled.start)
    prices = [(max(at, crawled.start), price) for at, price in prices[first:]]
    mine = np.flatnonzero(copies.rows == row)
    earliest = next(held for k in mine if (held := copies.held[k]))
    prices.append((crawled.end, prices[-1][1]))
    truth = [{"at": at.isoformat(), "price": price} for at, price in prices]
    visits = [
        {
            "at": moment(copies.at[k]).isoformat(),
            "price": _price(copies.held[k] or earliest),
            "outcome": _OUTCOMES[copies.changed[k]],
        }
        for k in mine
    ]
    x = {**_TIME, "axis": {"format": "%d %b %H:%M", "tickCount": 8}}
    y = kit.by("price:Q", title="price", scale={**kit.FREE, "padding": 8})
    outcome = kit.colours("outcome", list(_OUTCOMES.values()), _COLOURS, title="visit")
    tips = [kit.by("at:T"), kit.by("price:Q"), kit.by("outcome:N")]
    line = kit.plot(truth, x=x, y=y).mark_line(interpolate="step-after", color="#30638e")
    dots = kit.plot(visits, x=x, y=y, color=outcome, tooltip=tips)
    both = line + dots.mark_point(filled=True, size=45, opacity=0.9)
    return both.properties(width=660, height=90, title=f"{page.title} ({page.currency})")


def _price(value: str) -> float:
    return float(value.split(" ", 1)[0])
