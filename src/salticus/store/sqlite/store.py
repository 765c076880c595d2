"""The default store: one SQLite file."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from salticus.config import Caps, Scope
from salticus.errors import StoreMissing
from salticus.store.base import (
    AlertState,
    Counted,
    Edit,
    Health,
    History,
    Hit,
    Loaded,
    PageState,
    PageTable,
    Query,
    Stamp,
    Summary,
)
from salticus.store.sqlite import (
    counting,
    database,
    editing,
    finding,
    gauging,
    reading,
    scanning,
    searching,
    telling,
)
from salticus.store.sqlite.lane import Lane
from salticus.store.sqlite.loading import load
from salticus.store.sqlite.lock import holder_of, instance_lock
from salticus.store.sqlite.queries import migrations
from salticus.store.sqlite.recording import Recorder
from salticus.types import (
    Alert,
    Change,
    Count,
    Counts,
    Findings,
    Gauge,
    HostState,
    Ints,
    Mark,
    Member,
    NewPage,
    Outcomes,
    Record,
    Request,
    Sample,
    Sighting,
    Signal,
    Target,
    Told,
    Value,
)
from salticus.urls import canonical

DEFAULT_CAPS = Caps()
MOVED = 500  # visits between two moves into the main file


class SqliteStore:
    """Pages and visits in one SQLite file in WAL mode.

    All writes go through one thread and its connection, all reads through another, so that
    planning never waits for a commit; a third moves what was committed into the main file, so that
    no commit waits for the disk. `open` makes the file if there is none.
    """

    def __init__(self, path: str | Path, *, keep_content: bool = True) -> None:
        self.path = Path(path)
        self.keep_content = keep_content
        self._writes, self._reads, self._moves = (Lane(self.path) for _ in range(3))
        self._writer: sqlite3.Connection
        self._reader: sqlite3.Connection
        self._mover: sqlite3.Connection
        self._moving: asyncio.Task[None] | None = None
        self._unmoved = 0
        self._recorder: Recorder
        self._charged: tuple[Sequence[tuple[Scope, float]], int] = ((), -1)

    @classmethod
    async def open(
        cls, place: str | Path, *, keep_content: bool = True, create: bool = True
    ) -> Self:
        store = cls(place, keep_content=keep_content)
        if not create and not await asyncio.to_thread(store.path.exists):
            raise StoreMissing(f"{place}: there is no store yet; `salticus add URL` makes it")
        try:
            store._writer = await store._writes.run(database.create, store.path, migrations())
            store._reader = await store._reads.run(database.connect, store.path)
            store._mover = await store._moves.run(database.connect, store.path)
        except BaseException:
            for lane in (store._writes, store._reads, store._moves):
                lane.close()
            raise
        store._recorder = Recorder(store._writer, keep_content=keep_content, caps=DEFAULT_CAPS)
        return store

    @property
    def caps(self) -> Caps:
        return self._recorder.caps

    @caps.setter
    def caps(self, caps: Caps) -> None:
        self._recorder.caps = caps

    async def add(self, pages: Sequence[NewPage], *, at: int) -> int:
        return await self._writes.run(editing.add, self._writer, pages, at)

    async def table(self, after: int = -1) -> PageTable:
        return await self._reads.run(reading.table, self._reader, after)

    async def targets(self, pages: Ints) -> list[Target]:
        return await self._reads.run(reading.targets, self._reader, pages)

    async def record(self, records: Sequence[Record]) -> None:
        await self._writes.run(self._recorder.record, records)
        self._unmoved += len(records)
        if self._unmoved >= MOVED and (self._moving is None or self._moving.done()):
            if self._moving is not None:
                await self._moving  # it has ended: raises if the disk refused it
            self._unmoved = 0
            self._moving = asyncio.create_task(self._moves.run(database.checkpoint, self._mover))

    async def load(
        self, pages: Iterable[Sequence[NewPage]], history: History, *, at: int, most: int
    ) -> Loaded:
        return await self._writes.run(load, self._recorder, pages, history, at=at, most=most)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        with instance_lock(self.path):
            yield

    async def holder(self) -> str | None:
        return await asyncio.to_thread(holder_of, self.path)

    async def health(self) -> Health:
        wrong = await self._reads.run(database.damaged, self._reader)
        free = await asyncio.to_thread(shutil.disk_usage, self.path.parent)
        return Health(wrong, (await self.summary()).bytes, free.free)

    async def outcomes(self, visits: Ints) -> Outcomes:
        return await self._reads.run(reading.outcomes, self._reader, visits)

    async def outcomes_after(self, visit: int) -> Outcomes:
        return await self._reads.run(reading.outcomes_after, self._reader, visit)

    async def hosts(self) -> list[HostState]:
        return await self._reads.run(reading.hosts, self._reader)

    async def remember(self, state: bytes) -> None:
        await self._writes.run(editing.remember, self._writer, state)

    async def recall(self) -> bytes | None:
        return await self._reads.run(reading.recall, self._reader)

    async def stamp(self) -> Stamp:
        return await self._reads.run(reading.stamp, self._reader)

    async def notice(self, signals: Sequence[Signal]) -> None:
        await self._writes.run(editing.notice, self._writer, signals)

    async def told(self, rows: Sequence[Told]) -> int:
        return await self._writes.run(telling.told, self._writer, rows)

    async def ids(self, urls: Sequence[str]) -> Ints:
        return await self._reads.run(counting.ids, self._reader, urls)

    async def count(self, rows: Sequence[Count]) -> int:
        return (await self.take(rows)).rows

    async def take(self, rows: Sequence[Count], mark: Mark | None = None) -> Counted:
        return await self._writes.run(counting.take, self._writer, rows, mark)

    async def marks(self) -> list[Mark]:
        return await self._reads.run(counting.marks, self._reader)

    async def counts(self, after: int = 0, *, limit: int = 250_000) -> Counts:
        return await self._reads.run(counting.counts, self._reader, after, limit)

    async def ask(self, requests: Sequence[Request]) -> None:
        await self._writes.run(counting.ask, self._writer, requests)

    async def asked(self, after: int = 0) -> list[Request]:
        return await self._reads.run(counting.asked, self._reader, after)

    async def alerts(self, *, past: bool = False) -> list[AlertState]:
        return await self._reads.run(telling.alerts, self._reader, past=past)

    async def sound(self, alerts: Sequence[Alert]) -> None:
        await self._writes.run(telling.raise_, self._writer, alerts)

    async def gauge(self, tick: Gauge, sample: Sample) -> None:
        await self._writes.run(gauging.gauge, self._writer, tick, sample)

    async def gauged(self, start: int, end: int) -> tuple[list[Gauge], Findings]:
        return await self._reads.run(gauging.gauged, self._reader, start, end)

    async def empanel(self, members: Sequence[Member]) -> None:
        await self._writes.run(gauging.empanel, self._writer, members)

    async def panel(self) -> list[Member]:
        return await self._reads.run(gauging.panel, self._reader)

    async def sightings(self) -> list[Sighting]:
        return await self._reads.run(gauging.sightings, self._reader)

    async def value(self, page: int) -> Value | None:
        return await self._reads.run(telling.value, self._reader, page)

    async def find(self, query: Query) -> list[PageState]:
        return await self._reads.run(finding.find, self._reader, query)

    async def search(self, words: str, limit: int = 20) -> list[Hit]:
        return await self._reads.run(searching.search, self._reader, words, limit)

    async def edit(self, query: Query, edit: Edit) -> int:
        return await self._writes.run(finding.edit, self._writer, query, edit)

    async def forget(self, query: Query) -> int:
        return await self._writes.run(finding.forget, self._writer, query)

    async def charge(self, costs: Sequence[tuple[Scope, float]]) -> None:
        costs = tuple(costs)
        before, after = self._charged
        done = await self._writes.run(
            finding.charge, self._writer, costs, after if costs == before else -1
        )
        self._charged = costs, done

    async def fitting(self, pages: Ints, scopes: Sequence[Scope]) -> Ints:
        return await self._reads.run(reading.fitting, self._reader, pages, scopes)

    async def changes(self, after: int, *, limit: int = 1000) -> list[Change]:
        return await self._reads.run(telling.changes, self._reader, after, limit)

    async def last_change(self) -> int:
        return await self._reads.run(telling.last_change, self._reader)

    async def done(self, reader: str, seq: int | None = None) -> int:
        if seq is not None:
            await self._writes.run(telling.set_done, self._writer, reader, seq)
        return await self._reads.run(telling.done, self._reader, reader)

    async def page(self, url: str) -> PageState:
        return await self._reads.run(reading.page, self._reader, canonical(url)[0])

    async def content(self, page: int) -> tuple[bytes, str] | None:
        return await self._reads.run(reading.content, self._reader, page)

    async def summary(self) -> Summary:
        return await self._reads.run(reading.summary, self._reader, self.path)

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        return scanning.scan(self.path, table, page)

    def facts(self, pages: Ints) -> dict[str, list[str | None]]:
        return scanning.facts(self.path, pages)

    def history(self) -> Iterator[Outcomes]:
        return scanning.history(self.path)

    async def backup(self, path: Path) -> None:
        await asyncio.to_thread(database.copy, self.path, path)

    async def prune(self, before: int) -> int:
        return await self._writes.run(editing.prune, self._writer, before)

    async def close(self) -> None:
        try:
            if self._moving is not None:
                await self._moving
        finally:
            for lane, db in self._connections():
                await lane.run(db.close)
                lane.close()

    def _connections(self) -> Iterator[tuple[Lane, sqlite3.Connection]]:
        yield self._moves, self._mover
        yield self._reads, self._reader
        yield self._writes, self._writer
