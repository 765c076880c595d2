"""What a batch of records does to the database, in one statement.

A loop that is busy fetching must not share Python's lock with a thread that steps row by row. So
the whole batch is one INSERT into a view, which runs without the lock; its trigger does the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import zstandard

from salticus.store.packing import Span, pack, raw, rows, short
from salticus.store.queries import QUERIES
from salticus.types import HostState, Record, Value


class Recorder:
    """Writes records through one connection; lives in one thread."""

    def __init__(self, db: sqlite3.Connection, *, keep_content: bool) -> None:
        self.db = db
        self.keep_content = keep_content
        self._compressor = zstandard.ZstdCompressor(level=1)

    def record(self, records: Sequence[Record]) -> None:
        """Commit the records whose visits are not stored yet."""
        n = len(records)
        bodies = [
            *(_long(r.observation.value) for r in records),
            *(r.content if self.keep_content else None for r in records),
            *(_robots(host) for r in records for host in r.hosts),
        ]
        packed, spans = pack(self._compressor, bodies)
        robots = iter(spans[2 * n :])
        table = [
            (*_visit(r, long, body), *_hosts(r.hosts, [next(robots) for _ in r.hosts]))
            for r, long, body in zip(records, spans[:n], spans[n : 2 * n], strict=True)
        ]
        self.db.execute(QUERIES["record"], {"rows": rows(table), "packed": packed})


def _long(value: Value | None) -> bytes | None:
    return None if value is None or short(value.text) else raw(value.text)


def _robots(host: HostState) -> bytes | None:
    return None if host.robots is None else raw(host.robots)


def _visit(record: Record, long: Span, body: Span) -> tuple[Any, ...]:
    o, value = record.observation, record.observation.value
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
        None if value is None else (value.kind, None if long[1] else value.text, value.fields),
        *long,
        (record.content_type,) if body[1] else None,
        *body,
    )


def _hosts(hosts: Sequence[HostState], spans: Sequence[Span]) -> tuple[Any, ...]:
    """The hosts of one record, and where their robots.txt lie, one after the other."""
    if not hosts:
        return None, None, None
    start = min((first for first, _ in spans if first), default=1)
    inside = ((first and first - start + 1, size) for first, size in spans)
    table = [_host(host, *span) for host, span in zip(hosts, inside, strict=True)]
    return table, start, sum(size or 0 for _, size in spans)


def _host(host: HostState, *robots: int | None) -> tuple[Any, ...]:
    return host.host, host.next_at, host.strikes, host.robots_code, host.robots_until, *robots
