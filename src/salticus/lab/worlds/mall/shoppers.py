"""Shoppers: they search the crawler's copy and click there, when the log says that people did."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.truth import times_of
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import Stock
from salticus.types import Columns, Ints, Times, instant
from salticus.types.coins import coins

if TYPE_CHECKING:
    import polars as pl

_STEP_S = 0.2  # wall seconds in which shoppers who come are sent together
_SEARCHING = 50  # the clicks on one page in so many are searched for first
_PATIENCE = aiohttp.ClientTimeout(total=10)


@dataclass(frozen=True, slots=True)
class Shopping(Columns):
    """What people do, in order of time: of which page (its row in the stock), when, how often."""

    row: Ints
    at: Times
    clicks: Ints
    impressions: Ints

    def between(self, start: datetime, end: datetime) -> Shopping:
        """What happens from `start` until before `end`."""
        low, high = np.searchsorted(self.at, [instant(start), instant(end)])
        return self.take(np.arange(low, high))


def shopping_of(folder: Path, stock: Stock, *, seed: int = 0) -> Shopping:
    """The clicks and impressions of a log: requests as they came, the rest spread over its bucket.

    Clicks are the log's requests if it has them, else those of its demand. Nothing if it has
    neither.
    """
    log, row_of = Log(folder), {page.page_id: row for row, page in enumerate(stock.pages)}
    parts = [_none()]
    if log.has("requests"):
        table = log.scan("requests").select("page_id", "at").collect()
        parts.append(_part(table, row_of, clicks=np.ones(len(table), dtype=np.int64)))
    if log.has("demand"):
        parts.append(_spread(log, row_of, with_clicks=not log.has("requests"), seed=seed))
    every = parts[0]
    for part in parts[1:]:
        every = every.join(part)
    return every.take(np.argsort(every.at, kind="stable"))


def _spread(log: Log, row_of: dict[str, int], *, with_clicks: bool, seed: int) -> Shopping:
    """The counts of each page and bucket, at a time within it that is a hash."""
    table = log.scan("demand").collect()
    bucket = log.about.demand_bucket or timedelta(days=1)
    place = coins(seed, np.arange(len(table)), 0) * (bucket / timedelta(microseconds=1))
    none = np.zeros(len(table), dtype=np.int64)
    clicks = table["clicks"].to_numpy().astype(np.int64) if with_clicks else none
    shown = table["impressions"].to_numpy() if "impressions" in table.columns else none
    part = _part(table, row_of, clicks=clicks, impressions=shown.astype(np.int64))
    known = np.array([str(page) in row_of for page in table["page_id"]], dtype=np.bool_)
    at = part.at + place[known].astype("m8[us]")
    return Shopping(part.row, at, part.clicks, part.impressions)


def _part(
    table: pl.DataFrame, row_of: dict[str, int], *, clicks: Ints, impressions: Ints | None = None
) -> Shopping:
    rows = np.array([row_of.get(str(page), -1) for page in table["page_id"]], dtype=np.int64)
    shown = np.zeros(len(rows), dtype=np.int64) if impressions is None else impressions
    return Shopping(rows, times_of(table["at"]), clicks, shown).take(rows >= 0)


def _none() -> Shopping:
    none = np.empty(0, dtype=np.int64)
    return Shopping(none, none.view("M8[us]"), none, none)


@dataclass
class Shoppers:
    """People who use the copy at `desk` (``host:port``) from now on, as long as anyone is there."""

    shopping: Shopping
    mall: Mall
    desk: str

    async def shop(self) -> None:
        """Search and click as time goes by, until cancelled; closed doors are passed by."""
        done = self.mall.clock.now()
        async with aiohttp.ClientSession(timeout=_PATIENCE) as session:
            while True:
                await asyncio.sleep(_STEP_S)
                now = self.mall.clock.now()
                await self._send(session, self.shopping.between(done, now))
                done = now

    async def _send(self, session: aiohttp.ClientSession, some: Shopping) -> None:
        """Some of those who click search first; the others come straight to the page."""
        clicks = np.flatnonzero(some.clicks > 0)
        searching = clicks[some.row[clicks] % _SEARCHING == 0]
        others = some.take(np.setdiff1d(np.arange(len(some)), searching))
        try:
            if len(others):
                await self._post(session, others)
            for row in some.row[searching].tolist():
                await self._search(session, row)
        except (aiohttp.ClientError, TimeoutError):
            return  # nobody is at the desk yet, or any more

    async def _post(self, session: aiohttp.ClientSession, some: Shopping) -> None:
        columns = (some.row.tolist(), some.clicks.tolist(), some.impressions.tolist())
        rows = [
            {"url": self.mall.urls[row], "clicks": clicks, "impressions": shown}
            for row, clicks, shown in zip(*columns, strict=True)
        ]
        async with session.post(f"http://{self.desk}/clicks", json=rows) as answer:
            await answer.read()

    async def _search(self, session: aiohttp.ClientSession, row: int) -> None:
        """Look for a page by its title, and go there, whether it was found or known by heart."""
        asked = {"q": self.mall.stock.pages[row].title}
        async with session.get(f"http://{self.desk}/search", params=asked) as answer:
            await answer.read()
        there = {"url": self.mall.urls[row]}
        go = session.get(f"http://{self.desk}/go", params=there, allow_redirects=False)
        async with go as answer:
            await answer.read()
