"""Was the crawler polite, and is its copy true? Judged by the mall's own record and truth."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import msgspec
import numpy as np

from salticus.errors import InputError
from salticus.lab.worlds.mall.stock import Stock
from salticus.store.base import VisitStore
from salticus.types import Bools, Ints, Times, instant
from salticus.urls import without_tracking

DISALLOWED = "/private/"  # what the robots.txt of every shop forbids
_NOTHING = -1
_GONE = ("gone", "soft_404")
_ANSWERED = ("ok", "not_modified")


class AccessEntry(msgspec.Struct, gc=False):
    """One request. `arrived` and `ended` are wall seconds since 1970, `world` is world time in µs.

    `ended` is taken just before the last byte is handed over, so that no client can hold the
    whole answer earlier; when the client leaves first, it is taken then. It is None while the
    request is under way. `status` is 0 if no answer was begun. `value` is set once the value was
    served in full or confirmed by 304. `retry_after` and `crawl_delay` are the seconds that this
    answer asked for.
    """

    host: str
    path: str
    arrived: float
    world: int
    ended: float | None = None
    status: int = 0
    value: str | None = None
    retry_after: float | None = None
    crawl_delay: float | None = None
    conditional: bool = False
    fault: str | None = None


def read_entries(path: Path) -> list[AccessEntry]:
    """The entries of a file, in order of arrival; a last line still being written is left out."""
    decoder = msgspec.json.Decoder(AccessEntry)
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    try:
        entries = [decoder.decode(line) for line in whole.splitlines()]
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not an access log ({error})") from error
    return sorted(entries, key=lambda entry: entry.arrived)


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
        what = f"{self.rule}: {self.entry.host}{self.entry.path} at {self.entry.arrived:.6f}"
        if self.previous is None:
            return what
        return f"{what} after {self.previous.path}, {self.short_s:.6f} s too soon"


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
        lines = [f"{self.requests} requests, {len(self.breaches)} breaches"]
        lines += map(str, self.breaches[:20])
        if (more := len(self.breaches) - 20) > 0:
            lines.append(f"and {more} more")
        return "\n".join(lines)


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
        breaches += _overlaps(own, concurrency, kills)
        breaches += _early(own)
        breaches += (Breach("disallowed", e) for e in own if unquote(e.path).startswith(DISALLOWED))
    return Audit(sum(map(len, hosts.values())), tuple(breaches))


def _gaps(own: list[AccessEntry], delay: float) -> Iterator[Breach]:
    told = ((e.ended, e.crawl_delay) for e in own if e.crawl_delay is not None)
    since, asked = next(((ended, wait) for ended, wait in told if ended is not None), (inf, delay))
    for previous, entry in pairwise(own):
        least = max(delay, asked) if since <= entry.arrived else delay
        gap = entry.arrived - previous.arrived
        if gap < least:
            yield Breach("gap", entry, previous, least - gap)


def _overlaps(own: list[AccessEntry], concurrency: int, kills: Sequence[float]) -> Iterator[Breach]:
    under_way: list[tuple[float, int]] = []
    for order, entry in enumerate(own):
        while under_way and under_way[0][0] <= entry.arrived:
            heapq.heappop(under_way)
        if len(under_way) >= concurrency:
            end, other = under_way[0]
            yield Breach("overlap", entry, own[other], end - entry.arrived)
        ended = inf if entry.ended is None else entry.ended
        killed = min((kill for kill in kills if kill >= entry.arrived), default=inf)
        heapq.heappush(under_way, (min(ended, killed), order))


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


# -------------------------------------------------------------------------------------- freshness


class AnsweredVisits(NamedTuple):
    """Answered visits as columns: the row of the page, when, and the value learnt (None = gone)."""

    rows: Ints
    at: Times
    values: Sequence[str | None]


def freshness_over(
    stock: Stock,
    visits: AnsweredVisits,
    span: tuple[datetime, datetime],
    some: Ints | None = None,
) -> float:
    """Mean over pages (all, or the rows of some) and over a span of time of [copy == truth],
    exactly.

    The copy of a page is the value of its latest visit, none before the first; it equals the truth
    of a page that does not exist. Visits before the span count; their order does not matter.
    """
    if span[1] <= span[0]:
        raise ValueError(f"there is no time from {span[0]} to {span[1]}")
    (low, high), every = map(instant, span), np.arange(len(stock))
    some = every if some is None else some
    order, rows, at, fresh = _compared(stock, visits, every, np.full(len(stock), low))
    begins = np.clip(at, low, high)
    ends = np.append(begins[1:], high)
    ends[np.append(rows[1:] != rows[:-1], True)] = high
    counts = fresh & np.isin(rows, some)
    return float((ends - begins)[counts].sum() / (len(some) * (high - low))) if len(some) else 1.0


def fresh_at(stock: Stock, visits: AnsweredVisits, rows: Ints, at: Times) -> Bools:
    """Whether the copy of each of the `rows` equals the truth at the time `at`.

    What changes at that very time has changed; a page without a copy is not fresh, unless it does
    not exist.
    """
    order, _, _, fresh = _compared(stock, visits, rows, at)
    return fresh[np.argsort(order)][len(order) - len(rows) :]


def _compared(
    stock: Stock, visits: AnsweredVisits, rows: Ints, at: Times
) -> tuple[Ints, Ints, Times, Bools]:
    """All changes and visits and the pages asked for, by page and time: their places before they
    were sorted, page, time, and whether copy and truth are equal from then on."""
    points = np.repeat(np.arange(len(stock)), np.diff(stock.offsets))
    every = np.concatenate([points, visits.rows, rows])
    times = np.concatenate([stock.times, visits.at, at])
    number: dict[str | None, int] = {None: _NOTHING}
    known = [number.setdefault(value, len(number)) for value in (*stock.values, *visits.values)]
    codes = np.array(known + [_NOTHING] * len(rows), dtype=np.int64)
    kind = np.repeat([0, 1, 2], [len(points), len(visits.rows), len(rows)])
    order = np.lexsort((kind, times, every))
    every, codes, kind = every[order], codes[order], kind[order]
    fresh = _latest(codes, every, kind == 0) == _latest(codes, every, kind == 1)
    return order, every, times[order], fresh


def _latest(codes: Ints, rows: Ints, chosen: Bools) -> Ints:
    """At each event, the code of the latest chosen event of the same page; `_NOTHING` if none."""
    order = np.arange(len(rows))
    first = np.maximum.accumulate(np.where(np.diff(rows, prepend=-1) > 0, order, 0))
    latest = np.maximum.accumulate(np.where(chosen, order, -1))
    return np.where(latest >= first, codes[latest], _NOTHING)


@dataclass(frozen=True)
class CopyHistory:
    """All visits in a store: row of the page in the mall, when, how each ended, whether it found a
    change, and the value held after it (None before the first)."""

    rows: Ints
    at: Times
    status: list[str]
    changed: list[bool | None]
    held: list[str | None]

    def answered(self) -> AnsweredVisits:
        """What was known after each answer: a value, or that the page has gone."""
        told = [k for k, status in enumerate(self.status) if status in _GONE + _ANSWERED]
        values = [None if self.status[k] in _GONE else self.held[k] for k in told]
        return AnsweredVisits(self.rows[told], self.at[told], values)


def read_copies(store: VisitStore, urls: list[str]) -> CopyHistory:
    """The history of the store of a crawl of the mall, whose pages have these `urls`, by row. Pages
    that are not among them, such as sources, are left out."""
    row_of_url = {url: row for row, url in enumerate(urls)}
    named = ((page["page_id"], without_tracking(page["url"])) for page in store.scan("pages"))
    row_of = {page: row_of_url[url] for page, url in named if url in row_of_url}
    values = [told for told in store.scan("values") if told["page_id"] in row_of]
    visits = [told for told in store.scan("visits") if told["page_id"] in row_of]
    rows = np.array([row_of[told["page_id"]] for told in values + visits], dtype=np.int64)
    at = np.array([told["at"] for told in values + visits], dtype=np.int64).view("M8[us]")
    visited = np.arange(len(rows)) >= len(values)
    order = np.lexsort((visited, at, rows))
    held = np.empty(len(rows), dtype=np.int64)
    held[order] = _latest(order, rows[order], ~visited[order])
    return CopyHistory(
        rows=rows[visited],
        at=at[visited],
        status=[visit["status"] for visit in visits],
        changed=[visit["changed"] for visit in visits],
        held=[None if k == _NOTHING else values[k]["value"] for k in held[visited]],
    )
