"""How fresh the copy is, by an estimate with an interval; and the budget that a target needs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.freshness.estimate import (
    SPAN,
    Estimate,
    Market,
    by_demand,
    by_pages,
    drift_of,
    needed,
)
from salticus.types import Findings, Gauge, Pages
from salticus.views.times import moment, spaced

DAY = timedelta(days=1)
_SAMPLE = 50_000  # pages from which the budget of a target is found
_MICRO = timedelta(microseconds=1)


class ShareView(msgspec.Struct, frozen=True):
    """A freshness with its interval, and the word of the predictor alone; None = not known."""

    freshness: float | None
    low: float | None
    high: float | None
    half_width: float | None
    model: float | None

    def words(self) -> str:
        """For people.

        >>> ShareView(0.91, 0.87, 0.95, 0.04, 0.9).words()
        '91.0 % ± 4.0'
        """
        return percent_within(self.freshness, self.half_width)


class TargetView(msgspec.Struct, frozen=True):
    """A share of clicks to be fresh, the visits a day that there are and that it needs (None = no
    budget is enough), and what the largest budget would reach."""

    target: float
    budget: float
    needed: float | None
    reachable: float

    def words(self) -> str:
        """In a sentence.

        >>> TargetView(0.95, 100, None, 0.9).words()
        '95 % of clicks is out of reach: 90.0 % at most, however large the budget is'
        """
        aim = f"{100 * self.target:g} % of clicks"
        if self.needed is None:
            best = f"{100 * self.reachable:.1f} % at most"
            return f"{aim} is out of reach: {best}, however large the budget is"
        return f"{aim} needs about {self.needed:,.0f} visits a day; there are {self.budget:,.0f}"


class Freshness(
    msgspec.Struct,
    frozen=True,
    rename=spaced(
        failed="of them failed",
        share_of_visits="share of the visits",
        by_model_only="share of pages by model only",
        start="from",
        end="to",
    ),
):
    """How fresh the copy was from `start` to `end`, and the sample that this rests on."""

    pages: ShareView
    clicks: ShareView
    exploring_visits: int
    failed: int
    share_of_visits: float | None
    by_model_only: float | None
    ticks: int
    start: datetime
    end: datetime
    found_over_foretold: float | None | msgspec.UnsetType = msgspec.UNSET
    target: TargetView | msgspec.UnsetType = msgspec.UNSET

    def words(self) -> str:
        """One line: both estimates."""
        return f"pages {self.pages.words()}, clicks {self.clicks.words()}"


async def freshness(crawl: Crawl, window: timedelta = DAY) -> Freshness:
    """The estimate over the last `window` that was crawled, and what it rests on."""
    end = await _last(crawl)
    start = end - window // _MICRO
    ticks, found = await crawl.store.gauged(start, end)
    drift = drift_of(*await crawl.store.gauged(end - SPAN, end))
    told = msgspec.structs.replace(
        estimate_of(ticks, found, start, end),
        found_over_foretold=round(drift.ratio, 3) if drift.visits else None,
    )
    if crawl.config.freshness_target is None or not ticks:
        return told
    target = await _target(crawl, by_demand(ticks, found), float(crawl.config.freshness_target))
    return msgspec.structs.replace(told, target=msgspec.UNSET if target is None else target)


async def freshness_over_time(crawl: Crawl, window: timedelta = DAY) -> list[Freshness]:
    """The estimates of one window after the other, from the first tick kept to the last."""
    end = await _last(crawl)
    ticks, found = await crawl.store.gauged(0, end)
    step = window // _MICRO
    first = ticks[0].at if ticks else end
    told = []
    for start in range(end - step, first - step, -step):
        some = [tick for tick in ticks if start <= tick.at < start + step]
        if some:
            part = found.take((found.at >= start) & (found.at < start + step))
            told.append(estimate_of(some, part, start, start + step))
    return told[::-1]


async def _last(crawl: Crawl) -> int:
    """The end of the last tick that was crawled, or now (µs)."""
    last = (await crawl.store.summary()).last
    now = crawl.micros
    return now if last is None else min(now, last + crawl.config.tick // _MICRO)


def estimate_of(ticks: list[Gauge], found: Findings, start: int, end: int) -> Freshness:
    """The estimates by pages and by clicks, and the sample that they rest on."""
    visits = sum(tick.visits for tick in ticks)
    pages, coins = sum(tick.pages for tick in ticks), sum(tick.coins for tick in ticks)
    return Freshness(
        pages=_share(by_pages(ticks, found)),
        clicks=_share(by_demand(ticks, found)),
        exploring_visits=len(found),
        failed=int(np.count_nonzero(np.isnan(found.found))),
        share_of_visits=round(len(found) / visits, 4) if visits else None,
        by_model_only=round(1.0 - coins / pages, 4) if pages else None,
        ticks=len(ticks),
        start=moment(start),
        end=moment(end),
    )


def _share(estimate: Estimate) -> ShareView:
    names = ShareView.__struct_fields__
    values = (getattr(estimate, name) for name in names)
    return ShareView(*(None if np.isnan(value) else round(value, 4) for value in values))


def percent_within(share: float | None, half_width: float | None) -> str:
    """A share and its interval for people.

    >>> percent_within(0.91, 0.04), percent_within(None, None)
    ('91.0 % ± 4.0', 'not known yet')
    """
    if share is None or half_width is None:
        return "not known yet"
    return f"{100 * share:.1f} % ± {100 * half_width:.1f}"


async def foreseen(crawl: Crawl) -> tuple[Pages, list[str]]:
    """All pages with the curves that the crawl has learnt, and the names of their hosts."""
    standing = await crawl.foreseeing()
    standing.study()
    pages = standing.pages(standing.coming)
    curves = standing.parts.predictor.survival(pages, standing.coming.start)
    return replace(pages, survival=curves), standing.census.hosts


async def _target(crawl: Crawl, estimate: Estimate, target: float) -> TargetView | None:
    """What the target needs, by the curves that the last run had learnt. If there are many pages, a
    sample of them is looked at; hosts and budgets shrink with it."""
    pages, hosts = await foreseen(crawl)
    if not len(pages):
        return None
    config = crawl.config
    budget = config.per_day(len(pages), int(pages.found.sum()))
    delays = np.array([max(config.delay(host), 1e-3) for host in hosts])
    some = pages.take(np.arange(0, len(pages), -(-len(pages) // _SAMPLE)))
    part = len(some) / len(pages)
    room = 86_400 / config.clock.speed / delays * part
    assert some.survival is not None
    demand = some.demand if some.demand.any() else np.ones(len(some))
    rates, tick = some.survival.rates(), config.tick / DAY
    market = Market(rates, demand, some.cost, some.host, room, tick)
    found = needed(market, budget * part, estimate.freshness, target)
    return TargetView(
        target=target,
        budget=round(budget, 1),
        needed=None if found.budget is None else round(found.budget / part, 1),
        reachable=round(found.best, 4),
    )
