"""The events of a log as one who sees all, the log's own crawler, or coins would have seen them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import numpy as np

from salticus.errors import InputError
from salticus.features.events import (
    Answered,
    Crawler,
    EventKind,
    Events,
    among,
    by_days,
    log_ratio,
    make_events,
)
from salticus.features.truths import LogTables, Truths, rowed, truths_of, with_price
from salticus.types import ANSWERED, Ints
from salticus.types.coins import coins
from salticus.types.dates import DAY_US, HOUR_US
from salticus.types.frames import pl

_CHUNK = 4_000_000  # visits that are held at a time
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
    truth. Where the log has values, births and ends are known from them to everyone, as a feed
    announces pages; else a page is born with its first answer.
    """
    demand = demand_events(log, pages) if log.has("demand") else Events.none()
    found = _found(log, pages, observe, seed)
    return among((day for events in found for day in by_days(events)), demand)


def _found(log: LogTables, pages: pl.DataFrame, observe: str, seed: int) -> Iterator[Events]:
    """Events of pages in order, by whole UTC days."""
    truths = truths_of(log, pages) if log.has("values") else None
    if observe == "partial":
        yield from _visited(log, pages, truths.lives() if truths is not None else None)
        return
    if truths is None:
        raise InputError(f"{log.path('values')}: no such file; only `partial` needs no truth")
    if observe == "full":
        yield truths.events()
        return
    rates, ends = _rates(observe), log.about.ends()
    step = max(_HOUR, log.about.resolution or _HOUR) // _HOUR
    until = 0 if ends is None else int(ends[1].timestamp()) // 3600 + 1
    if len(truths.page):
        yield from among(_tossed(truths, rates, step, seed, until), truths.lives())


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


def demand_events(log: LogTables, pages: pl.DataFrame) -> Events:
    """Clicks and impressions, each bucket in its last hour."""
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
    columns = (table[name].to_numpy() for name in ("hour", "row", "clicks", "shown"))
    return make_events(EventKind.DEMAND, *columns)


def _visited(log: LogTables, pages: pl.DataFrame, lives: Events | None) -> Iterator[Events]:
    """Events in order, by whole UTC days; `lives` are births and ends that were announced."""
    crawler = Crawler(len(pages), announced=lives is not None)
    found = (crawler.learn(visits).ordered() for visits in _spans(log, pages))
    days = (day for events in found for day in by_days(events))
    return among(days, Events.none() if lives is None else lives)


def _spans(log: LogTables, pages: pl.DataFrame) -> Iterator[Answered]:
    """The answered visits in stretches of whole days, some million at a time."""
    at = pl.col("at").dt.epoch("us")
    low, high = log.scan("visits").select(low=at.min(), high=at.max()).collect().row(0)
    if low is None:
        return
    first, days = low // DAY_US, high // DAY_US - low // DAY_US + 1
    parts = min(days, 1 + log.rows("visits") // _CHUNK)
    for part in range(parts):
        start, end = (first + days * k // parts for k in (part, part + 1))
        inside = at.is_between(start * DAY_US, end * DAY_US, closed="left")
        yield _answers(log, pages, inside)


def _answers(log: LogTables, pages: pl.DataFrame, inside: pl.Expr) -> Answered:
    """Answered visits, by page and time."""

    def told(name: str, kind: type[pl.DataType]) -> pl.Expr:
        return pl.col(name) if name in log.columns("visits") else pl.lit(None, kind)

    status = told("status", pl.String)
    answered = status.is_null() | status.is_in([each.label for each in ANSWERED])
    visits = rowed(pages, log.scan("visits").filter(inside & answered)).select(
        "row",
        pl.col("at").dt.epoch("us"),
        changed=told("changed", pl.Boolean).fill_null(value=False),
        value=told("value", pl.String),
    )
    table = with_price(visits).drop("value").sort("row", "at", maintain_order=True).collect()
    row, *rest = (table[name].to_numpy() for name in ("row", "at", "changed", "price", "stock"))
    return Answered(row.astype(np.int64), *rest)


def _tossed(
    truths: Truths, rates: tuple[float, float], step: int, seed: int, until: int
) -> Iterator[Events]:
    """The visits of each UTC day that has any, in order; `step` is in hours.

    Coins are tossed from the first birth to the last change, or on to the hour `until`.
    Every page has visits a day of its own, drawn evenly on a scale of ratios between the two
    `rates`. A visit in an hour sees what the page holds at the end of it. A page that is away does
    not answer.
    """
    crawler = _Crawler(truths)
    start = int(truths.hour.min()) // step * step
    end = max(until, int(truths.hour.max()) + 1)
    low, high = rates
    chance = low * (high / low) ** coins(seed, crawler.pages, -1) * step / 24
    for day in range(start // 24, (end - 1) // 24 + 1):
        first = max(start, -(-24 * day // step) * step)
        events = Events.none()
        for hour in range(first, min(24 * day + 24, end), step):
            heads = coins(seed, crawler.pages, hour // step) < chance
            events = events.join(crawler.visit(np.flatnonzero(heads), hour))
        if len(events):
            yield events.ordered()


class _Crawler:
    """Knows what every page holds, and what it held at its last visit."""

    def __init__(self, truths: Truths) -> None:
        n = len(truths.born)
        self.truths = truths
        self.pages = np.arange(n)
        self._order = np.argsort(truths.hour, kind="stable")
        self._at = truths.hour[self._order]
        self._done = 0
        self.point = np.full(n, -1, dtype=np.int64)  # the row of `truths` that holds now
        self.seen = np.full(n, -1, dtype=np.int64)  # the one that the last answer saw
        self.answer = np.full(n, -1, dtype=np.int64)

    def visit(self, page: Ints, hour: int) -> Events:
        """The events of visits to these pages in an hour."""
        end = int(np.searchsorted(self._at, hour, side="right"))
        new = self._order[self._done : end]
        self.point[self.truths.page[new]] = new  # in order of time, so the last one stays
        self._done = end
        point = self.point[page]
        answers = (point >= 0) & (self.truths.value[point] >= 0)
        page, point = page[answers], point[answers]
        t, old, since = self.truths, self.seen[page], self.answer[page]
        self.seen[page], self.answer[page] = point, hour
        gap = np.where(since >= 0, hour - since, np.nan).astype(np.float32)
        at = np.full(len(page), hour)
        visits = make_events(EventKind.VISIT, at, page, gap, t.price[point], t.stock[point])
        c = (old >= 0) & (t.value[old] != t.value[point])
        new, moved = point[c], log_ratio(t.price[point[c]], t.price[old[c]])
        changes = make_events(EventKind.CHANGE, at[c], page[c], t.price[new], moved, t.stock[new])
        return visits.join(changes)
