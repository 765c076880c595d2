"""Every store obeys the laws of `Store`; and a store that breaks one is found out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
import pytest

from salticus.checks.store import check_store
from salticus.store.base import Store
from salticus.store.memory.page import Page
from salticus.store.nouns import AlertState, History, Loaded, Query
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import MemoryStore
from salticus.types import Alert, NewPage, Record, Told


def test_sqlite_store(tmp_path: Path) -> None:
    numbers = count()

    async def make() -> Store:
        return await SqliteStore.open(tmp_path / f"{next(numbers)}.db")

    asyncio.run(check_store(make))


def test_memory_store() -> None:
    asyncio.run(check_store(_memory(MemoryStore)))


class Open(MemoryStore):
    """Lets anyone in."""

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        yield


class Backward(MemoryStore):
    """Takes what was loaded for the newest."""

    async def load(
        self, pages: Iterable[Sequence[NewPage]], history: History, *, at: int, most: int
    ) -> Loaded:
        before = {number: page.state.last_visit for number, page in self._pages.items()}
        loaded = await super().load(pages, history, at=at, most=most)
        for seen in self._observations.values():
            if seen.visit < 0 and before.get(seen.page) is not None:
                self._pages[seen.page].state.last_visit = seen.at
        return loaded


class Forgetful(MemoryStore):
    """Loses the last record of every call."""

    async def record(self, records: Sequence[Record]) -> None:
        await super().record(records[:-1])


class Optimist(MemoryStore):
    """Takes the unknown for unchanged."""

    async def record(self, records: Sequence[Record]) -> None:
        certain = [
            msgspec.structs.replace(
                r,
                observation=msgspec.structs.replace(
                    r.observation, changed=bool(r.observation.changed)
                ),
            )
            for r in records
        ]
        await super().record(certain)


class Piecemeal(MemoryStore):
    """Stores records one by one."""

    async def record(self, records: Sequence[Record]) -> None:
        for record in records:
            await super().record([record])


class Homebody(MemoryStore):
    """Does not see that pages move."""

    def _move(self, number: int, place: tuple[str, str], at: int) -> None:
        pass


class Careless(MemoryStore):
    """Thinks that pages are alike because one says so."""

    def _unite(self, number: int, url: str) -> None:
        if url in self._ids:
            self._merge(self._pages[number], self._pages[self._ids[url]])


class Hasty(MemoryStore):
    """Takes every list for complete."""

    async def record(self, records: Sequence[Record]) -> None:
        await super().record([msgspec.structs.replace(r, complete=True) for r in records])


class Gossip(MemoryStore):
    """Takes what is told again for news."""

    def _tell(self, row: Told, kind: str) -> bool:
        self._signals = [signal for signal in self._signals if signal.kind != kind]
        return super()._tell(row, kind)


class Grudging(MemoryStore):
    """Forgets pages, but not their visits."""

    async def forget(self, query: Query) -> int:
        kept = dict(self._observations)
        gone = await super().forget(query)
        self._observations = kept
        return gone


class Restless(MemoryStore):
    """Lets nothing rest."""

    def _rests(self, page: Page) -> bool:
        return False


class Nervous(MemoryStore):
    """Raises the same alert again and again."""

    def _sound(self, alert: Alert) -> None:
        new = AlertState(alert.host, alert.kind, alert.at, None, alert.fault)
        self._alerts += [] if alert.over else [new]


BROKEN = [
    Backward,
    Careless,
    Forgetful,
    Gossip,
    Grudging,
    Hasty,
    Homebody,
    Nervous,
    Open,
    Optimist,
    Piecemeal,
    Restless,
]


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_stores_are_found_out(broken: type[MemoryStore]) -> None:
    with pytest.raises(AssertionError, match="law: "):
        asyncio.run(check_store(_memory(broken)))


def _memory(kind: type[MemoryStore]):  # type: ignore[no-untyped-def]
    async def make() -> Store:
        return kind()

    return make
