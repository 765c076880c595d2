"""The store as rows of the exchange format, streamed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from salticus.errors import InputError
from salticus.store.base import FIELD_COLUMNS
from salticus.store.sqlite.database import connect, explained
from salticus.store.sqlite.packing import rows, text
from salticus.store.sqlite.queries import QUERIES
from salticus.types import NEVER, PURPOSE, STATUS, Ints, Outcomes, Times

CHUNK = 1000
NEVER_US = int(NEVER.astype(np.int64))

_FACTS = 20_000  # rows that are held at once

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


def facts(path: Path, pages: Ints) -> dict[str, list[str | None]]:
    """The host of each page, and what the fields of its value tell, column by column."""
    found: dict[str, list[str | None]] = {name: [] for name in ("host", *FIELD_COLUMNS)}
    with explained(path), closing(connect(path, read_only=True)) as db:
        for start in range(0, len(pages), _FACTS):
            asked = {"ids": rows(pages[start : start + _FACTS].tolist())}
            for row in db.execute(QUERIES["page_facts"], asked):
                fields = msgspec.json.decode(row["fields"])
                found["host"].append(row["host"])
                for name in FIELD_COLUMNS:
                    found[name].append(fields.get(name))
    return found


def history(path: Path) -> Iterator[Outcomes]:
    """All outcomes in order of time, some ten thousand at once."""
    with explained(path), closing(connect(path, read_only=True)) as db:
        cursor = db.execute(QUERIES["history"], {"never": NEVER_US})
        while chunk := cursor.fetchmany(_FACTS):
            yield _outcomes([tuple(row) for row in chunk])


def _outcomes(chunk: list[tuple[Any, ...]]) -> Outcomes:
    visit, page, at, status, changed, since, age_s, purpose, propensity = zip(*chunk, strict=True)
    return Outcomes(
        visit=np.array(visit, dtype=np.int64),
        page=np.array(page, dtype=np.int64),
        at=_times(at),
        made=np.ones(len(chunk), dtype=np.bool_),
        status=np.array([STATUS[each] for each in status], dtype=np.int8),
        changed=np.array(changed, dtype=np.int8),
        since=_times(since),
        age_s=np.array(age_s, dtype=np.float64),
        purpose=np.array([PURPOSE[each] for each in purpose], dtype=np.int8),
        propensity=np.array(propensity, dtype=np.float64),
    )


def _times(micros: tuple[int, ...]) -> Times:
    return np.array(micros, dtype=np.int64).view("M8[us]")


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
