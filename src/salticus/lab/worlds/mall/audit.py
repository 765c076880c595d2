"""Was the crawler polite? Judged by the mall's own record of who asked for what when."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from urllib.parse import unquote

import msgspec

from salticus.errors import InputError

DISALLOWED = "/private/"
"""What the robots.txt of every shop forbids."""


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
