"""What the log's own crawler did: as a policy, and as the history that others start from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, times_of
from salticus.types import (
    CHANGED,
    UNCHANGED,
    UNKNOWN,
    Floats,
    Ints,
    Outcomes,
    Pages,
    Status,
    Times,
    instant,
)

_ANSWERED = ("ok", "not_modified")


class Logged:
    """Visits the pages that the log's crawler visited in the tick: "what I run now".

    The budget is the log's own. Several visits of a page within a tick are one.
    """

    spends = False

    def __init__(self, ids: Ints, at: Times) -> None:
        self.ids = ids
        self.at = at

    def expected(self, pages: Pages, visits: float) -> Floats:
        ends = (instant(pages.tick.start), instant(pages.tick.end))
        visited = self.ids[slice(*np.searchsorted(self.at, ends))]
        return np.isin(pages.ids, visited).astype(np.float64)

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing to learn."""


def logged_visits(log: Log, truth: Truth) -> Logged:
    """The policy that repeats the log's visits; InputError if it has none."""
    visits = _visits(log, truth)
    if not len(visits):
        raise InputError(f"{log.path('visits')}: no visits of these pages to replay")
    return Logged(truth.ids[visits["row"].to_numpy()], times_of(visits["at"]))


def logged_outcomes(log: Log, truth: Truth, start: datetime, end: datetime) -> Outcomes:
    """What the log's crawler had learnt of the pages by its visits from `start` to `end`."""
    visits = _visits(log, truth).with_columns(answered=_answered())
    visits = visits.with_columns(
        since=pl.when("answered").then("at").forward_fill().shift(1).over("row")
    ).filter(pl.col("at").is_between(start, end, closed="left"))
    told = pl.when("changed").then(CHANGED).otherwise(UNCHANGED)
    known = pl.col("answered") & pl.col("changed").is_not_null()
    changed = visits.select(pl.when(known).then(told).otherwise(UNKNOWN)).to_series()
    return Outcomes.known(
        page=truth.ids[visits["row"].to_numpy()],
        at=times_of(visits["at"]),
        status=np.where(visits["answered"], Status.OK, Status.TIMEOUT).astype(np.int8),
        changed=changed.to_numpy().astype(np.int8),
        since=times_of(visits["since"]),
    )


@dataclass(frozen=True, slots=True)
class CrawlerHistory:
    """What the log's crawler had learnt in the history, and the copies that it held at its end: the
    rows of their pages, the codes of their values, and when they were answered."""

    outcomes: Outcomes
    rows: Ints
    values: Ints
    at: Times


def logged_past(log: Log, truth: Truth, start: datetime, end: datetime) -> CrawlerHistory:
    """The past that a crawler with `--observe partial` starts from.

    Of each page it held the truth at its last answer.
    """
    visits = _visits(log, truth).filter(_answered() & (pl.col("at") < end))
    last = visits.group_by("row").agg(pl.col("at").max()).sort("at")
    points = pl.DataFrame({"row": truth.page, "at": truth.at, "value": truth.value})
    points = points.with_columns(pl.col("at").dt.replace_time_zone("UTC"))
    held = last.join_asof(points, on="at", by="row", check_sortedness=False).drop_nulls("value")
    return CrawlerHistory(
        logged_outcomes(log, truth, start, end),
        held["row"].to_numpy(),
        held["value"].to_numpy(),
        times_of(held["at"]),
    )


def _visits(log: Log, truth: Truth) -> pl.DataFrame:
    """All visits of the truth's pages in order of time: row, at, answered?, changed."""
    optional = [
        pl.col(name) if name in log.columns("visits") else pl.lit(None, kind).alias(name)
        for name, kind in (("status", pl.String), ("changed", pl.Boolean))
    ]
    return (
        log.scan("visits")
        .join(truth.rows(), on="page_id")
        .select("row", "at", *optional)
        .sort("at", "row")
        .collect()
    )


def _answered() -> pl.Expr:
    return pl.col("status").is_null() | pl.col("status").is_in(_ANSWERED)
