"""What came of a prediction, as the truth of a log tells it.

Times are µs since 1970, UTC. A change at the very moment of the prediction is still ahead of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import GONE, Truth, read_truth
from salticus.models.training.recipe import TimeSpan, log_span
from salticus.types import Bools, Columns, Floats, Ints
from salticus.types.compiled import compiled
from salticus.types.dates import DAY_US, HOUR_US
from salticus.types.frames import pl
from salticus.types.inputs import Bytes

FOREVER = np.iinfo(np.int64).max


class ChangePoints(NamedTuple):
    """The change points of pages, ordered by page and time.

    Those of a page are from `first[page]` to `first[page + 1]`; `value` is a code, `live` tells
    that it is not the null value (the page is gone), and `gone` when the page goes, at that point
    or after. What is known of a page ends before `end[page]`.
    """

    first: Ints
    at: Ints
    value: Ints
    live: Bools
    gone: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class Moments(Columns):
    """Predictions: of which page, when, and the first change point that is ahead of each."""

    page: Ints
    at: Ints
    next: Ints


def read_points(
    log: Log, pages: pl.DataFrame, *, seed: int, clip: bool | None
) -> tuple[ChangePoints, tuple[int, int]]:
    """The truth of a log over the rows of `pages`, and of which time, [first, end), it tells.

    A value that is told twice in a row is one.

    With `clip` a page is known until the day (or whatever the log's resolution is) of the last
    change of its merchant has passed; None: if `log.json` has `merchants_end`.
    """
    truth = read_truth(log, seed=seed)
    row = _rows(truth, pages)
    page, at = row[truth.page], truth.at.astype(np.int64)
    order = np.lexsort((at, page))
    page, at, value = page[order], at[order], truth.value[order]
    new = np.ones(len(page), dtype=np.bool_)
    new[1:] = (page[1:] != page[:-1]) | (value[1:] != value[:-1])
    page, at, value = page[new], at[new], value[new]
    span = log_span(log)
    end = np.full(len(pages), span[1])
    if clips(log, clip):
        end = np.minimum(end, _merchants_end(log, truth, row, len(pages)))
    first = np.searchsorted(page, np.arange(len(pages) + 1))
    return make_points(first, at, value, end), span


def make_points(first: Ints, at: Ints, value: Ints, end: Ints) -> ChangePoints:
    """Change points, given where those of each page start, their times and values."""
    live = value != GONE
    gone = np.where(live, FOREVER, at)
    last = first[1:][first[1:] > first[:-1]] - 1  # of each page that has any
    stop = np.zeros(len(at), dtype=np.bool_)
    stop[last] = True
    ends = np.flatnonzero(stop | ~live)
    if len(ends):
        gone = gone[ends[np.searchsorted(ends, np.arange(len(at)))]]
    return ChangePoints(first, at, value, live, gone, end)


def clips(log: Log, clip: bool | None) -> bool:
    """Whether pages end with their merchant's last change; None: if `log.json` says so."""
    return clip or (clip is None and "merchants_end" in log.about.rest)


def _rows(truth: Truth, pages: pl.DataFrame) -> Ints:
    """The row in `pages` of each page of the truth."""
    wanted = pl.DataFrame({"page_id": truth.names.cast(pl.String)})
    rows = pages.select(pl.col("page_id").cast(pl.String)).with_row_index("row")
    found = wanted.join(rows, on="page_id", how="left", maintain_order="left")["row"]
    return found.to_numpy().astype(np.int64)


def _merchants_end(log: Log, truth: Truth, row: Ints, pages: int) -> Ints:
    """Until when each page's merchant was looked at; for ever, if the merchant is unknown."""
    resolution = log.about.resolution
    step = 1 if resolution is None else round(resolution.total_seconds() * 1_000_000)
    last = np.zeros(int(truth.merchant.max(initial=-1)) + 2, dtype=np.int64)  # the last: unknown
    np.maximum.at(last, truth.merchant[truth.page], truth.at.astype(np.int64))
    last = (last // step + 1) * step
    last[-1] = FOREVER
    end = np.full(pages, FOREVER)
    end[row] = last[truth.merchant]
    return end


def changes(points: ChangePoints, moments: Moments, edges: tuple[int, ...], limit: int) -> Bytes:
    """Labels of the task `change`, rows × edges: see `Examples.label`.

    The stretch of an edge is [t + the edge before, t + edge), in hours. It is known if it ends by
    `limit`, by the end of what is known of the page, and before the page is gone.
    """
    there = moments.next < points.first[moments.page + 1]  # a change point of the page
    following = np.where(there, moments.next, 0)
    until = np.minimum(points.end[moments.page], limit)
    until = np.where(there, np.minimum(until, points.gone[following]), until)
    change = np.where(there & points.live[following], points.at[following], FOREVER)
    labels = np.full((len(moments.page), len(edges)), -1, dtype=np.int8)
    low = moments.at
    for n, edge in enumerate(edges):
        high = moments.at + edge * HOUR_US
        known = (change >= low) & (high <= until)
        labels[known, n] = change[known] < high[known]
        low = high
    return labels


def stale(points: ChangePoints, moments: Moments, since: Ints) -> Bytes:
    """Labels of the task `stale`, rows × 1: whether the value differs from that at `since`.

    -1 where `since` is before 1970 (there was no answer) or the page was not there then.
    """
    now = held(points.first, points.at, moments.page, moments.at)
    then = held(points.first, points.at, moments.page, since)
    known = (since >= 0) & (then >= 0) & (now >= 0)
    labels = (points.value[now] != points.value[then]).astype(np.int8)
    return np.where(known, labels, -1).astype(np.int8)[:, np.newaxis]


@compiled
def held(first: Ints, at: Ints, page: Ints, when: Ints) -> Ints:
    """The change point that holds at each time, those of that moment included; -1 before birth."""
    found = np.empty(len(page), dtype=np.int64)
    for n in range(len(page)):
        low, high = first[page[n]], first[page[n] + 1]
        before = np.searchsorted(at[low:high], when[n], side="right")
        found[n] = low + before - 1 if before else -1
    return found


class Answers:
    """When each page last answered: an answer in the hour of a prediction is not known."""

    def __init__(self, pages: int) -> None:
        self._before = np.full(pages, -1, dtype=np.int64)
        self._page = self._at = np.zeros(0, dtype=np.int64)

    def learn(self, page: Ints, at: Ints) -> None:
        """The answers of a later day, by page and time."""
        ends = np.flatnonzero(np.diff(self._page, append=-1))
        self._before[self._page[ends]] = self._at[ends]
        self._page, self._at = page, at

    def since(self, page: Ints, at: Ints) -> Ints:
        """The last answer of each page in an hour before that of each time; -1: none."""
        first = np.searchsorted(self._page, np.arange(len(self._before) + 1))
        last = held(first, self._at, page, at // HOUR_US * HOUR_US - 1)
        today = self._at[last] if len(self._at) else last
        return np.where(last >= 0, today, self._before[page])


class ClickedDays:
    """Which pages were clicked (shown) on a UTC day; one day is kept at a time."""

    def __init__(self, log: Log, pages: pl.DataFrame, column: str) -> None:
        if not log.has("demand"):
            raise InputError(f"{log.path('demand')}: no such file, so no {column} to learn from")
        if column not in log.columns("demand"):
            raise InputError(f"{log.path('demand')}: no column `{column}` to learn from")
        bucket = log.about.demand_bucket
        if bucket is not None and bucket.total_seconds() > 86_400:
            raise InputError(f"{log.path('demand')}: buckets of more than a day tell no day")
        self.log, self.column = log, column
        self._ids = pages.select("page_id").with_row_index("row")
        self._days: dict[int, Bools] = {}

    def labels(self, page: Ints, at: Ints) -> Bytes:
        """Labels of the tasks `click` and `impression`, rows × 1, for the day ahead."""
        day = -(-at // DAY_US)  # that begins at the time or next
        labels = np.zeros((len(page), 1), dtype=np.int8)
        for each in np.unique(day).tolist():
            rows = day == each
            labels[rows, 0] = self._on(each)[page[rows]]
        return labels

    def _on(self, day: int) -> Bools:
        if day not in self._days:
            start = pl.lit(day * DAY_US).cast(pl.Datetime("us", "UTC"))
            within = (pl.col("at") >= start) & (pl.col("at") < start + pl.duration(days=1))
            some = self.log.scan("demand").filter(within & (pl.col(self.column) > 0))
            rows = some.join(self._ids.lazy(), on="page_id").select("row").collect()["row"]
            there = np.zeros(len(self._ids), dtype=np.bool_)
            there[rows.to_numpy()] = True
            self._days = {old: self._days[old] for old in self._days if old >= day - 1}
            self._days[day] = there
        return self._days[day]


def clicks_of(
    log: Log, pages: pl.DataFrame, points: ChangePoints, span: TimeSpan
) -> tuple[Floats, Floats]:
    """Over pages: clicks within a span of time, and how many days of it the page lived."""
    low, high = (pl.lit(each).cast(pl.Datetime("us", "UTC")) for each in (span.start, span.stop))
    rows = pages.lazy().select("page_id").with_row_index("row")
    within = log.scan("demand").filter((pl.col("at") >= low) & (pl.col("at") < high))
    sums = within.join(rows, on="page_id").group_by("row").agg(pl.col("clicks").sum()).collect()
    clicks, days = np.zeros(len(pages)), np.zeros(len(pages))
    clicks[sums["row"].to_numpy()] = sums["clicks"].to_numpy()
    has = points.first[1:] > points.first[:-1]
    born, last = points.first[:-1][has], points.first[1:][has] - 1
    end = np.where(points.live[last], points.end[has], np.minimum(points.at[last], points.end[has]))
    lived = np.minimum(end, span.stop) - np.maximum(points.at[born], span.start)
    days[has] = np.maximum(0, lived) / DAY_US
    return clicks, days
