"""Writes that are not visits: pages, signals, run state, and what is thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from salticus.store.database import transaction
from salticus.store.packing import rows
from salticus.store.queries import QUERIES
from salticus.store.urls import canonical
from salticus.types import NewPage, Signal

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
    parameters = {"rows": rows(table), "at": at}
    db.execute(QUERIES["bump_revision"])
    new = db.execute(QUERIES["insert_pages"], parameters).rowcount
    if new < len(table):
        db.execute(QUERIES["edit_pages"], parameters)
    return new


def row(page: NewPage) -> tuple[Any, ...]:
    """A page as `put` takes it; InputError if its URL is wrong."""
    url, host = canonical(page.url)
    return url, host, page.kind, sorted(set(page.tags)), page.max_interval, page.demand


def notice(db: sqlite3.Connection, signals: Iterable[Signal]) -> None:
    """Store signals together or not at all."""
    table = [(s.page, s.at, s.kind, s.value) for s in signals]
    with transaction(db):
        db.execute(QUERIES["insert_signals"], {"rows": rows(table)})


def remember(db: sqlite3.Connection, state: bytes) -> None:
    """Replace the run state."""
    db.execute(QUERIES["remember"], {"state": state})


def prune(db: sqlite3.Connection, before: int) -> int:
    """Delete old observations and signals, some at a time. Returns the observations."""
    _prune(db, "prune_signals", before)
    return _prune(db, "prune_observations", before)


def _prune(db: sqlite3.Connection, query: str, before: int) -> int:
    total = 0
    while gone := db.execute(QUERIES[query], {"before": before, "limit": CHUNK}).rowcount:
        total += gone
    return total
