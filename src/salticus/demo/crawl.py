"""The demo: crawl a mall of its own for a minute, then ask the mall how well it went."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np

from salticus.assemble import clock_of, crawler, stored
from salticus.config import Budget, Config, load
from salticus.demo.chart import write_chart
from salticus.demo.copies import Copies, read_copies
from salticus.demo.neighbour import neighbour_mall
from salticus.report.progress import Progress
from salticus.types import NewPage, Times, instant
from salticus.worlds.mall.access import read_entries
from salticus.worlds.mall.audit import Audit, Visits, audit, freshness_over
from salticus.worlds.mall.folder import Plot, paths
from salticus.worlds.mall.stock import Stock

PAGE = "histories.html"


@dataclass(frozen=True)
class Result:
    """What the crawl achieved, by the mall's own truth and access log."""

    pages: int
    days: float
    budget: float
    visits: int
    most_in_a_day: int
    changes_caught: int
    changes_true: int
    freshness: float
    unvisited: float
    audit: Audit

    def facts(self) -> dict[str, object]:
        """For people and for JSON."""
        return {
            "pages": self.pages,
            "world days": round(self.days, 2),
            "budget (visits a day)": self.budget,
            "visits": self.visits,
            "most visits in any day": self.most_in_a_day,
            "true changes": self.changes_true,
            "changes caught": self.changes_caught,
            "true freshness": round(self.freshness, 4),
            "freshness without revisits": round(self.unvisited, 4),
            "requests": self.audit.requests,
            "politeness violations": len(self.audit.breaches),
        }


async def run_demo(folder: Path, plot: Plot, *, seconds: float, budget: Budget) -> Result:
    """Open the mall, crawl it for `seconds` of wall time, close it, judge."""
    options = [f"--{key}={getattr(plot, key)}" for key in ("shops", "offers", "seed", "speed")]
    options += [f"--days={plot.days}", f"--delay={plot.delay}"]
    async with neighbour_mall(folder, options):
        config = msgspec.structs.replace(load(paths(folder)["settings"]), budget=budget)
        clock = clock_of(config)
        start = clock.now()
        await _add(config, paths(folder)["urls"].read_text("utf-8").split(), start)
        end = start + timedelta(seconds=seconds * plot.speed)
        async with crawler(config) as loop:
            with Progress() as progress:
                loop.watchers.append(progress)
                await loop.run(end)
    async with stored(config) as store:
        copies = read_copies(store, paths(folder)["urls"].read_text("utf-8").split())
    stock = plot.stock()
    write_chart(stock, copies, (start, end), folder / PAGE)
    access = audit(read_entries(paths(folder)["access"]), delay=plot.delay)
    return judge(stock, copies, (start, end), budget.per_day(len(stock)), access)


async def _add(config: Config, urls: list[str], at: datetime) -> None:
    async with stored(config) as store:
        await store.add([NewPage(url) for url in urls], at=int(at.timestamp() * 1e6))


def judge(
    stock: Stock, copies: Copies, span: tuple[datetime, datetime], budget: float, access: Audit
) -> Result:
    """Compare the copies with the mall's truth, over the second half of the time."""
    half = span[0] + (span[1] - span[0]) / 2
    visits = Visits(copies.rows, copies.at, copies.values)
    first = np.unique(copies.rows, return_index=True)[1]
    once = Visits(copies.rows[first], copies.at[first], [copies.values[i] for i in first])
    return Result(
        pages=len(stock),
        days=(span[1] - span[0]) / timedelta(days=1),
        budget=budget,
        visits=len(copies.visited_at),
        most_in_a_day=busiest_day(copies.visited_at),
        changes_caught=sum(changed is True for changed in copies.visited_changed),
        changes_true=_changes(stock, span),
        freshness=freshness_over(stock, visits, half, span[1]),
        unvisited=freshness_over(stock, once, half, span[1]),
        audit=access,
    )


def busiest_day(times: Times) -> int:
    """The most visits in any 24 hours."""
    times = np.sort(times)
    before = np.searchsorted(times, times - np.timedelta64(1, "D"), "right")
    return int((np.arange(len(times)) - before).max(initial=-1)) + 1


def _changes(stock: Stock, span: tuple[datetime, datetime]) -> int:
    return int(
        np.count_nonzero((stock.times > instant(span[0])) & (stock.times < instant(span[1])))
    )
