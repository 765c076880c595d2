"""The default store: one SQLite file."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from salticus.config import Caps, Scope
from salticus.errors import StoreMissing
from salticus.store.nouns import Health, History, Loaded, Summary
from salticus.store.sqlite import database, freshness, pages, readers, reading, visits
from salticus.store.sqlite.queries import migrations
from salticus.store.sqlite.recording import Recorder, load
from salticus.store.sqlite.trouble import explained
from salticus.types import Count, Ints, NewPage, Outcomes, Record

DEFAULT_CAPS = Caps()
MOVED = 500  # visits between two moves into the main file

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[sqlite3.Connection, P], T]
Method = Callable[Concatenate["SqliteStore", P], Coroutine[Any, Any, T]]


class Lane:
    """A thread with a connection of its own: runs what it is given one after the other, in the
    order given, off the event loop.

    Whatever SQLite complains of is raised as StoreError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="salticus-store")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of `work` once its turn has come."""

        def explain() -> T:
            with explained(self.path):
                return work(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, explain)

    def close(self) -> None:
        """Let what was given end, and the thread with it."""
        self._thread.shutdown()


def _reads(work: Work[P, T]) -> Method[P, T]:
    """A function of a connection as a method of the store, run in the thread that reads."""

    @wraps(work)
    async def method(store: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._reads.run(work, store._reader, *args, **kwargs)

    return method


def _writes(work: Work[P, T]) -> Method[P, T]:
    """The same, run in the thread that writes."""

    @wraps(work)
    async def method(store: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._writes.run(work, store._writer, *args, **kwargs)

    return method


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

    async def health(self) -> Health:
        wrong = await self._reads.run(database.damaged, self._reader)
        free = await asyncio.to_thread(shutil.disk_usage, self.path.parent)
        return Health(wrong, (await self.summary()).bytes, free.free)

    async def backup(self, path: Path) -> None:
        await asyncio.to_thread(database.copy, self.path, path)

    async def close(self) -> None:
        try:
            if self._moving is not None:
                await self._moving
        finally:
            for lane, db in (
                (self._moves, self._mover),
                (self._reads, self._reader),
                (self._writes, self._writer),
            ):
                await lane.run(db.close)
                lane.close()

    # ------------------------------------------------------------------------------------ pages

    @property
    def caps(self) -> Caps:
        return self._recorder.caps

    @caps.setter
    def caps(self, caps: Caps) -> None:
        self._recorder.caps = caps

    async def charge(self, costs: Sequence[tuple[Scope, float]]) -> None:
        costs = tuple(costs)
        before, after = self._charged
        done = await self._writes.run(
            pages.charge, self._writer, costs, after if costs == before else -1
        )
        self._charged = costs, done

    async def summary(self) -> Summary:
        return await self._reads.run(pages.summary, self._reader, self.path)

    add = _writes(pages.add)
    table = _reads(reading.table)
    fitting = _reads(reading.fitting)
    targets = _reads(pages.targets)
    page = _reads(pages.page)
    find = _reads(pages.find)
    edit = _writes(pages.edit)
    forget = _writes(pages.forget)

    # ----------------------------------------------------------------------- visits and changes

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

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        return visits.scan(self.path, table, page)

    def facts(self, pages: Ints) -> dict[str, list[str | None]]:
        return visits.facts(self.path, pages)

    def history(self) -> Iterator[Outcomes]:
        return visits.history(self.path)

    async def done(self, reader: str, seq: int | None = None) -> int:
        if seq is not None:
            await self._writes.run(visits.set_done, self._writer, reader, seq)
        return await self._reads.run(visits.done, self._reader, reader)

    prune = _writes(visits.prune)
    changes = _reads(visits.changes)
    last_change = _reads(visits.last_change)
    value = _reads(visits.value)
    content = _reads(visits.content)

    # ---------------------------------------------------------------------------------- readers

    async def count(self, rows: Sequence[Count]) -> int:
        return (await self.take(rows)).rows

    take = _writes(readers.take)
    marks = _reads(readers.marks)
    ids = _reads(readers.ids)
    search = _reads(readers.search)
    counts = _reads(readers.counts)
    ask = _writes(readers.ask)
    asked = _reads(readers.asked)
    notice = _writes(readers.notice)
    told = _writes(readers.told)

    # ------------------------------------------------------------------------ run and freshness

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        with database.instance_lock(self.path):
            yield

    async def holder(self) -> str | None:
        return await asyncio.to_thread(database.holder_of, self.path)

    remember = _writes(visits.remember)
    recall = _reads(visits.recall)
    stamp = _reads(visits.stamp)
    outcomes = _reads(visits.outcomes)
    outcomes_after = _reads(visits.outcomes_after)
    hosts = _reads(visits.hosts)
    gauge = _writes(freshness.gauge)
    gauged = _reads(freshness.gauged)
    empanel = _writes(freshness.empanel)
    panel = _reads(freshness.panel)
    sightings = _reads(freshness.sightings)
    alerts = _reads(freshness.alerts)
    sound = _writes(freshness.sound)
