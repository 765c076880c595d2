"""The file: made, upgraded, refused, copied."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from salticus.errors import InputError, StoreError
from salticus.store.sqlite.database import create, version
from salticus.store.sqlite.queries import migrations, statements
from salticus.store.sqlite.store import SqliteStore
from salticus.types import NewPage, Observation, Record, Value

STEPS = migrations()
NEXT = "ALTER TABLE pages ADD COLUMN colour TEXT;\nUPDATE pages SET colour = 'red';\n"


async def filled(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.add([NewPage("http://shop.example/")], at=1)
    await store.close()


async def opened(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.close()


def test_a_store_that_is_opened_again_has_its_pages(tmp_path: Path) -> None:
    async def main() -> int:
        await filled(tmp_path / "a.db")
        store = await SqliteStore.open(tmp_path / "a.db")
        try:
            return (await store.summary()).pages
        finally:
            await store.close()

    assert asyncio.run(main()) == 1


def test_an_old_store_is_upgraded_and_keeps_its_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    asyncio.run(filled(path))
    with closing(create(path, [*STEPS, NEXT])) as db:
        assert version(db) == len(STEPS) + 1
        (row,) = db.execute("SELECT url, colour FROM pages")
        assert tuple(row) == ("http://shop.example/", "red")


def test_a_store_of_version_1_is_upgraded_and_goes_on(tmp_path: Path) -> None:
    path, old = tmp_path / "a.db", "http://shop.example/"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements(STEPS[0]):
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
        db.execute(
            "INSERT INTO pages (revision, added, host, url, status, value, visits)"
            " VALUES (1, 5, 'shop.example', ?, 'ok', 1, 1)",
            (old,),
        )
        db.execute("INSERT INTO \"values\" VALUES (1, 1, 7, 'd', 'offer', '1 EUR', '{}')")

    async def main() -> None:
        store = await SqliteStore.open(path)
        try:
            page = await store.page(old)
            assert [hit.url for hit in await store.search("shop")] == [old]
            assert (page.value, page.state, page.cost, page.idle) == ("1 EUR", "well", 1.0, 0)
            assert await store.changes(0) == [], "what was stored before has no number"
            seen = Observation(2, 1, 9, "policy", 1.0, "ok", changed=True)
            seen.value = Value("offer", "2 EUR")
            await store.record([Record(seen, moved="http://shop.example/new")])
            (change,) = await store.changes(0)
            assert (change.before, change.after) == (Value("offer", "1 EUR"), seen.value)
            assert (await store.page(old)).moved == "http://shop.example/new"
        finally:
            await store.close()

    asyncio.run(main())


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    asyncio.run(filled(path))
    with pytest.raises(sqlite3.OperationalError):
        create(path, [*STEPS, NEXT, "SELECT * FROM nowhere;\n"])
    with closing(create(path, STEPS)) as db:
        assert version(db) == len(STEPS)
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            db.execute("SELECT colour FROM pages")


def test_a_newer_store_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    create(path, [*STEPS, NEXT]).close()
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        asyncio.run(opened(path))
    for part in (str(path), f"version {len(STEPS) + 1}", f"version {len(STEPS)};"):
        assert part in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("body", [b"not a database, but long enough to be looked at " * 100, b"x"])
def test_a_file_that_is_no_database_is_named(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(body)
    with pytest.raises(StoreError, match=r"notes\.txt.*not a database"):
        asyncio.run(opened(path))
    assert path.read_bytes() == body


def test_a_corrupt_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    asyncio.run(filled(path))
    body = path.read_bytes()
    path.write_bytes(body[:100] + b"\xff" * (len(body) - 100))
    with pytest.raises(StoreError, match=r"a\.db: .*malformed"):
        asyncio.run(opened(path))


def test_damage_found_later_is_named_too(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "a.db"
        await filled(path)
        body = path.read_bytes()
        path.write_bytes(body[:4096] + body[4096:].replace(b"http://shop.example/", b"\xff" * 20))
        store = await SqliteStore.open(path)
        try:
            with pytest.raises(StoreError, match=r"a\.db: "):
                await store.targets((await store.table()).ids)
        finally:
            await store.close()

    asyncio.run(main())


def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photos (id)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a Salticus store"):
        asyncio.run(opened(path))
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere/a\.db"):
        asyncio.run(opened(tmp_path / "nowhere" / "a.db"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_is_read_only_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match=r"a\.db"):
        asyncio.run(opened(tmp_path / "a.db"))


def test_several_may_make_the_same_store_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        await asyncio.gather(*(opened(tmp_path / "a.db") for _ in range(4)))

    asyncio.run(main())


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        store = await SqliteStore.open(tmp_path / "a.db")
        (tmp_path / "b.db").write_bytes(b"precious")
        try:
            with pytest.raises(InputError, match="exists already"):
                await store.backup(tmp_path / "b.db")
            with pytest.raises(StoreError, match=r"nowhere/b\.db"):
                await store.backup(tmp_path / "nowhere" / "b.db")
        finally:
            await store.close()

    asyncio.run(main())
    assert (tmp_path / "b.db").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "b.db"]
