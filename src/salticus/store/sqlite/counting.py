"""What readers did: clicks and impressions by the hour, and clicks that asked for a visit."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.store.base import MOST_CLICKS, MOST_IMPRESSIONS, Counted
from salticus.store.news import by_hour, place_of
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import clean, rows
from salticus.store.sqlite.queries import QUERIES
from salticus.types import Count, Counts, Ints, Mark, Request


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
    spelt = {row: place[0] for row, url in enumerate(urls) if (place := place_of(url)) is not None}
    found = np.full(len(urls), -1, dtype=np.int64)
    found[list(spelt)] = _became(db, list(spelt.values()))
    return found


def _became(db: sqlite3.Connection, urls: Sequence[str]) -> Ints:
    return _ints(db.execute(QUERIES["became"], {"urls": rows(urls)}).fetchone()[0])


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
