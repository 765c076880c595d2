"""Shoppers: they search the crawler's copy and click there, when the log says that people did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.truth import times_of
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import Stock
from salticus.types import Columns, Ints, Times, instant
from salticus.types.coins import coins
from salticus.types.dates import DAY_US
from salticus.types.frames import pl

_STEP_S = 0.05  # wall seconds in which shoppers who come are sent together
_SEARCHING = 50  # the clicks on one page in so many are searched for first
_STREAM = 23  # so that shoppers and shops of one seed share no random numbers
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
    columns = pl.Schema({"page_id": pl.String(), "at": pl.Datetime("us", "UTC")})
    columns |= {"clicks": pl.Int64(), "impressions": pl.Int64()}
    parts = [pl.DataFrame(schema=columns)]
    if log.has("requests"):
        asked = log.scan("requests").select("page_id", "at", clicks=1, impressions=0)
        parts.append(asked.collect())
    if log.has("demand"):
        parts.append(_spread(log, with_clicks=not log.has("requests"), seed=seed))
    every = pl.concat([part.cast(columns) for part in parts])
    rows = np.array([row_of.get(page, -1) for page in every["page_id"]], dtype=np.int64)
    counts = every["clicks"].to_numpy(), every["impressions"].to_numpy()
    found = Shopping(rows, times_of(every["at"]), *counts).take(rows >= 0)
    return found.take(np.argsort(found.at, kind="stable"))


def _spread(log: Log, *, with_clicks: bool, seed: int) -> pl.DataFrame:
    """The counts of each page and bucket, at a time within it that is a hash."""
    table = log.scan("demand").collect()
    bucket = log.about.demand_bucket or timedelta(days=1)
    place = coins(seed, np.arange(len(table)), 0) * (bucket / timedelta(microseconds=1))
    return table.select(
        "page_id",
        pl.col("at") + pl.Series(place.astype("m8[us]")),
        clicks="clicks" if with_clicks else 0,
        impressions="impressions" if "impressions" in table.columns else 0,
    )


def made_shopping(
    stock: Stock, clicks: float, start: datetime, days: float, *, seed: int = 0
) -> Shopping:
    """So many clicks a day on the pages of a stock, from `start` on, at any hour alike. The rates
    of pages differ, by a factor of e as a rule. The same arguments give the same clicks."""
    rng = np.random.default_rng([seed, _STREAM])
    share = rng.lognormal(0.0, 1.0, len(stock))
    many = rng.poisson(clicks * days * share / share.sum())
    row = np.repeat(np.arange(len(stock)), many)
    at = instant(start) + (rng.random(len(row)) * days * DAY_US).astype("m8[us]")
    return Shopping(row, at, row**0, row * 0).take(np.argsort(at, kind="stable"))


async def go_shopping(shopping: Shopping, mall: Mall, desk: str) -> None:
    """Search and click at `desk` (``host:port``) from now on as time goes by, until cancelled;
    closed doors are passed by."""
    done = mall.clock.now()
    async with aiohttp.ClientSession(f"http://{desk}", timeout=_PATIENCE) as session:
        while True:
            await asyncio.sleep(_STEP_S)
            now = mall.clock.now()
            with suppress(aiohttp.ClientError, TimeoutError):  # nobody is at the desk
                for method, path, more in _asked(mall, shopping.between(done, now)):
                    async with session.request(method, path, **more) as answer:
                        await answer.read()
            done = now


def _asked(mall: Mall, some: Shopping) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Some of those who click search for the page by its title first, and go there whether it was
    found or known by heart; the others come straight to it."""
    clicks = np.flatnonzero(some.clicks > 0)
    searching = clicks[some.row[clicks] % _SEARCHING == 0]
    others = some.take(np.setdiff1d(np.arange(len(some)), searching))
    columns = (others.row.tolist(), others.clicks.tolist(), others.impressions.tolist())
    rows = [
        {"url": mall.urls[row], "clicks": often, "impressions": shown}
        for row, often, shown in zip(*columns, strict=True)
    ]
    if rows:
        yield "POST", "/clicks", {"json": rows}
    for row in some.row[searching].tolist():
        yield "GET", "/search", {"params": {"q": mall.stock.pages[row].title}}
        yield "GET", "/go", {"params": {"url": mall.urls[row]}, "allow_redirects": False}
