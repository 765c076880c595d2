"""What the SQLite store does beyond the laws of `Store`."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from salticus.errors import InputError, StoreError
from salticus.store.sqlite import pages, reading, recording
from salticus.store.sqlite.store import SqliteStore
from salticus.types import HostState, NewPage, Observation, Record, Value

PAGES = [NewPage(f"http://shop{n % 7}.example/{n}") for n in range(100)]


def seen(number: int, page: int, **known: object) -> Observation:
    usual = {"at": 10**15 + number, "purpose": "policy", "propensity": 1.0, "status": "ok"}
    return Observation(visit=number, page=page, **usual | known)  # type: ignore[arg-type]


def batch(number: int, size: int = 100) -> list[Record]:
    """A visit to each of the first pages, all found new."""
    value = Value("page", f"batch {number}")
    numbers = range(number * size, (number + 1) * size)
    return [Record(seen(n, n % size + 1, value=value), (), b"body" * 99) for n in numbers]


def with_store(
    path: Path, work: Callable[[SqliteStore], Awaitable[None]], *, keep_content: bool = True
) -> None:
    async def main() -> None:
        store = await SqliteStore.open(path, keep_content=keep_content)
        try:
            await store.add(PAGES, at=0)
            await work(store)
        finally:
            await store.close()

    asyncio.run(main())


def test_content_is_not_kept_if_nobody_wants_it(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        await store.record(batch(0))
        assert await store.content(1) is None
        assert (await store.page(PAGES[0].url)).value == "batch 0"

    with_store(tmp_path / "a.db", work, keep_content=False)


def test_only_the_latest_content_takes_room(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        for number in range(5):
            await store.record(batch(number))

    with_store(tmp_path / "a.db", work)
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("SELECT count(*), min(visit) FROM content").fetchone() == (100, 400)


def test_long_texts_are_compressed_and_short_ones_can_be_read(tmp_path: Path) -> None:
    texts = ["12.50 \N{EURO SIGN}", "x" * 1024, "x" * 1025]

    async def work(store: SqliteStore) -> None:
        values = [Value("page", text) for text in texts]
        await store.record([Record(seen(n, n + 1, value=v)) for n, v in enumerate(values)])
        assert [(await store.page(PAGES[n].url)).value for n in range(3)] == texts

    with_store(tmp_path / "a.db", work)
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        stored = [row[0] for row in db.execute('SELECT value FROM "values" ORDER BY visit')]
    assert stored[:2] == texts[:2]
    assert isinstance(stored[2], bytes)
    assert len(stored[2]) < 100


def test_hostile_headers_do_not_stop_a_batch(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        odd = seen(1, 1, etag='"\udcff"', fault="a\0b", value=Value("page", "t", {"a\ud800": "\0"}))
        await store.record([Record(odd), Record(seen(2, 2, etag='"2"'))])
        first, second = await store.targets(np.array([1, 2]))
        assert (first.etag, second.etag) == ('"?"', '"2"')
        page = await store.page(PAGES[0].url)
        assert (page.fault, page.fields) == ("a?b", {"a?": "?"})

    with_store(tmp_path / "a.db", work)


def test_a_full_disk_is_told_and_nothing_is_kept_by_halves(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        def pragma(text: str) -> None:
            store._writes.db.execute(f"PRAGMA {text}").fetchall()

        await store._writes.run(pragma, "max_page_count = 1")  # as large as it is now
        big = Value("page", "".join(map(chr, range(256, 20_000))))
        records = [Record(seen(n, n + 1, value=big)) for n in range(50)]
        with pytest.raises(StoreError, match=r"a\.db: the disk is full: free some space"):
            await store.record(records)
        assert len(await store.outcomes(np.arange(50))) == 0
        await store._writes.run(pragma, "max_page_count = 100000")
        await store.record(records)
        assert len(await store.outcomes(np.arange(50))) == 50

    with_store(tmp_path / "a.db", work)


def test_a_store_that_another_process_writes_is_waited_for(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        other = await SqliteStore.open(tmp_path / "a.db")
        try:
            await asyncio.gather(
                *(store.record(batch(number)) for number in range(10)),
                *(other.add([NewPage(f"http://new.example/{n}")], at=n) for n in range(20)),
            )
            assert (await store.summary()).pages == 120
            assert (await other.summary()).visits == 1000
        finally:
            await other.close()

    with_store(tmp_path / "a.db", work)


def test_reads_do_not_wait_for_a_commit(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.create_task(store.record(batch(0)))
            assert len((await store.table()).ids) == 100
            assert (await store.page(PAGES[0].url)).visits == 0
            assert len(list(store.scan("pages"))) == 100
            assert not writing.done()
            other.execute("ROLLBACK")
        await writing
        assert (await store.page(PAGES[0].url)).visits == 1

    with_store(tmp_path / "a.db", work)


def test_many_pages_are_added_and_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "CHUNK", 30)
    monkeypatch.setattr(recording, "PRUNED", 30)
    monkeypatch.setattr(reading, "CHUNK", 7)

    async def work(store: SqliteStore) -> None:
        table = await store.table()
        targets = await store.targets(table.ids)
        assert [target.url for target in targets] == [page.url for page in PAGES]
        assert table.host == [target.host for target in targets]
        assert await store.add([*PAGES, *PAGES, NewPage("http://new.example/")], at=1) == 1
        await store.record(batch(0))
        assert await store.prune(10**15 + 99) == 99

    with_store(tmp_path / "a.db", work)


def test_unknown_names_and_pages_are_told(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        assert [t.page for t in await store.targets(np.array([3, 101, 2]))] == [3, 2]
        with pytest.raises(InputError, match="no table 'visit'; it has pages, visits"):
            store.scan("visit")
        assert await store.content(101) is None

    with_store(tmp_path / "a.db", work)


def test_fields_of_the_value_fill_the_exchange_format(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        fields = {"title": "Kettle", "brand": "Acme", "price": "9"}
        await store.record([Record(seen(1, 1, value=Value("offer", "9 EUR", fields)))])
        first = next(iter(store.scan("pages")))
        known = {name: first[name] for name in ("page_id", "kind", "title", "brand", "merchant")}
        assert known == {
            "page_id": 1,
            "kind": "offer",
            "title": "Kettle",
            "brand": "Acme",
            "merchant": None,
        }

    with_store(tmp_path / "a.db", work)


def test_a_backup_holds_whole_batches_while_others_are_written(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        async def write() -> None:
            for number in range(30):
                await store.record(batch(number))

        writing = asyncio.create_task(write())
        copies = [tmp_path / f"copy{n}.db" for n in range(3)]
        for copy in copies:
            await store.backup(copy)
        await writing
        for copy in copies:
            await is_whole(copy)

    with_store(tmp_path / "a.db", work)
    assert len(list(tmp_path.glob("copy*"))) == 3


async def is_whole(path: Path) -> int:
    """Assert that a store holds whole batches; their number."""
    store = await SqliteStore.open(path)
    try:
        visits = sorted(row["at"] - 10**15 for row in store.scan("visits"))
        assert visits == list(range(len(visits)))
        assert len(visits) % 100 == 0
        assert (await store.summary()).visits == len(visits)
        assert len(list(store.scan("values"))) == len(visits)
        assert [s.strikes for s in await store.hosts()] in ([], [len(visits) // 100 - 1])
        return len(visits) // 100
    finally:
        await store.close()


CHILD = """
import asyncio, sys
from test_store_sqlite import PAGES, SqliteStore, batch, numbered

async def main():
    store = await SqliteStore.open(sys.argv[1])
    await store.add(PAGES, at=0)
    for number in range(10_000):
        await store.record(numbered(number))
        print(number, flush=True)

asyncio.run(main())
"""


def numbered(number: int) -> list[Record]:
    """A batch whose last record tells its number through a host."""
    records = batch(number)
    records[-1].hosts = (HostState("shop.example", strikes=number),)
    return records


@pytest.mark.parametrize("wanted", [3, 40])
def test_what_was_recorded_survives_kill_9(tmp_path: Path, wanted: int) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path / "a.db")]
    here = Path(__file__).parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=here) as child:
        assert child.stdout is not None
        told = list(islice(child.stdout, wanted))
        child.send_signal(signal.SIGKILL)
        told += list(child.stdout)
    assert child.returncode == -signal.SIGKILL
    assert wanted <= len(told) <= asyncio.run(is_whole(tmp_path / "a.db")) <= len(told) + 1
