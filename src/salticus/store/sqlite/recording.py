"""What a batch of records does to the database, in one statement.

A loop that is busy fetching must not share Python's lock with a thread that steps row by row. So
the whole batch is one INSERT into a view, which runs without the lock; its trigger does the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import zstandard

from salticus.config import Caps
from salticus.store.news import place_of
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.linking import link
from salticus.store.sqlite.merging import move, unite
from salticus.store.sqlite.packing import Span, pack, raw, rows, short
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.telling import sound
from salticus.types import HostState, Observation, Record

Row = tuple[Any, ...]


class Recorder:
    """Writes records through one connection; lives in one thread."""

    def __init__(self, db: sqlite3.Connection, *, keep_content: bool, caps: Caps) -> None:
        self.db = db
        self.caps = caps
        self.keep_content = keep_content
        self._compressor = zstandard.ZstdCompressor(level=1)

    def record(self, records: Sequence[Record]) -> None:
        """Commit the records whose visits are not stored yet."""
        bodies = [self._bodies(record) for record in records]
        packed, spans = pack(self._compressor, [body for some in bodies for body in some])
        each = iter(spans)
        table = [
            (
                *_visit(record.observation),
                *_finds(record, [next(each) for _ in some]),
                record.canonical and (place_of(record.canonical) or (None,))[0],
            )
            for record, some in zip(records, bodies, strict=True)
        ]
        batch = {"rows": rows(table), "packed": packed}
        if any(map(_reaches_out, records)):
            with transaction(self.db):
                self._record_news(records, batch)
        else:
            self.db.execute(QUERIES["record"], batch)

    def _record_news(self, records: Sequence[Record], batch: dict[str, bytes]) -> None:
        """Record visits that say more than how their own page is."""
        news = [record for record in self._fresh(records) if _reaches_out(record)]
        self.db.execute(QUERIES["record"], batch)
        self.db.execute(QUERIES["bump_revision"])
        for record in news:
            if record.entries is not None:
                link(self.db, record, self.caps)
            move(self.db, record)
            unite(self.db, record)
            sound(self.db, record.alerts)

    def _fresh(self, records: Sequence[Record]) -> Iterable[Record]:
        """The records that count: the first of each visit that is not stored yet."""
        seen = [record.observation for record in records]
        gone = self._known("forgotten_pages", pages=[o.page for o in seen])
        stored = self._known("stored_visits", visits=[o.visit for o in seen])
        first: dict[int, Record] = {}
        for record in records:
            if record.observation.page not in gone and record.observation.visit not in stored:
                first.setdefault(record.observation.visit, record)
        return first.values()

    def _known(self, query: str, **asked: list[int]) -> set[int]:
        (found,) = self.db.execute(
            QUERIES[query], {name: rows(ids) for name, ids in asked.items()}
        ).fetchone()
        return set(msgspec.json.decode(found, type=list[int]))

    def _bodies(self, record: Record) -> list[bytes | None]:
        """What is stored compressed: the value if it is long, the content, each robots.txt."""
        value, content = record.observation.value, record.content if self.keep_content else None
        long = None if value is None or short(value.text) else raw(value.text)
        if long is None and content is None and not record.hosts:
            return []
        robots = [None if host.robots is None else raw(host.robots) for host in record.hosts]
        return [long, content, *robots]


def _reaches_out(record: Record) -> bool:
    """Whether a visit concerns other pages, or its host as a whole."""
    return bool(record.moved or record.canonical or record.entries is not None or record.alerts)


def _visit(o: Observation) -> Row:
    return (
        o.visit,
        o.page,
        o.at,
        o.purpose,
        o.propensity,
        o.status,
        o.code,
        o.changed,
        o.since,
        o.age_s,
        o.digest,
        o.fault,
        o.size,
        o.elapsed_s,
        o.etag,
        o.last_modified,
        o.chance,
    )


def _finds(record: Record, spans: Sequence[Span]) -> Row:
    """What a visit found beyond its observation, and the part of the blob that holds it."""
    value = record.observation.value
    if not spans:
        short_value = None if value is None else (value.kind, value.fields, value.text)
        return short_value, None, None, None, None
    start = min((first for first, _ in spans if first), default=1)
    long, body, *robots = [(first and first - start + 1, size) for first, size in spans]
    return (
        None
        if value is None
        else (value.kind, value.fields, None if long[1] else value.text, *long),
        (record.content_type, *body) if body[1] else None,
        [_host(host, span) for host, span in zip(record.hosts, robots, strict=True)] or None,
        start,
        sum(size or 0 for _, size in spans),
    )


def _host(host: HostState, robots: Span) -> Row:
    return host.host, host.next_at, host.strikes, host.robots_code, host.robots_until, *robots
