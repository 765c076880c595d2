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
from salticus.store.sqlite import database, pages, readers, reading, recording
from salticus.store.sqlite.queries import QUERIES, migrations
from salticus.store.sqlite.trouble import explained
from salticus.types import Count, Counts, Ints, Mark, Member, NewPage, Outcomes, Record, Sighting

MOVED = 500  # visits between two moves into the main file

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[sqlite3.Connection, P], T]
Method = Callable[Concatenate["SqliteStore", P], Coroutine[Any, Any, T]]


class Lane:
    """A thread with a connection `db` of its own: runs what it is given in order, off the event
    loop. Whatever SQLite complains of is raised as StoreError."""

    db: sqlite3.Connection

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


def _method(work: Work[P, T], *, writes: bool = False) -> Method[P, T]:
    """A function of a connection as a method of the store, run in the thread that it is for."""

    @wraps(work)
    async def method(store: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        lane = store._writes if writes else store._reads
        return await lane.run(work, lane.db, *args, **kwargs)

    return method


def _rows(query: str, kind: type[T]) -> Method[[], list[T]]:
    """A method that answers with the rows of a query, each as a struct."""

    def work(db: sqlite3.Connection) -> list[T]:
        return [kind(**dict(row)) for row in db.execute(QUERIES[query])]

    return _method(work)


class SqliteStore:
    """Pages and visits in one SQLite file in WAL mode.

    All writes go through one thread and its connection, all reads through another, so that
    planning never waits for a commit; a third moves what was committed into the main file, so that
    no commit waits for the disk. `open` makes the file if there is none.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.caps = Caps()
        self._writes, self._reads, self._moves = (Lane(self.path) for _ in range(3))
        self._moving: asyncio.Task[None] | None = None
        self._unmoved = 0
        self._recorder: recording.Recorder
        self._charged: tuple[Sequence[tuple[Scope, float]], int] = ((), -1)

    @classmethod
    async def open(
        cls, place: str | Path, *, keep_content: bool = True, create: bool = True
    ) -> Self:
        store = cls(place)
        if not create and not await asyncio.to_thread(store.path.exists):
            raise StoreMissing(f"{place}: there is no store yet; `salticus add URL` makes it")
        try:
            store._writes.db = await store._writes.run(database.create, store.path, migrations())
            for lane in (store._reads, store._moves):
                lane.db = await lane.run(database.connect, store.path)
        except BaseException:
            for lane in (store._writes, store._reads, store._moves):
                lane.close()
            raise
        store._recorder = recording.Recorder(store._writes.db, keep_content=keep_content)
        return store

    async def health(self) -> Health:
        wrong = await self._reads.run(database.damaged, self._reads.db)
        free = await asyncio.to_thread(shutil.disk_usage, self.path.parent)
        return Health(wrong, (await self.summary()).bytes, free.free)

    async def backup(self, path: Path) -> None:
        await asyncio.to_thread(database.copy, self.path, path)

    async def close(self) -> None:
        try:
            if self._moving is not None:
                await self._moving
        finally:
            for lane in (self._moves, self._reads, self._writes):
                await lane.run(lane.db.close)
                lane.close()

    # ------------------------------------------------------------------------------------ pages

    async def charge(self, costs: Sequence[tuple[Scope, float]]) -> None:
        costs = tuple(costs)
        after = self._charged[1] if costs == self._charged[0] else -1
        done = await self._writes.run(pages.charge, self._writes.db, costs, after)
        self._charged = costs, done

    async def summary(self) -> Summary:
        return await self._reads.run(pages.summary, self._reads.db, self.path)

    add = _method(pages.add, writes=True)
    table = _method(reading.table)
    fitting = _method(reading.fitting)
    targets = _method(pages.targets)
    page = _method(pages.page)
    find = _method(pages.find)
    edit = _method(pages.edit, writes=True)
    forget = _method(pages.forget, writes=True)

    # ----------------------------------------------------------------------- visits and changes

    async def record(self, records: Sequence[Record]) -> None:
        await self._writes.run(self._recorder.record, records, self.caps)
        self._unmoved += len(records)
        if self._unmoved >= MOVED and (self._moving is None or self._moving.done()):
            if self._moving is not None:
                await self._moving  # it has ended: raises if the disk refused it
            self._unmoved = 0
            self._moving = asyncio.create_task(self._moves.run(database.checkpoint, self._moves.db))

    async def load(
        self, pages: Iterable[Sequence[NewPage]], history: History, *, at: int, most: int
    ) -> Loaded:
        return await self._writes.run(self._recorder.load, pages, history, at=at, most=most)

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        return reading.scan(self.path, table, page)

    def facts(self, pages: Ints) -> dict[str, list[str | None]]:
        return reading.facts(self.path, pages)

    def history(self) -> Iterator[Outcomes]:
        return reading.history(self.path)

    async def done(self, reader: str, seq: int | None = None) -> int:
        if seq is not None:
            await self._writes.run(recording.set_done, self._writes.db, reader, seq)
        return await self._reads.run(reading.done, self._reads.db, reader)

    prune = _method(recording.prune, writes=True)
    changes = _method(reading.changes)
    last_change = _method(reading.last_change)
    looks = _method(reading.looks)
    finds = _method(reading.finds)
    standing = _method(reading.standing)
    news = _method(reading.news)
    last_find = _method(reading.last_find)
    value = _method(reading.value)
    content = _method(reading.content)

    # ---------------------------------------------------------------------------------- readers

    async def count(self, rows: Sequence[Count]) -> int:
        return (await self.take(rows)).rows

    def past_counts(self, until: int) -> Iterator[Counts]:
        return reading.past_counts(self.path, until)

    take = _method(readers.take, writes=True)
    marks = _rows("marks", Mark)
    ids = _method(readers.ids)
    search = _method(readers.search)
    counts = _method(readers.counts)
    ask = _method(readers.ask, writes=True)
    asked = _method(readers.asked)
    notice = _method(readers.notice, writes=True)
    told = _method(readers.told, writes=True)

    # ------------------------------------------------------------------------ run and freshness

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        with database.instance_lock(self.path):
            yield

    async def holder(self) -> str | None:
        return await asyncio.to_thread(database.holder_of, self.path)

    remember = _method(recording.remember, writes=True)
    recall = _method(reading.recall)
    stamp = _method(reading.stamp)
    outcomes = _method(reading.outcomes)
    outcomes_after = _method(reading.outcomes_after)
    hosts = _method(reading.hosts)
    gauge = _method(recording.gauge, writes=True)
    gauged = _method(reading.gauged)
    empanel = _method(recording.empanel, writes=True)
    panel = _rows("panel", Member)
    sightings = _rows("sightings", Sighting)
    alerts = _method(reading.alerts)
    sound = _method(recording.sound, writes=True)
