"""Writes that are not visits: pages, signals, run state, and what is thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import rows
from salticus.store.sqlite.queries import QUERIES
from salticus.types import NewPage, Signal
from salticus.urls import canonical

CHUNK = 10_000  # rows a transaction: others wait a tenth of a second for it at most


def add(db: sqlite3.Connection, pages: Sequence[NewPage], at: int) -> int:
    """Add pages, edit known ones; nothing is written if a URL is wrong. Returns the new ones."""
    table = [row(page) for page in pages]
    return sum(_add(db, table[i : i + CHUNK], at) for i in range(0, len(table), CHUNK))


def _add(db: sqlite3.Connection, table: list[Any], at: int) -> int:
    with transaction(db):
        return put(db, table, at)


def put(db: sqlite3.Connection, table: list[Any], at: int) -> int:
    """Add or edit pages within a transaction; returns the new ones."""
    each = _folded(table)
    parameters = {"rows": rows(each), "at": at}
    db.execute(QUERIES["bump_revision"])
    new = db.execute(QUERIES["insert_pages"], parameters).rowcount
    if new < len(each):
        db.execute(QUERIES["edit_pages"], parameters)
    return new


def _folded(table: list[Any]) -> list[Any]:
    """Each URL once, with all that is given for it; of two settings the later counts."""
    once: dict[str, Any] = {}
    for row in table:
        once[row[0]] = _both(once[row[0]], row) if row[0] in once else row
    return table if len(once) == len(table) else list(once.values())


def _both(first: tuple[Any, ...], then: tuple[Any, ...]) -> tuple[Any, ...]:
    url, host, kind, tags, max_interval, demand, found = then
    return (
        url,
        host,
        first[2] if kind is None else kind,
        sorted({*first[3], *tags}),
        first[4] if max_interval is None else max_interval,
        first[5] if demand is None else demand,
        first[6] and found,
    )


def row(page: NewPage) -> tuple[Any, ...]:
    """A page as `put` takes it; InputError if its URL is wrong."""
    url, host = canonical(page.url)
    tags = sorted(set(page.tags))
    return url, host, page.kind, tags, page.max_interval, page.demand, page.found


def notice(db: sqlite3.Connection, signals: Iterable[Signal]) -> None:
    """Store signals together or not at all."""
    table = [(s.page, s.at, s.kind, s.value) for s in signals]
    with transaction(db):
        db.execute(QUERIES["insert_signals"], {"rows": rows(table)})


def remember(db: sqlite3.Connection, state: bytes) -> None:
    """Replace the run state, and count that."""
    with transaction(db):
        db.execute(QUERIES["remember"], {"state": state})
        db.execute(QUERIES["count_state"])


def prune(db: sqlite3.Connection, before: int) -> int:
    """Delete what is old, some at a time. Returns how many observations."""
    for query in (
        "prune_signals",
        "prune_demand",
        "prune_requests",
        "prune_gauges",
        "prune_samples",
    ):
        _prune(db, query, before)
    return _prune(db, "prune_observations", before)


def _prune(db: sqlite3.Connection, query: str, before: int) -> int:
    total = 0
    while gone := db.execute(QUERIES[query], {"before": before, "limit": CHUNK}).rowcount:
        total += gone
    return total
