"""What is read from the database: columns of pages and outcomes, rows of the exchange format,
changes. Long answers come as JSON in one row, made without Python's lock."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from salticus.config import Scope
from salticus.errors import InputError
from salticus.store.base import PageTable
from salticus.store.nouns import FIELD_COLUMNS, AlertState, Stamp
from salticus.store.sqlite.database import connect
from salticus.store.sqlite.packing import clean, glob, rows, text, unpack
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.trouble import explained
from salticus.types import (
    NEVER,
    PURPOSE,
    STATUS,
    Change,
    Counts,
    Find,
    Findings,
    Floats,
    FoundPages,
    Gauge,
    HostState,
    Ints,
    Looks,
    Outcomes,
    Times,
    Value,
)
from salticus.types.prices import priced

CHUNK = 25_000  # pages that one statement reads; bounds its memory, and how long others wait

_STREAMED = 1000  # rows
_FACTS = 20_000  # rows that are held at once
_FEW = 500  # of them as objects

NEVER_US = int(NEVER.astype(np.int64))

Row = dict[str, Any]


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


def _unknown(column: str) -> Times:
    """Times of which some are not known."""
    told = msgspec.json.decode(column, type=list[int | None])
    return np.array([NEVER_US if t is None else t for t in told], dtype=np.int64).view("M8[us]")


def _times(column: str) -> Times:
    return _ints(column).view("datetime64[us]")


def _floats(column: str) -> Floats:
    return np.array(msgspec.json.decode(column, type=list[float | None]), dtype=np.float64)


def listed(db: sqlite3.Connection, query: str, **asked: Sequence[Any]) -> Ints:
    """What a query answers with one JSON array of numbers; it is asked with arrays of rows."""
    given = {name: rows(table) for name, table in asked.items()}
    return _ints(db.execute(QUERIES[query], given).fetchone()[0])


def outcomes_of(*columns: Sequence[Any]) -> Outcomes:
    """Outcomes from the columns visit, page, at, status, changed, since, age_s, purpose,
    propensity, chance and value, if that is new and short; a time that is not known is
    `NEVER_US`."""
    visit, page, at, status, changed, since, age_s, purpose, propensity, chance, value = columns
    price, stock = priced(value)
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
        chance=chance,
        price=price,
        stock=stock,
    )


def scan(path: Path, table: str, page: int | None) -> Iterator[Row]:
    """Rows of a table over a connection of its own, in order of time."""
    tables: dict[str, tuple[str, Callable[[sqlite3.Row], Row]]] = {  # their order, and their rows
        "pages": ("ORDER BY page_id", _page),
        "visits": ("ORDER BY observations.at, observations.visit", _visit),
        "values": ("ORDER BY at, visit", _value),
        "signals": ("ORDER BY at, id", dict),
        "links": ("ORDER BY appeared, source_id, page_id", dict),
        "demand": ("GROUP BY at, page ORDER BY at, page_id", dict),  # counted at several times
        "requests": ("ORDER BY at, id", _request),
    }
    if table not in tables:
        raise InputError(f"the store has no table {table!r}; it has {', '.join(tables)}")
    order, finish = tables[table]
    where = "" if page is None else "WHERE page_id = :page"
    return _stream(path, f"{QUERIES[f'scan_{table}']} {where} {order}", {"page": page}, finish)


def _stream(
    path: Path, query: str, parameters: Row, finish: Callable[[sqlite3.Row], Row]
) -> Iterator[Row]:
    with explained(path), closing(connect(path, read_only=True)) as db:
        cursor = db.execute(query, parameters)
        while chunk := cursor.fetchmany(_STREAMED):
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
        while columns := _next_columns(cursor, _FACTS):
            yield outcomes_of(*columns)


def past_counts(path: Path, until: int) -> Iterator[Counts]:
    """Counts in order of time, some ten thousand at once."""
    with explained(path), closing(connect(path, read_only=True)) as db:
        cursor = db.execute(QUERIES["past_counts"], {"until": until})
        while columns := _next_columns(cursor, _FACTS):
            page, at, clicks, shown, number = np.array(columns, dtype=np.int64)
            yield Counts(page, at.view("M8[us]"), clicks, shown, int(number.max()))


def _next_columns(cursor: sqlite3.Cursor, most: int) -> list[list[Any]]:
    """The next rows as columns; none if there are no more.

    Rows are taken a few at a time: each is an object that the garbage collector follows, and with
    many of them at once it stops all threads again and again.
    """
    columns: list[list[Any]] = []
    for _ in range(0, most, _FEW):
        if not (few := cursor.fetchmany(_FEW)):
            break
        columns = columns or [[] for _ in few[0]]
        for column, values in zip(columns, zip(*few, strict=True), strict=True):
            column.extend(values)
    return columns


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


def content(db: sqlite3.Connection, page: int) -> tuple[bytes, str] | None:
    """Latest content with its type."""
    row = db.execute(QUERIES["content"], {"page": page}).fetchone()
    return None if row is None else (unpack(row["body"]), row["content_type"])


def changes(db: sqlite3.Connection, after: int, *, limit: int = 1000) -> list[Change]:
    """New values with a number above `after`, in order."""
    found = db.execute(QUERIES["changes"], {"after": after, "limit": limit})
    return [_change(row) for row in found]


def _change(row: sqlite3.Row) -> Change:
    before = _valued(row, "earlier_")
    return Change(
        seq=row["seq"],
        at=row["at"],
        page=row["page"],
        url=row["url"],
        tags=tuple(msgspec.json.decode(row["tags"])),
        changed=None if before is None or row["changed"] is None else bool(row["changed"]),
        before=before,
        after=_valued(row) or Value("", ""),
    )


def looks(db: sqlite3.Connection, after: int = 0, *, limit: int = 100_000) -> Looks:
    """What visits to sources saw, those stored after one."""
    *columns, last = db.execute(QUERIES["looks"], {"after": after, "limit": limit}).fetchone()
    source, at, since = columns[:3]
    shown, new, kept, gone = map(_ints, columns[3:])
    when = _times(at), _unknown(since)
    return Looks(_ints(source), *when, shown, new, kept, gone, last or after)


def finds(db: sqlite3.Connection, after: int = 0, *, limit: int = 100_000) -> FoundPages:
    """New pages, those found after one."""
    *columns, last = db.execute(QUERIES["finds"], {"after": after, "limit": limit}).fetchone()
    page, source, at, since = columns
    return FoundPages(_ints(page), _ints(source), _times(at), _times(since), last=last or after)


def standing(db: sqlite3.Connection, pages: Ints) -> Times:
    """When a source was last seen to show each page."""
    found = db.execute(QUERIES["standing"], {"pages": rows(pages.tolist())})
    return np.array([row[0] or NEVER_US for row in found], dtype=np.int64).view("M8[us]")


def news(db: sqlite3.Connection, after: int, *, limit: int = 1000) -> list[Find]:
    """New pages with a number above `after`, in order, for people."""
    found = db.execute(QUERIES["news"], {"after": after, "limit": limit})
    return [Find(**dict(row) | {"tags": tuple(msgspec.json.decode(row["tags"]))}) for row in found]


def last_find(db: sqlite3.Connection) -> int:
    """The number of the newest find; 0 if there is none."""
    return int(db.execute(QUERIES["last_find"]).fetchone()[0])


def value(db: sqlite3.Connection, page: int) -> Value | None:
    """The latest value of a page."""
    row = db.execute(QUERIES["latest_value"], {"page": page}).fetchone()
    return None if row is None else _valued(row)


def _valued(row: sqlite3.Row, prefix: str = "") -> Value | None:
    kind, stored, fields = (row[f"{prefix}{name}"] for name in ("kind", "value", "fields"))
    return None if kind is None else Value(kind, text(stored) or "", msgspec.json.decode(fields))


def last_change(db: sqlite3.Connection) -> int:
    """The number of the newest change."""
    return int(db.execute(QUERIES["last_change"]).fetchone()[0])


def done(db: sqlite3.Connection, reader: str) -> int:
    """How far a reader has come."""
    return int(db.execute(QUERIES["done"], {"reader": clean(reader)}).fetchone()[0])


def recall(db: sqlite3.Connection) -> bytes | None:
    """The run state."""
    whole, pieces = io.BytesIO(), 0
    for (piece,) in db.execute(QUERIES["recall"]):
        whole.write(piece)
        pieces += 1
    return whole.getvalue() if pieces else None


def stamp(db: sqlite3.Connection) -> Stamp:
    """What others have committed, as SQLite numbers it for this connection."""
    (state,) = db.execute(QUERIES["states_remembered"]).fetchone()
    (data,) = db.execute(QUERIES["data_version"]).fetchone()
    return Stamp(data, state)


def outcomes(db: sqlite3.Connection, visits: Ints) -> Outcomes:
    """Outcomes of the stored ones among the visits, ordered by visit."""
    return _outcomes(db, rows(visits.tolist()))


def _outcomes(db: sqlite3.Connection, visits: bytes | str) -> Outcomes:
    asked = {"visits": visits, "never": NEVER_US}
    columns = db.execute(QUERIES["outcomes"], asked).fetchone()
    return outcomes_of(*map(msgspec.json.decode, columns))


def outcomes_after(db: sqlite3.Connection, visit: int) -> Outcomes:
    """Outcomes of all visits with a higher number."""
    (later,) = db.execute(QUERIES["visits_after"], {"visit": visit}).fetchone()
    return _outcomes(db, later)


def hosts(db: sqlite3.Connection) -> list[HostState]:
    """Every host, ordered by name."""
    found = [dict(row) for row in db.execute(QUERIES["hosts"])]
    return [HostState(**row | {"robots": text(row["robots"])}) for row in found]


def gauged(db: sqlite3.Connection, start: int, end: int) -> tuple[list[Gauge], Findings]:
    """The ticks that began from µs `start` up to `end`, and what their samples found."""
    span = {"start": start, "end": end}
    ticks = [Gauge(**dict(row)) for row in db.execute(QUERIES["gauges"], span)]
    return ticks, Findings.of([tuple(row) for row in db.execute(QUERIES["findings"], span)])


def alerts(db: sqlite3.Connection, *, past: bool = False) -> list[AlertState]:
    """Alerts that last, or all of them."""
    return [AlertState(**dict(row)) for row in db.execute(QUERIES["alerts"], {"past": past})]
