"""What readers did: clicks and impressions by the hour, and clicks that asked for a visit."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.errors import InputError
from salticus.store.base import MOST_CLICKS, MOST_IMPRESSIONS, Counted
from salticus.store.database import transaction
from salticus.store.packing import clean, rows
from salticus.store.queries import QUERIES
from salticus.types import Count, Counts, Ints, Mark, Request
from salticus.urls import canonical

HOUR_US = 3_600_000_000


def take(db: sqlite3.Connection, counted: Sequence[Count], mark: Mark | None) -> Counted:
    """Add counts of known pages, and the mark if they added something; what came of it."""
    together, number = by_hour(counted)
    urls = list(number)
    with transaction(db):
        page = dict(zip(urls, _became(db, urls).tolist(), strict=True))
        table = [(page[url], at, *sums) for (url, at), sums in together.items() if page[url] >= 0]
        clicks, impressions = _put(db, table)
        if mark is not None and (clicks or impressions):
            db.execute(QUERIES["insert_mark"], clean(msgspec.to_builtins(mark)))
    known = sum(number[url] for url in urls if page[url] >= 0)
    return Counted(known, clicks, impressions, tuple(url for url in urls if page[url] < 0))


def _put(db: sqlite3.Connection, table: Sequence[Any]) -> tuple[int, int]:
    """Add counts within a transaction; the clicks and impressions that were added."""
    (last,) = db.execute(QUERIES["last_count"]).fetchone()
    most = {"clicks": MOST_CLICKS, "impressions": MOST_IMPRESSIONS}
    db.execute(QUERIES["insert_counts"], {"rows": rows(table)} | most)
    clicks, impressions = db.execute(QUERIES["sum_counts"], {"after": last}).fetchone()
    return clicks, impressions


def marks(db: sqlite3.Connection) -> list[Mark]:
    """How far files were read."""
    return [Mark(**dict(row)) for row in db.execute(QUERIES["marks"])]


def ids(db: sqlite3.Connection, urls: Sequence[str]) -> Ints:
    """The page of each URL, or the one that it has become; -1 = not known, or no URL."""
    spelt = [_spelt(url) for url in urls]
    found = np.full(len(spelt), -1, dtype=np.int64)
    known = [place for place, url in enumerate(spelt) if url is not None]
    found[known] = _became(db, [spelt[place] or "" for place in known])
    return found


def _became(db: sqlite3.Connection, urls: Sequence[str]) -> Ints:
    return _ints(db.execute(QUERIES["became"], {"urls": rows(urls)}).fetchone()[0])


def _spelt(url: str) -> str | None:
    """The one spelling of a URL; None if it is none."""
    try:
        return canonical(url)[0]
    except InputError:
        return None


def by_hour(counted: Sequence[Count]) -> tuple[dict[tuple[str, int], list[int]], dict[str, int]]:
    """Clicks and impressions by canonical URL and hour, capped, and how many rows each URL had.

    What is no URL is of no page.

    >>> by_hour([Count("http://a.example", 7, clicks=1), Count("http://a.example/", 9, 2)])[0]
    {('http://a.example/', 0): [3, 0]}
    """
    together: dict[tuple[str, int], list[int]] = {}
    number: defaultdict[str, int] = defaultdict(int)
    for each in counted:
        if (url := _spelt(each.url)) is None:
            continue
        sums = together.setdefault((url, each.at // HOUR_US * HOUR_US), [0, 0])
        sums[0] = min(sums[0] + max(each.clicks, 0), MOST_CLICKS)
        sums[1] = min(sums[1] + max(each.impressions, 0), MOST_IMPRESSIONS)
        number[url] += 1
    return together, number


def counts(db: sqlite3.Connection, after: int, limit: int) -> Counts:
    """What was counted after a row."""
    asked = {"after": after, "limit": limit}
    page, at, clicks, impressions, last = db.execute(QUERIES["counts"], asked).fetchone()
    return Counts(
        page=_ints(page),
        at=_ints(at).view("M8[us]"),
        clicks=_ints(clicks),
        impressions=_ints(impressions),
        last=after if last is None else last,
    )


def ask(db: sqlite3.Connection, requests: Sequence[Request]) -> None:
    """Store requests together or not at all."""
    table = [msgspec.structs.astuple(request) for request in requests]
    with transaction(db):
        db.execute(QUERIES["insert_requests"], {"rows": rows(table)})


def asked(db: sqlite3.Connection, after: int) -> list[Request]:
    """Requests after one."""
    found = db.execute(QUERIES["requests"], {"after": after})
    return [
        Request(number, page, at, score, propensity, bool(sent), visit)
        for number, page, at, score, propensity, sent, visit in found
    ]


def _ints(column: str) -> Ints:
    return np.array(msgspec.json.decode(column, type=list[int]), dtype=np.int64)
