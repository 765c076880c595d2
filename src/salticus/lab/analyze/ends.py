"""Merchants of whom nothing more is heard long before the log ends.

A log of values cannot tell a price that stayed from a crawl that stopped. Where a merchant's pages
kept changing and then, all of them, never again, the crawl has stopped: counting on would dilute
every probability with downloads that nobody made.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from salticus.lab.analyze.pages import AnalyzedPages
from salticus.types import Ints
from salticus.types.dates import DAY_US

if TYPE_CHECKING:
    import polars as pl

_PAGES = 10  # fewer may well fall silent together
_CHANCE = 1e-9  # of such a silence if the merchant had gone on as before


@dataclass(frozen=True, slots=True)
class Ended:
    """A merchant (or host): its pages, when its record ends (µs), and a sentence on it."""

    rows: Ints
    until: int
    said: str


def ended(
    points: pl.DataFrame, known: AnalyzedPages, end: int, step: timedelta
) -> dict[str, Ended]:
    """Who fell silent for good: with the share f of days that brought news before, a silence of k
    days has a chance of (1 − f)^k, and that is below 1e-9."""
    import polars as pl

    names = [pl.col(c) for c in ("merchant", "host") if known.has(c)]
    if not names or points.is_empty():
        return {}
    who = known.frame.select("row", name=pl.coalesce(names))
    day = max(DAY_US, step // timedelta(microseconds=1))
    lives = (
        points.lazy()
        .join(who.lazy(), on="row")
        .drop_nulls("name")
        .group_by("name")
        .agg(
            first=pl.col("at").min() // day,
            last=pl.col("at").max() // day,
            active=(pl.col("at") // day).n_unique(),
            pages=pl.col("row").n_unique(),
        )
        .collect()
    )
    busy = pl.col("active") / (pl.col("last") - pl.col("first") + 1)
    silent = (end - 1) // day - pl.col("last")
    gone = (pl.col("pages") >= _PAGES) & (silent * (1 - busy).log() < np.log(_CHANCE))
    found = lives.with_columns(silent=silent).filter(gone & (pl.col("silent") > 0)).sort("name")
    return {life["name"]: _ended(life, who, day) for life in found.to_dicts()}


def _ended(life: dict[str, int | str], who: pl.DataFrame, day: int) -> Ended:
    import polars as pl

    until = (int(life["last"]) + 1) * day
    rows = who.filter(pl.col("name") == life["name"])["row"].to_numpy()
    date = np.datetime64(until - 1, "us").astype("datetime64[D]")
    said = (
        f"nothing is heard of {life['name']} ({life['pages']:,} pages) after {date}, "
        f"{life['silent']} days before the log ends: its crawl is taken to have stopped then"
    )
    return Ended(rows, until, said)
