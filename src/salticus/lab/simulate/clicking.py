"""The clicks of a stage one by one: the log's requests, or drawn from what it counted."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, times_of
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.replay import ClickStream
from salticus.types import Bools, Floats, Ints, Tick, Times, instant

WINDOW = timedelta(hours=6)  # Han 2019, Figure 10


def clicks_of(stage: Stage) -> ClickStream:
    """The clicks from the start of the crawl on, in order of time.

    They are the requests of the log if it has any, unless the rules name other readers. Otherwise
    so many are drawn (Poisson) as the readers click on average, at random times of each tick.
    """
    if stage.log.has("requests") and stage.rules.demand in (None, "file"):
        rows, at = read_requests(stage.log, stage.truth, stage.crawl, stage.end)
    else:
        rows, at = _drawn(stage)
    true, _ = true_values(stage.truth, rows, at, stage.crawl)
    clicks = ClickStream(rows, at, true)
    return clicks.take(np.lexsort((clicks.page, clicks.at)))


def read_requests(log: Log, truth: Truth, start: datetime, end: datetime) -> tuple[Ints, Times]:
    """The requests of a log from `start` to before `end`, by page and time: rows and times.

    InputError names the table if it is absent. Requests before the birth of their page are left
    out: there is no copy to judge.
    """
    if not log.has("requests"):
        raise InputError(f"{log.path('requests')}: no such file; there is no request to replay")
    asked = (
        log.scan("requests")
        .filter(pl.col("at").is_between(start, end, closed="left"))
        .join(truth.rows(), on="page_id")
        .select("row", "at")
        .sort("row", "at")
        .collect()
    )
    return _born(truth, asked["row"].to_numpy().astype(np.int64), times_of(asked["at"]))


def true_values(truth: Truth, rows: Ints, times: Times, start: datetime) -> tuple[Ints, Ints]:
    """The true value at each request, and of each page at `start` or its birth if that is later:
    that of the last change point before it, or at the same time."""
    points = pl.DataFrame({"row": truth.page, "at": truth.at, "value": truth.value})

    def value_at(row: Ints, at: Times) -> Ints:
        asked = pl.DataFrame({"row": row, "at": at}).with_row_index("number").sort("at")
        found = asked.join_asof(points, on="at", by="row", check_sortedness=False)
        return found.sort("number")["value"].to_numpy()

    made = np.maximum(truth.born, instant(start))
    return value_at(rows, times), value_at(np.arange(len(truth)), made)


def by_window(at: Times, fresh: Bools, start: datetime, end: datetime) -> Floats:
    """The share of clicks that found a fresh copy in every 6 h; NaN where nobody clicked."""
    windows = -(-(end - start) // WINDOW)
    window = ((at - instant(start)) // np.timedelta64(WINDOW)).astype(np.int64)
    asked = np.bincount(window, minlength=windows)
    happy = np.bincount(window, weights=fresh, minlength=windows)
    return happy / np.where(asked > 0, asked, np.nan)


def _born(truth: Truth, rows: Ints, at: Times) -> tuple[Ints, Times]:
    born = truth.born[rows] <= at
    return rows[born], at[born]


def _drawn(stage: Stage) -> tuple[Ints, Times]:
    length, found = stage.rules.tick, []
    for number in range(-(-(stage.end - stage.crawl) // length)):
        start = stage.crawl + number * length
        rng = np.random.default_rng([stage.seed, number])
        rows, mean = stage.readers.clicks(Tick(number, start, start + length))
        rows = rows.repeat(rng.poisson(mean))
        past = rng.random(len(rows)) * np.timedelta64(length).astype(np.int64)
        found.append((rows, instant(start) + past.astype("m8[us]")))
    rows, at = (np.concatenate(column) for column in zip(*found, strict=True))
    return _born(stage.truth, rows, at)
