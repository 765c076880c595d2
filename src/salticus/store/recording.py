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
from salticus.types import ANSWERED, HostState, Observation, Record, Value

_ANSWERED = frozenset(status.label for status in ANSWERED)

Row = tuple[Any, ...]
Write = tuple[str, dict[str, bytes]]


class Recorder:
    """Writes records through one connection; lives in one thread."""

    def __init__(self, db: sqlite3.Connection, *, keep_content: bool) -> None:
        self.db = db
        self.keep_content = keep_content
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._robots: dict[str, Row] = {}

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
        observations = [r.observation for r in records]
        hosts = {r.host.host: r.host for r in records if r.host is not None}
        writes = [
            *self._values(observations),
            *self._content(records),
            *self._hosts(hosts.values()),
        ]
        with transaction(self.db):
            for batch in _rounds(observations):
                self._observe(batch)
            for query, parameters in writes:
                self.db.execute(QUERIES[query], parameters)
        self._robots.update((name, _robots(host)) for name, host in hosts.items())

    def _observe(self, observations: Sequence[Observation]) -> None:
        parameters = {"rows": rows([_observation_row(o) for o in observations])}
        self.db.execute(QUERIES["insert_observations"], parameters)
        updated = self.db.execute(QUERIES["update_pages"], parameters).rowcount
        if updated < len(observations):
            raise StoreError("a visit to a page that is not in the store cannot be recorded")

    def _values(self, observations: Iterable[Observation]) -> Iterator[Write]:
        new = [(o, value) for o in observations if (value := _new_value(o)) is not None]
        if new:
            long = [None if short(value.text) else raw(value.text) for _, value in new]
            packed, spans = pack(self._compressor, long)
            table = [_value_row(o, v, span) for (o, v), span in zip(new, spans, strict=True)]
            yield "insert_values", {"rows": rows(table), "packed": packed}

    def _content(self, records: Iterable[Record]) -> Iterator[Write]:
        kept = [r for r in records if self.keep_content and r.content is not None]
        if kept:
            packed, spans = pack(self._compressor, [r.content for r in kept])
            table = [_content_row(r, span) for r, span in zip(kept, spans, strict=True)]
            yield "replace_content", {"rows": rows(table), "packed": packed}

    def _hosts(self, hosts: Iterable[HostState]) -> Iterator[Write]:
        """Whole where robots.txt is news; else only what every visit changes."""
        news, others = list[HostState](), list[HostState]()
        for host in hosts:
            known = self._robots.get(host.host) == _robots(host)
            (others if known else news).append(host)
        if others:
            yield "update_hosts", {"rows": rows([(h.host, h.next_at, h.strikes) for h in others])}
        if news:
            texts = [None if h.robots is None else raw(h.robots) for h in news]
            packed, spans = pack(self._compressor, texts)
            table = [_host_row(h, span) for h, span in zip(news, spans, strict=True)]
            yield "replace_hosts", {"rows": rows(table), "packed": packed}


def _rounds(observations: Sequence[Observation]) -> list[list[Observation]]:
    """Batches in which each page occurs once: first visits, second visits, …"""
    rounds: list[list[Observation]] = []
    times: dict[int, int] = {}
    for observation in observations:
        number = times.get(observation.page, 0)
        times[observation.page] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(observation)
    return rounds


def _new_value(o: Observation) -> Value | None:
    return o.value if o.value is not None and o.status in _ANSWERED else None


def _observation_row(o: Observation) -> Row:
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
        None if (value := _new_value(o)) is None else value.kind,
    )


def _value_row(o: Observation, value: Value, span: Span) -> Row:
    text = value.text if span == (None, None) else None
    return (o.visit, o.page, o.at, o.digest, value.kind, value.fields, text, *span)


def _content_row(record: Record, span: Span) -> Row:
    return (record.observation.page, record.observation.at, record.content_type, *span)


def _host_row(host: HostState, span: Span) -> Row:
    return (host.host, host.next_at, host.strikes, host.robots_code, host.robots_until, *span)


def _robots(host: HostState) -> Row:
    return host.robots, host.robots_code, host.robots_until
