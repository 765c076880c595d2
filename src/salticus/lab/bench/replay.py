"""`salticus bench simulate`: page-ticks a second of the real loop, beside a bare NumPy loop."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from salticus import allocate
from salticus.config import Budget
from salticus.exchange.folder import Log
from salticus.exchange.write import write_log
from salticus.lab.bench import Told, answer, measured, peak
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import SimulationSettings, Stage, set_stage
from salticus.types import DAY, Floats, instant

START = datetime(2026, 1, 1, tzinfo=UTC)

SIZES = (10_000, 100_000, 1_000_000)
POLICIES = (*allocate.BUILTIN, "clairvoyant")
BARE = "bare NumPy, uniform"
_BUDGET = 0.1  # visits per page and day
_TICK = timedelta(hours=2)


def bench(
    *,
    sizes: Sequence[int] = SIZES,
    policies: Sequence[str] = POLICIES,
    days: int = 3,
    told: Told = lambda step: None,
) -> Iterator[dict[str, Any]]:
    """A row for each policy and number of pages, and for the bare loop, each in its own process.

    2 h ticks, 10 % budget, even spacing, rates lognormal around 0.08 changes a day (mean 0.25).
    """
    for pages in sizes:
        with tempfile.TemporaryDirectory() as folder:
            told(f"making a log of {pages:,} pages")
            rates = np.random.default_rng(1).lognormal(-2.5, 1.5, pages)
            poisson_log(Path(folder) / "log", rates, days, seed=1)
            bare = measured(BARE, "replay", BARE, folder, days)
            for policy in (BARE, *policies):
                told(f"{policy}, {pages:,} pages")
                got = bare if policy == BARE else measured(policy, "replay", policy, folder, days)
                rate = got["page_ticks"] / got["seconds"]
                yield {
                    "policy": policy,
                    "pages": pages,
                    "M page-ticks/s": round(rate / 1e6, 1),
                    "ns/page-tick": round(1e9 / rate, 1),
                    "x bare NumPy": round(rate * bare["seconds"] / bare["page_ticks"], 2),
                    "MB": round(got["bytes"] / 1e6),
                    "bytes/page": round((got["bytes"] - got["before"]) / pages),
                    "clicks fresh": round(got["fresh"], 4),
                }


def _contestant(policy: str, folder: Path, days: int) -> dict[str, float]:
    """One run; the seconds are those of the loop, without reading the log."""
    before = peak()
    none = timedelta(0)
    rules = SimulationSettings(start=START, history=none, warmup=none, days=days, tick=_TICK)
    stage = set_stage(Log(folder / "log"), rules)
    if policy == BARE:
        ticks, seconds, fresh = _bare(stage)
    else:
        score = run(stage, policy, Budget(_BUDGET, per_page=True))
        ticks, seconds, fresh = score.page_ticks, score.seconds, float(np.mean(score.clicks))
    found = {"page_ticks": ticks, "seconds": seconds, "fresh": fresh}
    return {**found, "before": before, "bytes": peak()}


def _bare(stage: Stage) -> tuple[int, float, float]:
    """The least that any simulator of uniform crawling must do, without budget or loop."""
    truth, n = stage.truth, len(stage.truth)
    weights = stage.readers.known(stage.start, n)[0]
    true, held = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    credit, share = np.random.default_rng(0).random(n), _BUDGET * (_TICK / timedelta(days=1))
    ticks = (stage.end - stage.crawl) // _TICK
    edges = instant(stage.crawl) + np.arange(ticks + 1) * np.timedelta64(_TICK)
    points = np.searchsorted(truth.at, edges)
    clicks, began = 0.0, time.perf_counter()
    for first, last in zip(points[:-1], points[1:], strict=True):
        true[truth.page[first:last]] = truth.value[first:last]
        credit += share
        rows = np.flatnonzero(credit >= 1.0)
        credit[rows] -= 1.0
        held[rows] = true[rows]
        clicks += float(weights[held == true].sum())
    seconds = time.perf_counter() - began
    return n * ticks, seconds, clicks / float(weights.sum()) / ticks


def poisson_log(folder: Path, rates: Floats, days: int, *, seed: int = 0) -> Log:
    """Write a log in which page i changes `rates[i]` times a day at random, always to a new value.

    Every page is born an hour before the start. Cost: linear in pages and changes.
    """
    rng = np.random.default_rng(seed)
    page = np.repeat(np.arange(len(rates)), rng.poisson(rates * days))
    at = instant(START) + (rng.random(len(page)) * days * DAY.astype(np.int64)).astype("m8[us]")
    born = np.full(len(rates), instant(START) - DAY // 24)
    pages = pl.DataFrame({"page_id": np.arange(len(rates))})
    values = pl.DataFrame(
        {
            "page_id": np.concatenate([pages["page_id"], page]),
            "at": pl.Series(np.concatenate([born, at])).dt.replace_time_zone("UTC"),
            "value": pl.int_range(len(rates) + len(page), eager=True).cast(pl.String),
        }
    )
    about = {
        "name": "poisson",
        "resolution": timedelta(seconds=1),
        "span": [START - timedelta(hours=1), START + timedelta(days=days)],
        "source": "drawn at random",
    }
    write_log(folder, {"pages": pages, "values": values.sort("page_id", "at")}, about)
    return Log(folder)


if __name__ == "__main__":
    name, where, length = sys.argv[1:]
    answer(_contestant(name, Path(where), int(length)))
