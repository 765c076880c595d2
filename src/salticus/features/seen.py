"""The events of a log as one who sees all, the log's own crawler, or coins would have seen them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from salticus.errors import InputError
from salticus.features.events import EventKind, Events, by_days, make_events
from salticus.features.tossed import tossed
from salticus.features.truths import LogTables, rowed, truths_of
from salticus.features.visited import visited
from salticus.types.dates import HOUR_US

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

_HOUR = timedelta(hours=1)


def pages_of(log: LogTables) -> pl.DataFrame:
    """The pages of a log in order of their ids: the row of a page is its place here."""
    return log.scan("pages").collect().unique("page_id", keep="first").sort("page_id")


def seen_events(
    log: LogTables, pages: pl.DataFrame, observe: str, *, seed: int = 0
) -> Iterator[Events]:
    """The events of each UTC day that has any, in order; demand included if the log has it.

    `observe` is "full" (the truth), "partial" (the answered visits of the log) or visits per page
    and day ("0.2", or "0.05-2" for each page its own), made by coins of the `seed` and seeing the
    truth. Where the log has values, births and
    ends are known from them to everyone, as a feed announces pages; else a page is born with its
    first answer.
    """
    demand = _demand(log, pages) if log.has("demand") else Events.none()
    return _by_days(_found(log, pages, observe, seed), demand)


def _found(log: LogTables, pages: pl.DataFrame, observe: str, seed: int) -> Iterator[Events]:
    """Events of pages in order, by whole UTC days."""
    truths = truths_of(log, pages) if log.has("values") else None
    if observe == "partial":
        yield from visited(log, pages, truths.lives() if truths is not None else None)
        return
    if truths is None:
        raise InputError(f"{log.path('values')}: no such file; only `partial` needs no truth")
    if observe == "full":
        yield truths.events()
    else:
        step = max(_HOUR, log.about.resolution or _HOUR) // _HOUR
        ends = log.about.ends()
        until = 0 if ends is None else int(ends[1].timestamp()) // 3600 + 1
        yield from tossed(truths, _rates(observe), step, seed=seed, until=until)


def _rates(observe: str) -> tuple[float, float]:
    """The lowest and the highest visits per page and day.

    >>> _rates("0.2"), _rates("0.05-2")
    ((0.2, 0.2), (0.05, 2.0))
    """
    low, _, high = observe.partition("-")
    try:
        rates = float(low), float(high or low)
    except ValueError:
        rates = 0.0, 0.0
    if not 0 < rates[0] <= rates[1] < float("inf"):
        raise InputError(
            f"observe: {observe!r} is not full, partial or visits per page and day (0.2, 0.05-2)"
        )
    return rates


def _demand(log: LogTables, pages: pl.DataFrame) -> Events:
    """Clicks and impressions, each bucket in its last hour."""
    import polars as pl

    bucket = (log.about.demand_bucket or timedelta(0)) // timedelta(microseconds=1)
    shown = pl.col("impressions") if "impressions" in log.columns("demand") else pl.lit(None)
    end = pl.col("at").dt.epoch("us") + bucket - (1 if bucket else 0)
    table = (
        rowed(pages, log.scan("demand"))
        .select(
            "row",
            hour=(end // HOUR_US).cast(pl.Int32),
            clicks=pl.col("clicks").cast(pl.Float32).fill_null(0.0),
            shown=shown.cast(pl.Float32).fill_null(np.nan),
        )
        .sort("hour", "row")
        .collect()
    )
    columns = {name: table[name].to_numpy() for name in table.columns}
    return make_events(
        EventKind.DEMAND, columns["hour"], columns["row"], columns["clicks"], columns["shown"]
    )


def _by_days(found: Iterator[Events], demand: Events) -> Iterator[Events]:
    """Events by days, each day with the demand that became known in it."""
    done = 0
    for events in found:
        if len(events):
            end = int(np.searchsorted(demand.hour, (events.hour[-1] // 24 + 1) * 24))
            yield from by_days(events.join(demand.take(np.arange(done, end))).ordered())
            done = end
    yield from by_days(demand.take(np.arange(done, len(demand))))
