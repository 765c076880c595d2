"""What readers did: clicks and impressions by the hour, and clicks that asked for a visit."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from salticus.errors import InputError
from salticus.store.database import transaction
from salticus.store.packing import rows
from salticus.store.queries import QUERIES
from salticus.store.urls import canonical
from salticus.types import Count, Counts, Ints, Request

HOUR_US = 3_600_000_000


def count(db: sqlite3.Connection, counted: Sequence[Count]) -> int:
    """Add counts of known pages; how many of the rows those were."""
    with transaction(db):
        return put(db, counted)


def put(db: sqlite3.Connection, counted: Sequence[Count]) -> int:
    """The same within a transaction."""
    together, number = by_hour(counted)
    urls = list({url for url, _ in together})
    (found,) = db.execute(QUERIES["known_urls"], {"urls": rows(urls)}).fetchone()
    known = {urls[place] for place in msgspec.json.decode(found, type=list[int])}
    table = [(*key, *sums) for key, sums in together.items() if key[0] in known]
    db.execute(QUERIES["insert_counts"], {"rows": rows(table)})
    return sum(number[url] for url in known)


def by_hour(counted: Sequence[Count]) -> tuple[dict[tuple[str, int], list[int]], dict[str, int]]:
    """Clicks and impressions by canonical URL and hour, and how many rows were of each URL.

    What is no URL is of no page.

    >>> by_hour([Count("http://a.example", 7, clicks=1), Count("http://a.example/", 9, 2)])[0]
    {('http://a.example/', 0): [3, 0]}
    """
    together: dict[tuple[str, int], list[int]] = {}
    number: defaultdict[str, int] = defaultdict(int)
    for each in counted:
        try:
            url, _ = canonical(each.url)
        except InputError:
            continue
        sums = together.setdefault((url, each.at // HOUR_US * HOUR_US), [0, 0])
        sums[0] += each.clicks
        sums[1] += each.impressions
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
    table = [(r.page, r.at, r.score, r.propensity, r.sent, r.visit) for r in requests]
    with transaction(db):
        db.execute(QUERIES["insert_requests"], {"rows": rows(table)})


def asked(db: sqlite3.Connection, after: int) -> list[tuple[int, Request]]:
    """Requests after one, with their numbers."""
    found = db.execute(QUERIES["requests"], {"after": after})
    return [
        (number, Request(page, at, score, propensity, bool(sent), visit))
        for number, page, at, score, propensity, sent, visit in found
    ]


def _ints(column: str) -> Ints:
    return np.array(msgspec.json.decode(column, type=list[int]), dtype=np.int64)
