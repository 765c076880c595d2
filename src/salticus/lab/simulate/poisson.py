"""A log of pages that change at random: for tests against theory, and for measuring speed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.tables import write_log
from salticus.types import DAY, Floats, instant

START = datetime(2026, 1, 1, tzinfo=UTC)


def poisson_log(folder: Path, rates: Floats, days: int, *, seed: int = 0) -> Log:
    """Write a log in which page i changes `rates[i]` times a day at random, always to a new value.

    Every page is born an hour before the start. Cost: linear in pages and changes.
    """
    import polars as pl

    rng = np.random.default_rng(seed)
    page = np.repeat(np.arange(len(rates)), rng.poisson(rates * days))
    at = instant(START) + (rng.random(len(page)) * days * DAY.astype(np.int64)).astype("m8[us]")
    born = np.full(len(rates), instant(START) - DAY // 24)
    values = pl.DataFrame(
        {
            "page_id": np.concatenate([np.arange(len(rates)), page]),
            "at": np.concatenate([born, at]),
            "value": np.arange(len(rates) + len(page)),
        }
    ).sort("page_id", "at")
    values = values.with_columns(
        pl.col("at").dt.replace_time_zone("UTC"), pl.col("value").cast(pl.String)
    )
    write_log(
        folder,
        {"pages": pl.DataFrame({"page_id": np.arange(len(rates))}), "values": values},
        {
            "name": "poisson",
            "resolution": timedelta(seconds=1),
            "span": [START - timedelta(hours=1), START + timedelta(days=days)],
            "source": "drawn at random",
        },
    )
    return Log(folder)
