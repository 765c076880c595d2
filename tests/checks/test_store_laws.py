"""Every store obeys the laws of `Store`; and a store that breaks one is found out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import msgspec
import pytest

from salticus.checks.store import check_store
from salticus.store.base import Store
from salticus.store.sqlite import SqliteStore
from salticus.testing import MemoryStore
from salticus.types import Record


def test_sqlite_store(tmp_path: Path) -> None:
    numbers = count()

    async def make() -> Store:
        return await SqliteStore.open(tmp_path / f"{next(numbers)}.db")

    asyncio.run(check_store(make))


def test_memory_store() -> None:
    asyncio.run(check_store(_memory(MemoryStore)))


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


@pytest.mark.parametrize("broken", [Forgetful, Optimist, Piecemeal])
def test_broken_stores_are_found_out(broken: type[MemoryStore]) -> None:
    with pytest.raises(AssertionError, match="law: "):
        asyncio.run(check_store(_memory(broken)))


def _memory(kind: type[MemoryStore]):  # type: ignore[no-untyped-def]
    async def make() -> Store:
        return kind()

    return make
