"""`salticus bench tick`: what one tick costs a crawl, from the store to the plan and back."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import polars as pl

from salticus.config import Budget, Config, Fetch, Models
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import open_crawl, stored
from salticus.features.metadata import Vocabulary
from salticus.features.names import all_names
from salticus.lab.bench import Told, answer, measured, new_peak, peak
from salticus.models.file import Saved, save_model
from salticus.models.file import asked as model_inputs
from salticus.models.linear import LinearModel
from salticus.models.model import Calibrated, Curve
from salticus.models.registry import Registry
from salticus.predict.serving import Serving
from salticus.types import Count, Ints, NewPage, Observation, Tick
from salticus.types.coins import coins
from salticus.types.dates import DAY_US
from salticus.views.fresh import fresh

SIZES = (10_000, 100_000, 1_000_000)
START = datetime(2026, 1, 10, tzinfo=UTC)
_HOSTS = 1000
_TICK = timedelta(hours=2)
_ROUNDS = 3
_BEAT_S = 0.002
_ASKED = 9
_CHUNK = 50_000

T = TypeVar("T")


def bench(
    *, sizes: Sequence[int] = SIZES, told: Told = lambda step: None
) -> Iterator[dict[str, Any]]:
    """A row for each number of pages: a real store with two visits and some clicks a page, and the
    loop of `salticus run` with leap on a budget of 10 %, in a process of its own.

    The columns are explained in docs/reference/cli.md. The plan at which a model takes over is long
    because its features are made from the history; `fresh ms` is how long `fresh` takes for 100
    pages on a crawl that is kept open.
    """
    for pages in sizes:
        with TemporaryDirectory(prefix="salticus-bench-") as folder:
            told(f"{pages:,} pages: filling the store")
            asyncio.run(fill_store(Path(folder), pages))
            told(f"{pages:,} pages: planning")
            first, again, asked, model = (
                measured("tick", "tick", folder, how) for how in ("learn", "recall", "ask", "model")
            )
        yield {
            "pages": pages,
            "plan s": round(first["plan"], 3),
            "us/page": round(1e6 * first["plan"] / pages, 2),
            "visits": round(first["visits"]),
            "first s": round(first["first"], 2),
            "save s": round(first["save"], 2),
            "MB saved": round(first["saved"] / 1e6, 1),
            "restart s": round(again["first"], 2),
            "stall ms": round(first["first_stall"] * 1e3),
            "later ms": round(first["stall"] * 1e3),
            "model s": round(model["plan"], 1),
            "model ms": round(model["stall"] * 1e3),
            "fresh ms": round(1e3 * asked["fresh"], 1),
            "MB": round(max(first["bytes"], again["bytes"]) / 1e6),
        }


def crawl_config(folder: Path) -> Config:
    """The settings of a crawl whose store and models are in a folder."""
    return Config(
        store=str(folder / "salticus.db"),
        budget=Budget.parse("10%"),
        policy="leap",
        fetch=Fetch(contact="bench@example.org"),
        folder=str(folder),
        models=Models(path=str(folder / "models")),
    )


# ------------------------------------------------------------------------------------- the store


async def fill_store(folder: Path, pages: int) -> None:
    """Pages of a thousand hosts, two visits each within ten days, clicks on every fifth."""
    chunks = range(0, pages, _CHUNK)
    async with stored(crawl_config(folder)) as store:
        await store.load(
            ([NewPage(_url(k)) for k in range(low, min(pages, low + _CHUNK))] for low in chunks),
            lambda ids: (_visits(ids, number) for number in range(2)),
            at=_at(0.0),
            most=2 * pages,
        )
        for low in chunks:
            clicked = range(low, min(pages, low + _CHUNK), 5)
            await store.count([Count(_url(k), _at(9.0), 1 + k % 3, 20) for k in clicked])


def _url(k: int) -> str:
    return f"http://shop{k % _HOSTS}.example/offer/{k}"


def _at(days: float) -> int:
    """µs, so many days into the ten before the first tick."""
    return int((START - timedelta(days=10 - days)).timestamp() * 1e6)


def _visits(ids: Ints, number: int) -> list[Observation]:
    """The first answer of each page, or a second one that may have found a change."""
    chance, found = coins(1, ids, number), coins(2, ids, number)
    first = _at(0.0) + (coins(1, ids, 0) * 4 * DAY_US).astype(np.int64)
    at = first if number == 0 else first + ((1 + 4 * chance) * DAY_US).astype(np.int64)
    columns = (column.tolist() for column in (ids, at, found < 0.3, first))
    return [
        Observation(
            visit=0,
            page=page,
            at=when,
            purpose="policy",
            propensity=1.0,
            status="ok",
            changed=None if number == 0 else new,
            since=None if number == 0 else before,
        )
        for page, when, new, before in zip(*columns, strict=True)
    ]


# ------------------------------------------------------------------------------------- the ticks


async def _plan(folder: Path, how: str) -> dict[str, float]:
    new_peak()  # a process begins with that of its parent
    began = time.perf_counter()
    async with crawler(crawl_config(folder)) as loop:
        if how == "recall":
            await loop.snapshot.recall()
        async with watchdog() as first_stall:
            await loop.plan(crawl_tick(0))
        first = time.perf_counter() - began
        if how == "recall":
            return {"first": first, "bytes": peak()}
        keeper, visits = loop.snapshot.keeper, 2 * len(await loop.world.pages(crawl_tick(0)))
        assert keeper is not None
        for low in range(-visits, 0, _CHUNK):  # the predictor learns what is stored, as on import
            numbers = np.arange(low, min(0, low + _CHUNK))
            loop.parts.predictor.learn(await keeper.outcomes(numbers))
        # timed without the watchdog, whose 500 beats a second take a seventh of a short plan
        seconds = median(
            [(await _timed(loop.plan(crawl_tick(number))))[0] for number in range(1, _ROUNDS + 1)]
        )
        async with watchdog() as stall:
            plan = await loop.plan(crawl_tick(_ROUNDS + 1))
            save, _ = await _timed(loop.snapshot.save(plan))
        saved = len(await keeper.recall() or b"")
        facts = {"first": first, "plan": seconds, "visits": len(plan), "save": save}
        facts |= {"first_stall": max(first_stall), "stall": max(stall)}
        return {**facts, "saved": saved, "bytes": peak()}


async def _timed(work: Awaitable[T]) -> tuple[float, T]:
    """The wall seconds that it takes, and what comes of it."""
    start = time.perf_counter()
    found = await work
    return time.perf_counter() - start, found


@asynccontextmanager
async def watchdog() -> AsyncIterator[list[float]]:
    """For how long the event loop stood still meanwhile, again and again, wall seconds."""
    stalls = [0.0]

    async def beat() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(_BEAT_S)
            stalls.append(time.perf_counter() - start - _BEAT_S)

    beating = asyncio.create_task(beat())
    try:
        yield stalls
        await asyncio.sleep(2 * _BEAT_S)  # for the last stall to be noticed
    finally:
        beating.cancel()


async def _take_over(folder: Path) -> dict[str, float]:
    """A plan at which a model begins to serve: its wall seconds, and the longest stall in it."""
    config = crawl_config(folder)
    async with crawler(config) as loop:
        await loop.plan(crawl_tick(0))
        registry = Registry(Path(config.models.path))
        save_model(registry.path(1), _a_model())
        registry.pin(1, START)
        async with watchdog() as stall:
            seconds, _ = await _timed(loop.plan(crawl_tick(1)))
        assert isinstance(loop.parts.predictor, Serving)
        assert loop.parts.predictor.version_ == 1
    return {"plan": seconds, "stall": max(stall)}


def _a_model() -> Saved:
    """The smallest model that may serve: log-odds in a line with a page's changes in a month."""
    edges, words = (6, 24), Vocabulary((), {})
    slope = np.full((len(edges), 1), 0.6)
    line = LinearModel("page_month", edges, slope, -slope, np.array([-0.5, 0.5]), np.empty(0))
    inputs = model_inputs(all_names(edges), 0, words.encode(pl.DataFrame({"brand": ["x"]})))
    about = {"task": "change", "edges": list(edges), "inputs": inputs}
    judged = Calibrated(line, (Curve(), Curve()))
    return Saved(judged, (words.settings(), words.arrays()), about)


async def _ask(folder: Path) -> dict[str, float]:
    """Seconds that an open crawl takes to say how fresh 100 copies are; the median of several."""
    async with open_crawl(crawl_config(folder)) as crawl:
        pages = (await crawl.store.summary()).pages
        seconds = []
        for k in range(_ASKED + 1):
            urls = [_url(page) for page in range(k, pages, max(1, pages // 100))][:100]
            seconds.append((await _timed(fresh(crawl, urls)))[0])
    return {"fresh": median(seconds[1:])}


def crawl_tick(number: int) -> Tick:
    """A tick, counted from the one after the store was filled."""
    return Tick(number, START + number * _TICK, START + (number + 1) * _TICK)


if __name__ == "__main__":
    place, how = Path(sys.argv[1]), sys.argv[2]
    work = {"ask": _ask, "model": _take_over}.get(how)
    answer(asyncio.run(work(place) if work else _plan(place, how)))
