"""Was the crawler polite, and is its copy true? Judged by the mall's own record and truth."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import inf
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

from salticus.lab.worlds.mall.access import AccessEntry
from salticus.lab.worlds.mall.shop import DISALLOWED
from salticus.lab.worlds.mall.stock import Stock
from salticus.types import Bools, Ints, Times, instant


@dataclass(frozen=True, slots=True)
class Breach:
    """One request that should not have come (yet).

    `rule` is overlap, gap, disallowed or early (before a Retry-After was over); `previous` is
    the request that forbade it, `short_s` by how many seconds it came too soon.
    """

    rule: str
    entry: AccessEntry
    previous: AccessEntry | None = None
    short_s: float = 0.0

    def __str__(self) -> str:
        after = "" if self.previous is None else f" after {self.previous.path}"
        short = "" if self.previous is None else f", {self.short_s:.6f} s too soon"
        where = f"{self.entry.host}{self.entry.path} at {self.entry.arrived:.6f}"
        return f"{self.rule}: {where}{after}{short}"


@dataclass(frozen=True, slots=True)
class Audit:
    """What an access log says about politeness."""

    requests: int
    breaches: tuple[Breach, ...]

    @property
    def clean(self) -> bool:
        return not self.breaches

    @property
    def counts(self) -> Counter[str]:
        """Breaches by rule."""
        return Counter(breach.rule for breach in self.breaches)

    def __str__(self) -> str:
        shown = [str(breach) for breach in self.breaches[:20]]
        more = len(self.breaches) - len(shown)
        tail = [f"and {more} more"] if more else []
        head = f"{self.requests} requests, {len(self.breaches)} breaches"
        return "\n".join([head, *shown, *tail])


def audit(
    entries: Iterable[AccessEntry],
    *,
    delay: float | Mapping[str, float],
    concurrency: int = 1,
    kills: Sequence[float] = (),
) -> Audit:
    """Check every host's requests against the rules of politeness, with no tolerance.

    `delay` is the least time in seconds from one arrival to the next, for all hosts or by host; a
    longer Crawl-delay counts from the moment its robots.txt was answered. At the `kills` (wall
    seconds) the crawler died, so that a request under way then was over, whenever that was
    noticed; delays and Retry-After outlive a kill.
    """
    hosts: dict[str, list[AccessEntry]] = {}
    for entry in entries:
        hosts.setdefault(entry.host, []).append(entry)
    breaches: list[Breach] = []
    for host, own in hosts.items():
        own.sort(key=lambda entry: entry.arrived)
        least = delay if isinstance(delay, int | float) else delay[host]
        breaches += _gaps(own, least)
        breaches += _overlaps(own, concurrency, sorted(kills))
        breaches += _early(own)
        breaches += (Breach("disallowed", e) for e in own if unquote(e.path).startswith(DISALLOWED))
    return Audit(sum(map(len, hosts.values())), tuple(breaches))


def _gaps(own: list[AccessEntry], delay: float) -> Iterator[Breach]:
    told = next((e for e in own if e.crawl_delay is not None and e.ended is not None), None)
    since = inf if told is None or told.ended is None else told.ended
    longer = delay if told is None or told.crawl_delay is None else max(delay, told.crawl_delay)
    for previous, entry in pairwise(own):
        least = longer if since <= entry.arrived else delay
        gap = entry.arrived - previous.arrived
        if gap < least:
            yield Breach("gap", entry, previous, least - gap)


def _overlaps(own: list[AccessEntry], concurrency: int, kills: list[float]) -> Iterator[Breach]:
    under_way: list[tuple[float, int]] = []
    for order, entry in enumerate(own):
        while under_way and under_way[0][0] <= entry.arrived:
            heapq.heappop(under_way)
        if len(under_way) >= concurrency:
            end, other = under_way[0]
            yield Breach("overlap", entry, own[other], end - entry.arrived)
        heapq.heappush(under_way, (_over(entry, kills), order))


def _over(entry: AccessEntry, kills: list[float]) -> float:
    """When the request was over for the crawler: at its end, or when the crawler was killed."""
    ended = inf if entry.ended is None else entry.ended
    following = bisect_left(kills, entry.arrived)
    return min(ended, kills[following]) if following < len(kills) else ended


def _early(own: list[AccessEntry]) -> Iterator[Breach]:
    asking = [(e.ended, e.retry_after, e) for e in own if e.retry_after and e.ended is not None]
    asking.sort(key=lambda told: told[0], reverse=True)
    until, latest = -inf, None
    for entry in own:
        while asking and asking[-1][0] < entry.arrived:
            ended, seconds, told = asking.pop()
            if ended + seconds > until:
                until, latest = ended + seconds, told
        if entry.arrived < until:
            yield Breach("early", entry, latest, until - entry.arrived)


class AnsweredVisits(NamedTuple):
    """Answered visits as columns: the row of the page, when, and the value learnt (None = gone)."""

    rows: Ints
    at: Times
    values: Sequence[str | None]


def true_freshness(
    stock: Stock, copies: Mapping[int, str | None] | Sequence[str | None], when: datetime
) -> float:
    """Share of pages whose copy equals the truth at `when`; 1 if there are none.

    `copies` gives the latest value stored by row. No copy equals the truth of a page that does not
    exist.

    >>> from salticus.lab.worlds.mall.generate import generate
    >>> stock, when = generate(offers=4), datetime.fromisoformat("2026-01-09T00:00Z")
    >>> true_freshness(stock, {0: stock.value(0, when), 1: "old"}, when)
    0.25
    """
    held = copies if isinstance(copies, Mapping) else dict(enumerate(copies))
    truth = stock.texts_at(when)
    equal = sum(held.get(row) == text for row, text in enumerate(truth))
    return equal / len(truth) if truth else 1.0


def freshness_over(stock: Stock, visits: AnsweredVisits, start: datetime, end: datetime) -> float:
    """Mean over pages and over the time from `start` to `end` of [copy == truth], exactly.

    The copy of a page is the value of its latest visit, none before the first. Visits before
    `start` count; their order does not matter.
    """
    if end <= start:
        raise ValueError(f"there is no time from {start} to {end}")
    n = len(stock)
    points = np.repeat(np.arange(n), np.diff(stock.offsets))
    rows = np.concatenate([np.arange(n), points, visits.rows])
    at = np.concatenate([np.full(n, _BEFORE), _micros(stock.times), _micros(visits.at)])
    codes = np.concatenate([np.full(n, _NOTHING), _codes([*stock.values, *visits.values])])
    visited = np.arange(len(rows)) >= n + len(points)
    order = np.lexsort((visited, at, rows))
    rows, at, codes, visited = rows[order], at[order], codes[order], visited[order]
    fresh = _latest(codes, rows, ~visited) == _latest(codes, rows, visited)
    low, high = int(_micros(instant(start))), int(_micros(instant(end)))
    begins = np.clip(at, low, high)
    ends = np.append(begins[1:], high)
    ends[np.append(rows[1:] != rows[:-1], True)] = high
    return float((ends - begins)[fresh].sum() / (n * (high - low))) if n else 1.0


def fresh_at(stock: Stock, visits: AnsweredVisits, rows: Ints, at: Times) -> Bools:
    """Whether the copy of each of the `rows` equals the truth at the time `at`.

    What changes at that very time has changed; a page without a copy is not fresh, unless it does
    not exist.
    """
    points = np.repeat(np.arange(len(stock)), np.diff(stock.offsets))
    every = np.concatenate([points, visits.rows, rows])
    times = np.concatenate([_micros(stock.times), _micros(visits.at), _micros(at)])
    codes = np.concatenate([_codes([*stock.values, *visits.values]), np.full(len(rows), _NOTHING)])
    kind = np.repeat([0, 1, 2], [len(points), len(visits.rows), len(rows)])
    order = np.lexsort((kind, times, every))
    every, codes, kind = every[order], codes[order], kind[order]
    same = _latest(codes, every, kind == 0) == _latest(codes, every, kind == 1)
    fresh = np.empty(len(order), dtype=np.bool_)
    fresh[order] = same
    return fresh[len(order) - len(rows) :]


_BEFORE = np.iinfo(np.int64).min  # a time before all others, at which every page begins as nothing
_NOTHING = -1


def _micros(times: Times | np.datetime64) -> Ints:
    return np.asarray(times, dtype="datetime64[us]").astype(np.int64)


def _codes(values: Sequence[str | None]) -> Ints:
    """A number for each text, `_NOTHING` for None."""
    known: dict[str | None, int] = {None: _NOTHING}
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def _latest(codes: Ints, rows: Ints, chosen: Bools) -> Ints:
    """At each event, the code of the latest chosen event of the same page; `_NOTHING` if none."""
    order = np.arange(len(rows))
    first = np.maximum.accumulate(np.where(np.diff(rows, prepend=-1) > 0, order, 0))
    latest = np.maximum.accumulate(np.where(chosen, order, -1))
    return np.where(latest >= first, codes[latest], _NOTHING)
