"""Questions to the database. Long answers come as JSON in one row, made without Python's lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from salticus.config import Scope
from salticus.errors import UnknownPage
from salticus.store.base import DROPPED, PageState, PageTable, Stamp, Summary
from salticus.store.sqlite.packing import clean, rows, text, unpack
from salticus.store.sqlite.patterns import glob
from salticus.store.sqlite.queries import QUERIES
from salticus.types import (
    NEVER,
    PURPOSE,
    STATUS,
    Floats,
    HostState,
    Ints,
    Outcomes,
    Target,
    Times,
    Told,
)

CHUNK = 25_000  # pages that one statement reads; bounds its memory, and how long others wait

_NEVER = int(NEVER.astype(np.int64))


def table(db: sqlite3.Connection, after: int) -> PageTable:
    """Pages edited after a revision. What is edited meanwhile is in the next table too."""
    edited, revision = db.execute(QUERIES["edited_pages"], {"after": after}).fetchone()
    ids = _ints(edited)
    starts = range(0, max(1, len(ids)), CHUNK)
    chunks = (_columns(db, ids[start : start + CHUNK]) for start in starts)
    host, *times, kind, demand, cost, max_interval, idle, rests, found = zip(*chunks, strict=True)
    added, last_visit, last_answer = map(np.concatenate, times)
    return PageTable(
        ids=ids,
        host=_shared(host),
        added=added,
        last_visit=last_visit,
        last_answer=last_answer,
        kind=np.concatenate(kind),
        demand=np.concatenate(demand),
        cost=np.concatenate(cost),
        max_interval=np.nan_to_num(np.concatenate(max_interval), nan=np.inf),
        idle=np.concatenate(idle),
        rests=np.concatenate(rests),
        found=np.concatenate(found),
        revision=revision,
    )


def _columns(db: sqlite3.Connection, ids: Ints) -> tuple[Any, ...]:
    asked = {"ids": rows(ids.tolist()), "never": _NEVER}
    columns = db.execute(QUERIES["page_columns"], asked).fetchone()
    host, added, visited, answered, kind, demand, cost, max_interval, idlers, idled, *marked = (
        columns
    )
    names = msgspec.json.decode(host, type=list[str])
    times = map(_times, (added, visited, answered))
    floats = map(_floats, (demand, cost, max_interval))
    idle = np.zeros(len(ids), dtype=np.int64)
    rests, found = np.zeros((2, len(ids)), dtype=np.bool_)
    idle[_ints(idlers)] = _ints(idled)
    rests[_ints(marked[0])] = True
    found[_ints(marked[1])] = True
    return names, *times, _ints(kind).astype(np.int8), *floats, idle, rests, found


def fitting(db: sqlite3.Connection, ids: Ints, scopes: Sequence[Scope]) -> Ints:
    """The place of the first scope that each page is in; -1 = none."""
    spelt = rows([tuple(spelling(scope).values()) for scope in scopes])
    places = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(ids), CHUNK):
        asked = {"ids": rows(ids[start : start + CHUNK].tolist()), "scopes": spelt}
        places.append(_ints(db.execute(QUERIES["first_scopes"], asked).fetchone()[0]))
    return np.concatenate(places)


def spelling(scope: Scope) -> dict[str, str | None]:
    """A scope as the database is asked about it."""
    return {
        "url": glob(clean(scope.match)),
        "host": None if scope.host is None else glob(clean(scope.host)),
        "tag": clean(scope.tag),
    }


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


def targets(db: sqlite3.Connection, ids: Ints) -> list[Target]:
    """Targets in the order asked for, without those that are not in the store."""
    (found,) = db.execute(QUERIES["targets"], {"ids": rows(ids.tolist())}).fetchone()
    return msgspec.json.decode(found, type=list[Target])


def outcomes(db: sqlite3.Connection, visits: Ints) -> Outcomes:
    """Outcomes of the stored ones among the visits, ordered by visit."""
    asked = {"visits": rows(visits.tolist()), "never": _NEVER}
    visit, page, at, status, changed, since, age_s, purpose, propensity, chance = db.execute(
        QUERIES["outcomes"], asked
    ).fetchone()
    ids = _ints(visit)
    return Outcomes(
        visit=ids,
        page=_ints(page),
        at=_times(at),
        made=np.ones(len(ids), dtype=np.bool_),
        status=np.array([STATUS[s] for s in msgspec.json.decode(status)], dtype=np.int8),
        changed=_ints(changed).astype(np.int8),
        since=_times(since),
        age_s=_floats(age_s),
        purpose=np.array([PURPOSE[p] for p in msgspec.json.decode(purpose)], dtype=np.int8),
        propensity=_floats(propensity),
        chance=_floats(chance),
    )


def outcomes_after(db: sqlite3.Connection, visit: int) -> Outcomes:
    """Outcomes of all visits with a higher number."""
    return outcomes(db, _ints(db.execute(QUERIES["visits_after"], {"visit": visit}).fetchone()[0]))


def hosts(db: sqlite3.Connection) -> list[HostState]:
    """Every host, ordered by name."""
    found = [dict(row) for row in db.execute(QUERIES["hosts"])]
    return [HostState(**row | {"robots": text(row["robots"])}) for row in found]


def recall(db: sqlite3.Connection) -> bytes | None:
    """The run state."""
    row = db.execute(QUERIES["recall"]).fetchone()
    return None if row is None else bytes(row[0])


def stamp(db: sqlite3.Connection) -> Stamp:
    """What others have committed, as SQLite numbers it for this connection."""
    (state,) = db.execute(QUERIES["states_remembered"]).fetchone()
    (data,) = db.execute(QUERIES["data_version"]).fetchone()
    return Stamp(data, state)


def page(db: sqlite3.Connection, url: str) -> PageState:
    """The page with this canonical URL."""
    row = db.execute(f"{QUERIES['page_states']} WHERE url = :url", {"url": url}).fetchone()
    if row is None:
        raise UnknownPage(url)
    return state(row)


def state(row: sqlite3.Row) -> PageState:
    """A page as people see it."""
    told = row["told"]
    read = {name: msgspec.json.decode(row[name]) for name in ("tags", "fields", "sources")}
    flags = {name: bool(row[name]) for name in ("paused", "unlisted")}
    return PageState(
        **dict(row)
        | read
        | flags
        | {
            "value": text(row["value"]),
            "told": told and msgspec.json.decode(told, type=Told),
        }
    )


def content(db: sqlite3.Connection, page: int) -> tuple[bytes, str] | None:
    """Latest content with its type."""
    row = db.execute(QUERIES["content"], {"page": page}).fetchone()
    return None if row is None else (unpack(row["body"]), row["content_type"])


def summary(db: sqlite3.Connection, path: Path) -> Summary:
    """Counts; one pass over the pages, none over the visits."""
    asked = {"patience": DROPPED}
    counts: dict[str, Any] = dict(db.execute(QUERIES["summary"], asked).fetchone())
    by_status = {row[0]: row[1] for row in db.execute(QUERIES["count_by_status"])}
    files = (path, path.with_name(f"{path.name}-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    return Summary(**counts, by_status=by_status, bytes=size)
