"""InstaCrawl on a log: requests one by one in time order (Han 2019 §6.1, Fig. 9).

A request is a click that asks for a visit. Whether the reader found a fresh copy is scored before
the decision; then a gate sends the request, or not. Decisions that do not look at what earlier
ones brought (a uniform probability, a score known beforehand) need no loop: a copy is what the
page's last sent request found, and that is a running maximum. Those that do are made step by step
in `insta`, and judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, times_of
from salticus.types import Bools, Floats, Ints, Times, instant
from salticus.types.coins import coins
from salticus.types.state import rank_within

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

WINDOW = timedelta(hours=6)  # of Figure 10
_CHANGE, _SYNC, _REQUEST = 0, 1, 2  # what comes first when times are equal


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests ordered by page and time, each with the code of the true value at its time.

    `page` is the row. `first` is the true value when the page's copy was made: all are in sync at
    the start, or at the page's birth if that is later. `chance` is for the gate, a hash of (seed,
    page, number of the request) in [0, 1); `failed` says whether a visit would fail, by another.
    """

    page: Ints
    at: Times
    true: Ints
    first: Ints
    chance: Floats
    failed: Bools

    def __len__(self) -> int:
        return len(self.page)


def read_requests(
    log: Log, truth: Truth, start: datetime, end: datetime, *, seed: int = 0
) -> Requests:
    """The requests of a log from `start` to before `end`, of the pages of the truth.

    InputError names the table if it is absent. Requests before the birth of their page are left
    out: there is no copy to judge.
    """
    asked = _asked(log, truth, start, end)
    rows, times = asked["row"].to_numpy().astype(np.int64), times_of(asked["at"])
    born = truth.born[rows] <= times
    rows, times = rows[born], times[born]
    true, first = true_values(truth, rows, times, start)
    number = truth.ids[rows] * (1 << 24) + rank_within(rows)
    return Requests(
        page=rows,
        at=times,
        true=true,
        first=first[rows],
        chance=coins(seed, number, 0),
        failed=coins(seed, number, 1) < truth.failure[rows],
    )


def fresh_at_requests(requests: Requests, sent: Bools) -> Bools:
    """Whether each request found a fresh copy (eq. 2), if these were sent.

    Laws: what was sent later does not matter; with nothing sent the copies stay what they were.
    """
    number = np.arange(len(requests))
    taken = np.where(sent & ~requests.failed, number, -1)
    before = np.maximum.accumulate(np.concatenate([[-1], taken]))[:-1]
    opening = np.searchsorted(requests.page, requests.page)  # the page's first request
    held = np.where(before >= opening, requests.true[before], requests.first)
    return np.equal(held, requests.true)


def replay_uniform(
    requests: Requests, probabilities: Iterable[float], start: datetime, end: datetime
) -> Iterator[dict[str, Any]]:
    """A row for each probability of sending a request, with the figures of `judged`."""
    for probability in probabilities:
        sent = requests.chance < probability
        yield {"probability": probability, **judged(requests, sent, start, end)}


def judged(requests: Requests, sent: Bools, start: datetime, end: datetime) -> dict[str, Any]:
    """What came of sending these: the resource R = sent / requests, the share F of requests that
    found a fresh copy (eq. 3), F of every 6 h (None where nobody asked), and how many of the
    visits found a change."""
    windows = -(-(end - start) // WINDOW)
    window = ((requests.at - instant(start)) // np.timedelta64(WINDOW)).astype(np.int64)
    asked = np.bincount(window, minlength=windows)
    fresh = fresh_at_requests(requests, sent)
    happy = np.bincount(window, weights=fresh, minlength=windows)
    return {
        "requests": len(requests),
        "resource": float(sent.mean()) if len(sent) else None,
        "freshness": float(fresh.mean()) if len(fresh) else None,
        "found": int(np.count_nonzero(sent & ~requests.failed & ~fresh)),
        "windows": [f / n if n else None for f, n in zip(happy, asked, strict=True)],
    }


def _asked(log: Log, truth: Truth, start: datetime, end: datetime) -> pl.DataFrame:
    import polars as pl

    if not log.has("requests"):
        raise InputError(f"{log.path('requests')}: no such file; there is no request to replay")
    return (
        log.scan("requests")
        .filter(pl.col("at").is_between(start, end, closed="left"))
        .join(truth.rows(), on="page_id")
        .select("row", "at")
        .sort("row", "at")
        .collect()
    )


def true_values(truth: Truth, rows: Ints, times: Times, start: datetime) -> tuple[Ints, Ints]:
    """The true value at each request, and of each page when its copy was made.

    Change points, copies and requests are put into one order by page and time; each of the latter
    takes the value of the last change point before it, or at the same time.
    """
    made = np.maximum(truth.born, instant(start))
    page = np.concatenate([truth.page, np.arange(len(truth)), rows])
    at = np.concatenate([truth.at, made, times])
    kind = np.repeat([_CHANGE, _SYNC, _REQUEST], [len(truth.page), len(truth), len(rows)])
    order = np.lexsort((kind, at, page))
    change = np.where(kind[order] == _CHANGE, np.arange(len(order)), 0)
    value = np.concatenate([truth.value, np.zeros(len(truth) + len(rows), dtype=np.int64)])
    found = np.empty(len(order), dtype=np.int64)
    found[order] = value[order][np.maximum.accumulate(change)]
    _, first, true = np.split(found, [len(truth.page), len(truth.page) + len(truth)])
    return true, first
