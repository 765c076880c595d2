"""What comes in from outside, made ready to be kept: what sources name, feeds tell, readers do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import msgspec

from salticus.errors import InputError
from salticus.store.nouns import MOST_CLICKS, MOST_IMPRESSIONS
from salticus.types import Count, Entry, Told
from salticus.types.dates import HOUR_US
from salticus.urls import canonical

_origin = attrgetter("origin")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Named(NamedTuple):
    """An entry as it is stored; `told` is its time for people, `word` what such a time is."""

    url: str
    host: str
    kind: str | None
    at: int | None
    told: str | None
    word: str


def named(entries: Iterable[Entry]) -> list[Named]:
    """The entries that can be visited, each URL once; the first that names it counts.

    >>> [each.url for each in named([Entry("http://a/#1"), Entry("http://a/"), Entry("mailto:b")])]
    ['http://a/']
    """
    found: dict[str, Named] = {}
    for entry in entries:
        place = place_of(entry.url)
        if place is not None and place[0] not in found:
            told = iso(entry.at)
            at = None if told is None else entry.at
            found[place[0]] = Named(*place, entry.kind, at, told, entry.word)
    return list(found.values())


def place_of(url: str | None) -> tuple[str, str] | None:
    """Canonical URL and host; None if there is none that can be visited."""
    try:
        return None if url is None else canonical(url)
    except InputError:
        return None


def iso(micros: int | None) -> str | None:
    """A time as a source would tell it; None if it lies beyond what calendars know.

    >>> iso(1_767_225_600_000_000), iso(10**30)
    ('2026-01-01T00:00:00+00:00', None)
    """
    try:
        return None if micros is None else (_EPOCH + timedelta(microseconds=micros)).isoformat()
    except OverflowError:
        return None


def by_kind(stated: Sequence[Told]) -> list[tuple[str, list[Told]]]:
    """The rows of each origin with canonical URLs, by the kind of their signals, ``feed:origin``;
    of several rows for one page the last counts."""
    last = {}
    for row in stated:
        url = canonical(row.url)[0]
        last[row.origin, url] = msgspec.structs.replace(row, url=url)
    groups = groupby(sorted(last.values(), key=_origin), _origin)
    return [(f"feed:{origin}", list(group)) for origin, group in groups]


def by_hour(counted: Sequence[Count]) -> tuple[dict[tuple[str, int], list[int]], dict[str, int]]:
    """Clicks and impressions by canonical URL and hour, capped, and how many rows each URL had.

    What is no URL is of no page.

    >>> by_hour([Count("http://a.example", 7, clicks=1), Count("http://a.example/", 9, 2)])[0]
    {('http://a.example/', 0): [3, 0]}
    """
    together: dict[tuple[str, int], list[int]] = {}
    number: defaultdict[str, int] = defaultdict(int)
    for each in counted:
        if (place := place_of(each.url)) is None:
            continue
        url = place[0]
        sums = together.setdefault((url, each.at // HOUR_US * HOUR_US), [0, 0])
        sums[0] = min(sums[0] + max(each.clicks, 0), MOST_CLICKS)
        sums[1] = min(sums[1] + max(each.impressions, 0), MOST_IMPRESSIONS)
        number[url] += 1
    return together, number
