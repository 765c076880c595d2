"""How fresh the copy is, by an estimate with an interval; and the budget that a target needs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from salticus.config import Config
from salticus.crawl.opening import clock_of, stored
from salticus.crawl.standing import recalled
from salticus.freshness.drift import SPAN, drift_of
from salticus.freshness.estimate import Estimate, by_demand, by_pages
from salticus.freshness.target import Market, Needed, needed
from salticus.store.base import PageStore, Store
from salticus.types import Findings, Gauge, Pages
from salticus.views.times import iso

DAY = timedelta(days=1)
_SAMPLE = 50_000  # pages from which the budget of a target is found


async def freshness_of(config: Config, window: timedelta = DAY) -> dict[str, Any]:
    """The estimate over the last `window` that was crawled, and what it rests on."""
    async with stored(config) as store:
        end = await _last(config, store)
        start = end - round(window.total_seconds() * 1e6)
        ticks, found = await store.gauged(start, end)
        drift = drift_of(*await store.gauged(end - SPAN, end))
        told = report_of(ticks, found)
        if config.freshness_target is not None and ticks:
            told["target"] = await _target(config, store, by_demand(ticks, found))
    told |= {"from": iso(start), "to": iso(end)}
    told["found over foretold"] = round(drift.ratio, 3) if drift.visits else None
    return told


async def _last(config: Config, store: PageStore) -> int:
    """The end of the last tick that was crawled, or now (µs)."""
    now = int(clock_of(config).now().timestamp() * 1e6)
    last = (await store.summary()).last
    return now if last is None else min(now, last + round(config.tick.total_seconds() * 1e6))


def report_of(ticks: list[Gauge], found: Findings) -> dict[str, Any]:
    """The estimates by pages and by clicks, and the sample that they rest on."""
    visits = sum(tick.visits for tick in ticks)
    pages, coins = (sum(getattr(t, name) for t in ticks) for name in ("pages", "coins"))
    return {
        "pages": _told(by_pages(ticks, found)),
        "clicks": _told(by_demand(ticks, found)),
        "exploring visits": len(found),
        "of them failed": int(np.count_nonzero(np.isnan(found.found))),
        "share of the visits": round(len(found) / visits, 4) if visits else None,
        "share of pages by model only": round(1.0 - coins / pages, 4) if pages else None,
        "ticks": len(ticks),
    }


def _told(estimate: Estimate) -> dict[str, float | None]:
    """An estimate for machines; what is not known is null."""
    names = ("freshness", "low", "high", "half_width", "model")
    return {
        name: None if np.isnan(value := getattr(estimate, name)) else round(value, 4)
        for name in names
    }


def in_words(told: dict[str, Any]) -> str:
    """One line: both estimates.

    >>> in_words({"pages": {"freshness": 0.91, "half_width": 0.04}, "clicks": {"freshness": None}})
    'pages 91.0 % ± 4.0, clicks not known yet'
    """
    return ", ".join(f"{name} {_line(told[name])}" for name in ("pages", "clicks"))


def _line(estimate: dict[str, Any]) -> str:
    if estimate["freshness"] is None or estimate["half_width"] is None:
        return "not known yet"
    return f"{100 * estimate['freshness']:.1f} % ± {100 * estimate['half_width']:.1f}"


async def foreseen(config: Config, store: Store) -> tuple[Pages, list[str]]:
    """All pages with the curves that the crawl has learnt, and the names of their hosts."""
    standing = await recalled(config, store)
    standing.study()
    pages = standing.pages(standing.coming)
    curves = standing.parts.predictor.survival(pages, standing.coming.start)
    return replace(pages, survival=curves), standing.census.hosts


async def _target(config: Config, store: Store, estimate: Estimate) -> dict[str, Any]:
    """What the target needs, by the curves that the last run had learnt."""
    pages, hosts = await foreseen(config, store)
    target = config.freshness_target
    if target is None or not len(pages):
        return {}
    budget = config.per_day(len(pages), int(pages.found.sum()))
    delays = np.array([max(config.delay(host), 1e-3) for host in hosts])
    room = 86_400 / config.clock.speed / delays
    found = _needed(pages, room, (budget, estimate.freshness, float(target)), config.tick / DAY)
    return {
        "target": found.target,
        "budget": round(budget, 1),
        "needed": None if found.budget is None else round(found.budget, 1),
        "reachable": round(found.best, 4),
    }


def _needed(
    pages: Pages, room: np.ndarray[Any, Any], now: tuple[float, float, float], tick: float
) -> Needed:
    """From a sample of the pages, if they are many; hosts and budgets shrink with it."""
    step = -(-len(pages) // _SAMPLE)
    some = pages.take(np.arange(0, len(pages), step))
    part = len(some) / len(pages)
    assert some.survival is not None
    demand = some.demand if some.demand.any() else np.ones(len(some))
    market = Market(some.survival.rates(), demand, some.cost, some.host, room * part, tick)
    budget, freshness, target = now
    found = needed(market, budget * part, freshness, target)
    return Needed(target, None if found.budget is None else found.budget / part, found.best)


def target_in_words(found: dict[str, Any]) -> str:
    """What the target needs, in a sentence.

    >>> target_in_words({"target": 0.95, "budget": 100, "needed": None, "reachable": 0.9})
    '95 % of clicks is out of reach: 90.0 % at most, however large the budget is'
    """
    aim = f"{100 * found['target']:g} % of clicks"
    if found["needed"] is None:
        best = f"{100 * found['reachable']:.1f} % at most"
        return f"{aim} is out of reach: {best}, however large the budget is"
    return (
        f"{aim} needs about {found['needed']:,.0f} visits a day; there are {found['budget']:,.0f}"
    )


async def freshness_over_time(config: Config, window: timedelta) -> list[dict[str, Any]]:
    """The estimates of one window after the other, from the first tick kept to the last."""
    async with stored(config) as store:
        end = await _last(config, store)
        ticks, found = await store.gauged(0, end)
    step = round(window.total_seconds() * 1e6)
    first = ticks[0].at if ticks else end
    spans = [(at, at + step) for at in range(end - step, first - step, -step)][::-1]
    told = []
    for start, stop in spans:
        some = [tick for tick in ticks if start <= tick.at < stop]
        if some:
            part = found.take((found.at >= start) & (found.at < stop))
            told.append({"from": iso(start), "to": iso(stop), **report_of(some, part)})
    return told
