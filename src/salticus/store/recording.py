"""What a batch of records does to the database, in one statement a table.

A loop that is busy fetching must not share Python's lock with a thread that steps row by row, so
every statement here takes the whole batch at once and runs without the lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import zstandard

from salticus.errors import StoreError
from salticus.store.database import transaction
from salticus.store.packing import Span, pack, raw, rows, short
from salticus.store.queries import QUERIES
from salticus.types import HostState, Observation, Record, Value

Row = tuple[Any, ...]
Write = tuple[str, dict[str, bytes]]


class Recorder:
    """Writes records through one connection; lives in one thread."""

    def __init__(self, db: sqlite3.Connection, *, keep_content: bool) -> None:
        self.db = db
        self.keep_content = keep_content
        self._compressor = zstandard.ZstdCompressor(level=1)

    def record(self, records: Iterable[Record]) -> None:
        """Commit the records whose visits are not stored yet."""
        first: dict[int, Record] = {}
        for record in records:
            first.setdefault(record.observation.visit, record)
        try:
            self._commit(first.values())
        except sqlite3.IntegrityError:
            for visit in self._stored(first):
                del first[visit]
            self._commit(first.values())

    def _stored(self, visits: Iterable[int]) -> list[int]:
        found = self.db.execute(QUERIES["stored_visits"], {"visits": rows(list(visits))})
        return [visit for (visit,) in found]

    def _commit(self, records: Collection[Record]) -> None:
        hosts = {r.host.host: r.host for r in records if r.host is not None}
        writes = [write for batch in _rounds(records) for write in self._visits(batch)]
        writes += self._hosts(hosts.values())
        pages = 0
        with transaction(self.db):
            for query, parameters in writes:
                done = self.db.execute(QUERIES[query], parameters).rowcount
                pages += done if query == "update_pages" else 0
            if pages < len(records):
                raise StoreError("a visit to a page that is not in the store cannot be recorded")

    def _visits(self, records: Sequence[Record]) -> Iterator[Write]:
        """What visits to different pages write; the pages last, as they tell what went before."""
        visits = {"rows": rows([_visit_row(r, keep=self.keep_content) for r in records])}
        yield "insert_observations", visits
        yield from self._values([r.observation for r in records])
        yield from self._content([r for r in records if self.keep_content])
        yield "update_pages", visits

    def _values(self, observations: Iterable[Observation]) -> Iterator[Write]:
        new = [(o, value) for o in observations if (value := o.value) is not None]
        if new:
            long = [None if short(value.text) else raw(value.text) for _, value in new]
            packed, spans = pack(self._compressor, long)
            table = [_value_row(o, v, span) for (o, v), span in zip(new, spans, strict=True)]
            yield "insert_values", {"rows": rows(table), "packed": packed}

    def _content(self, records: Iterable[Record]) -> Iterator[Write]:
        kept = [r for r in records if r.content is not None]
        if kept:
            packed, spans = pack(self._compressor, [r.content for r in kept])
            table = rows([_content_row(r, span) for r, span in zip(kept, spans, strict=True)])
            yield "delete_content", {"rows": table}
            yield "insert_content", {"rows": table, "packed": packed}

    def _hosts(self, hosts: Collection[HostState]) -> Iterator[Write]:
        if hosts:
            texts = [None if h.robots is None else raw(h.robots) for h in hosts]
            packed, spans = pack(self._compressor, texts)
            table = [_host_row(h, span) for h, span in zip(hosts, spans, strict=True)]
            yield "replace_hosts", {"rows": rows(table), "packed": packed}


def _rounds(records: Iterable[Record]) -> list[list[Record]]:
    """Batches in which each page occurs once: first visits, second visits, …"""
    rounds: list[list[Record]] = []
    times: dict[int, int] = {}
    for record in records:
        page = record.observation.page
        number = times[page] = times.get(page, -1) + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(record)
    return rounds


def _visit_row(record: Record, *, keep: bool) -> Row:
    o = record.observation
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
        None if o.value is None else o.value.kind,
        keep and record.content is not None,
    )


def _value_row(o: Observation, value: Value, span: Span) -> Row:
    text = value.text if span == (None, None) else None
    return (o.visit, o.page, o.at, o.digest, value.kind, value.fields, text, *span)


def _content_row(record: Record, span: Span) -> Row:
    return (record.observation.visit, record.observation.page, record.content_type, *span)


def _host_row(host: HostState, span: Span) -> Row:
    return (host.host, host.next_at, host.strikes, host.robots_code, host.robots_until, *span)
