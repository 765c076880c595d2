"""The store as rows of the exchange format, streamed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from salticus.errors import InputError
from salticus.store.database import connect, explained
from salticus.store.packing import text
from salticus.store.queries import QUERIES

CHUNK = 1000

# columns of the exchange format that only the fields of a value can tell
FIELD_COLUMNS = ("merchant", "brand", "category", "condition", "country", "language", "title")

_TOGETHER = {"demand": "GROUP BY at, page"}  # what was counted at several times

Row = dict[str, Any]


def scan(path: Path, table: str, page: int | None) -> Iterator[Row]:
    """Rows of a table over a connection of its own, in order of time."""
    order, finish = _table(table)
    where = "" if page is None else "WHERE page_id = :page"
    query = f"{QUERIES[f'scan_{table}']} {where} {_TOGETHER.get(table, '')} ORDER BY {order}"
    return _stream(path, query, {"page": page}, finish)


def _stream(
    path: Path, query: str, parameters: Row, finish: Callable[[sqlite3.Row], Row]
) -> Iterator[Row]:
    with explained(path), closing(connect(path, read_only=True)) as db:
        cursor = db.execute(query, parameters)
        while chunk := cursor.fetchmany(CHUNK):
            yield from map(finish, chunk)


def _table(name: str) -> tuple[str, Callable[[sqlite3.Row], Row]]:
    """How a table is ordered, and how its rows are turned into those of the exchange format."""
    tables: dict[str, tuple[str, Callable[[sqlite3.Row], Row]]] = {
        "pages": ("page_id", _page),
        "visits": ("observations.at, observations.visit", _visit),
        "values": ("at, visit", _value),
        "signals": ("at, id", dict),
        "links": ("appeared, source_id, page_id", dict),
        "demand": ("at, page_id", dict),
        "requests": ("at, id", _request),
    }
    if name not in tables:
        raise InputError(f"the store has no table {name!r}; it has {', '.join(tables)}")
    return tables[name]


def _page(row: sqlite3.Row) -> Row:
    page = dict(row)
    fields = msgspec.json.decode(page.pop("fields"))
    page["tags"] = msgspec.json.decode(page["tags"])
    return page | {name: fields.get(name) for name in FIELD_COLUMNS}


def _visit(row: sqlite3.Row) -> Row:
    changed = None if row["changed"] is None else bool(row["changed"])
    return dict(row) | {"changed": changed, "value": text(row["value"])}


def _request(row: sqlite3.Row) -> Row:
    return dict(row) | {"sent": bool(row["sent"])}


def _value(row: sqlite3.Row) -> Row:
    return dict(row) | {"value": text(row["value"])}
