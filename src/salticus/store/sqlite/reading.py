"""Columns from the database. Long answers come as JSON in one row, made without Python's lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.config import Scope
from salticus.store.base import PageTable
from salticus.store.sqlite.packing import clean, glob, rows
from salticus.store.sqlite.queries import QUERIES
from salticus.types import NEVER, PURPOSE, STATUS, Floats, Ints, Outcomes, Times

CHUNK = 25_000  # pages that one statement reads; bounds its memory, and how long others wait

NEVER_US = int(NEVER.astype(np.int64))


def table(db: sqlite3.Connection, after: int = -1) -> PageTable:
    """Pages edited after a revision. What is edited meanwhile is in the next table too."""
    (revision,) = db.execute(QUERIES["revision"]).fetchone()
    ids = _edited(db, after)
    starts = range(0, max(1, len(ids)), CHUNK)
    chunks = (_columns(db, ids[start : start + CHUNK]) for start in starts)
    host, *columns = zip(*chunks, strict=True)
    everything: list[Any] = [ids, _shared(host), *map(np.concatenate, columns), revision]
    return PageTable(*everything)


def _edited(db: sqlite3.Connection, after: int) -> Ints:
    """The pages edited after a revision, in order: a chunk at a time, as Python's lock is held
    while one is decoded."""
    found = db.execute(QUERIES["edited_pages"], {"after": after, "chunk": CHUNK})
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(_ints(ids) for (ids,) in found)]))


def _columns(db: sqlite3.Connection, ids: Ints) -> tuple[Any, ...]:
    """The columns of a `PageTable` for these pages, from the hosts on, in its order."""
    asked = {"ids": rows(ids.tolist()), "never": NEVER_US}
    host, *columns = db.execute(QUERIES["page_columns"], asked).fetchone()
    names = msgspec.json.decode(host, type=list[str])
    times, kind = map(_times, columns[:3]), _ints(columns[3]).astype(np.int8)
    demand, cost, longest = map(_floats, columns[4:7])
    idlers, idled, resting, discovered = map(_ints, columns[7:])
    idle = np.zeros(len(ids), dtype=np.int64)
    rests, found = np.zeros((2, len(ids)), dtype=np.bool_)
    idle[idlers], rests[resting], found[discovered] = idled, True, True
    max_interval = np.nan_to_num(longest, nan=np.inf)
    return names, *times, kind, demand, cost, max_interval, idle, rests, found


def fitting(db: sqlite3.Connection, pages: Ints, scopes: Sequence[Scope]) -> Ints:
    """The place of the first scope that each page is in; -1 = none."""
    spelt = [*map(spelling, scopes)]
    places = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(pages), CHUNK):
        ids = pages[start : start + CHUNK].tolist()
        places.append(listed(db, "first_scopes", ids=ids, scopes=spelt))
    return np.concatenate(places)


def spelling(scope: Scope) -> tuple[str | None, ...]:
    """A scope as the database is asked about it: patterns of URL and host, and a tag."""
    host = None if scope.host is None else glob(clean(scope.host))
    return glob(clean(scope.match)), host, scope.tag


def _shared(chunks: tuple[list[str], ...]) -> list[str]:
    """One list in which equal hosts are one object: millions of pages have few hosts."""
    known: dict[str, str] = {}
    return [known.setdefault(host, host) for chunk in chunks for host in chunk]


def _ints(column: str) -> Ints:
    return np.array(msgspec.json.decode(column, type=list[int]), dtype=np.int64)


def _times(column: str) -> Times:
    return _ints(column).view("datetime64[us]")


def _floats(column: str) -> Floats:
    return np.array(msgspec.json.decode(column, type=list[float | None]), dtype=np.float64)


def listed(db: sqlite3.Connection, query: str, **asked: Sequence[Any]) -> Ints:
    """What a query answers with one JSON array of numbers; it is asked with arrays of rows."""
    given = {name: rows(table) for name, table in asked.items()}
    return _ints(db.execute(QUERIES[query], given).fetchone()[0])


def outcomes_of(*columns: Sequence[Any]) -> Outcomes:
    """Outcomes from the columns visit, page, at, status, changed, since, age_s, purpose, propensity
    and, if it is known, chance; a time that is not known is `NEVER_US`."""
    visit, page, at, status, changed, since, age_s, purpose, propensity, *chance = columns
    return Outcomes.known(
        visit=visit,
        page=np.array(page, dtype=np.int64),
        at=np.array(at, dtype=np.int64).view("M8[us]"),
        status=[STATUS[each] for each in status],
        changed=changed,
        since=np.array(since, dtype=np.int64).view("M8[us]"),
        age_s=age_s,
        purpose=[PURPOSE[each] for each in purpose],
        propensity=propensity,
        chance=chance[0] if chance else np.nan,
    )
