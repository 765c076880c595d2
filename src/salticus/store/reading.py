"""Questions to the database. Long answers come as JSON in one row, made without Python's lock."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from salticus.errors import StoreError, UnknownPage
from salticus.store.base import PageState, PageTable, Summary
from salticus.store.packing import rows, text, unpack
from salticus.store.queries import QUERIES
from salticus.types import NEVER, PURPOSE, STATUS, Floats, HostState, Ints, Outcomes, Target, Times

CHUNK = 250_000  # pages that one statement reads; bounds its memory

_NEVER = int(NEVER.astype(np.int64))


def table(db: sqlite3.Connection, after: int) -> PageTable:
    """Pages edited after a revision. What is edited meanwhile is in the next table too."""
    edited, revision = db.execute(QUERIES["edited_pages"], {"after": after}).fetchone()
    ids = _ints(edited)
    starts = range(0, max(1, len(ids)), CHUNK)
    chunks = (_columns(db, ids[start : start + CHUNK]) for start in starts)
    host, added, last_visit, demand, cost, max_interval = zip(*chunks, strict=True)
    return PageTable(
        ids=ids,
        host=_shared(host),
        added=np.concatenate(added),
        last_visit=np.concatenate(last_visit),
        demand=np.concatenate(demand),
        cost=np.concatenate(cost),
        max_interval=np.nan_to_num(np.concatenate(max_interval), nan=np.inf),
        revision=revision,
    )


def _columns(db: sqlite3.Connection, ids: Ints) -> tuple[Any, ...]:
    asked = {"ids": rows(ids.tolist()), "never": _NEVER}
    host, added, last_visit, *floats = db.execute(QUERIES["page_columns"], asked).fetchone()
    names = msgspec.json.decode(host, type=list[str])
    return names, _times(added), _times(last_visit), *map(_floats, floats)


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
    """Targets in the order asked for; every page must be in the store."""
    (found,) = db.execute(QUERIES["targets"], {"ids": rows(ids.tolist())}).fetchone()
    decoded = msgspec.json.decode(found, type=list[Target])
    if len(decoded) < len(ids):
        missing = sorted({*ids.tolist()} - {target.page for target in decoded})
        raise StoreError(f"the store has no page with the id {missing[0]}")
    return decoded


def outcomes(db: sqlite3.Connection, visits: Ints) -> Outcomes:
    """Outcomes of the stored ones among the visits, ordered by visit."""
    asked = {"visits": rows(visits.tolist()), "never": _NEVER}
    visit, page, at, status, changed, since, age_s, purpose, propensity = db.execute(
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
    )


def hosts(db: sqlite3.Connection) -> list[HostState]:
    """Every host, ordered by name."""
    found = [dict(row) for row in db.execute(QUERIES["hosts"])]
    return [HostState(**row | {"robots": text(row["robots"])}) for row in found]


def recall(db: sqlite3.Connection) -> bytes | None:
    """The run state."""
    row = db.execute(QUERIES["recall"]).fetchone()
    return None if row is None else bytes(row[0])


def page(db: sqlite3.Connection, url: str) -> PageState:
    """The page with this canonical URL."""
    row = db.execute(QUERIES["page"], {"url": url}).fetchone()
    if row is None:
        raise UnknownPage(url)
    return PageState(
        **dict(row)
        | {
            "tags": msgspec.json.decode(row["tags"]),
            "value": text(row["value"]),
            "fields": msgspec.json.decode(row["fields"]),
        }
    )


def content(db: sqlite3.Connection, page: int) -> tuple[bytes, str] | None:
    """Latest content with its type."""
    row = db.execute(QUERIES["content"], {"page": page}).fetchone()
    return None if row is None else (unpack(row["body"]), row["content_type"])


def summary(db: sqlite3.Connection, path: Path) -> Summary:
    """Counts; one pass over the pages, none over the visits."""
    counts: dict[str, Any] = dict(db.execute(QUERIES["summary"]).fetchone())
    by_status = {row[0]: row[1] for row in db.execute(QUERIES["count_by_status"])}
    files = (path, path.with_name(f"{path.name}-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    return Summary(**counts, by_status=by_status, bytes=size)
