"""What is wrong with a file is said in words, by the code that SQLite or the system gives."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections import namedtuple
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from salticus.errors import StoreError
from salticus.store.sqlite.database import connect, damaged, holder_of, instance_lock
from salticus.store.sqlite.trouble import explained, words

Usage = namedtuple("Usage", "free")


def complaint(code: int, text: str = "odd") -> sqlite3.Error:
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_ODD"
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (complaint(sqlite3.SQLITE_FULL), "the disk is full: free some space"),
        (complaint(sqlite3.SQLITE_CORRUPT, "malformed"), "the file is damaged (malformed)"),
        (complaint(sqlite3.SQLITE_CORRUPT_INDEX), "the file is damaged (odd)"),
        (complaint(sqlite3.SQLITE_NOTADB), "file is not a database"),
        (complaint(sqlite3.SQLITE_READONLY_DIRECTORY), "you have no right to write it"),
        (complaint(sqlite3.SQLITE_BUSY), "another program holds the file"),
        (complaint(sqlite3.SQLITE_IOERR_READ), "the disk fails to read or write (SQLITE_ODD)"),
        (complaint(sqlite3.SQLITE_CANTOPEN), "there is no folder nowhere: make it"),
        (complaint(sqlite3.SQLITE_CONSTRAINT, "as it is"), "as it is"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column 'url'"), "not UTF-8"),
        (sqlite3.ProgrammingError("closed"), "closed"),
        (OSError(errno.ENOSPC, "No space"), "the disk is full"),
        (OSError(errno.EDQUOT, "Quota"), "the disk is full"),
        (OSError(errno.EFBIG, "Too big"), "raise that limit"),
        (OSError(errno.EROFS, "Read-only"), "you have no right to write it"),
        (OSError(errno.ENOENT, "None"), "there is no folder nowhere"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (zstandard.ZstdError("bad frame"), "the file is damaged (bad frame): restore a backup"),
    ],
)
def test_what_is_wrong_is_said(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12))
    told = words(Path("nowhere/a.db"), error)
    assert said in told
    assert "\n" not in told


def test_a_write_that_fails_for_want_of_room_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(4096))
    assert "disk is full" in words(Path("a.db"), complaint(sqlite3.SQLITE_IOERR_SHMSIZE))


def test_only_trouble_with_the_file_is_explained() -> None:
    with pytest.raises(StoreError, match=r"a\.db: the disk is full"), explained(Path("a.db")):
        raise complaint(sqlite3.SQLITE_FULL)
    with pytest.raises(KeyError), explained(Path("a.db")):
        raise KeyError("a mistake of ours")


def test_damage_is_found_and_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE a (b)")
        db.executemany("INSERT INTO a VALUES (?)", [("x" * 1000,)] * 50)
        db.commit()
        assert damaged(db) is None
    body = bytearray(path.read_bytes())
    body[-4096:] = b"\xff" * 4096
    path.write_bytes(body)
    with closing(connect(path, read_only=True)) as db:
        found = damaged(db)
    assert found is not None
    assert "\n" not in found


def test_looking_at_a_lock_changes_nothing(tmp_path: Path) -> None:
    store, lock = tmp_path / "a.db", tmp_path / "a.db.lock"
    assert holder_of(store) is None
    assert not lock.exists()
    with instance_lock(store):
        holder = lock.read_text()
        assert holder_of(store) == holder
    assert holder_of(store) is None
    assert lock.read_text() == holder != ""
