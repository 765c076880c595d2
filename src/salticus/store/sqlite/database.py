"""Opening, upgrading, locking and copying the SQLite file."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from salticus.errors import InputError, StoreError, StoreLocked
from salticus.store.sqlite.queries import QUERIES, statements
from salticus.store.sqlite.trouble import damage, explained

APPLICATION = 0x53616C74  # "Salt", kept in the file's header
_SMALLEST = 512  # bytes; SQLite takes anything shorter for empty, and overwrites it
PATIENCE_S = 30.0  # other commands hold the file only for short transactions

# what a writing connection needs beyond the schema, for itself alone
_PARTS = [text for text in QUERIES.values() if text.startswith("CREATE TEMP")]


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit all of it or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite has already rolled back when the disk is full
            db.execute("ROLLBACK")
        raise


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection without implicit transactions; read-only ones may move between threads."""
    mode = "ro" if read_only else "rwc"
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE_S,
        isolation_level=None,
        check_same_thread=not read_only,
    )
    db.row_factory = sqlite3.Row
    return db


def create(path: Path, steps: Sequence[str]) -> sqlite3.Connection:
    """A writing connection to a store that has taken all `steps`; made if it does not exist."""
    db = connect(path)
    try:
        _recognise(db, path)
        _write_ahead(db)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA cache_size = -65536")  # 64 MB: visits touch pages all over the file
        db.execute("PRAGMA wal_autocheckpoint = 8192")  # 32 MB: a visit costs a fifth less
        db.execute("PRAGMA secure_delete = OFF")  # some builds overwrite what is freed; a tenth
        upgrade(db, path, steps)
        for part in _PARTS:
            db.execute(part)
    except BaseException:
        db.close()
        raise
    return db


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite does not wait for others who do so at the same moment; we do."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def checkpoint(db: sqlite3.Connection) -> None:
    """Move what was committed into the main file, without keeping writers waiting."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)")


def upgrade(db: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    """Take the steps that are missing, all in one transaction; refuse a store that is newer."""
    if version(db) == len(steps):
        return
    with transaction(db):
        present = version(db)  # another process may have upgraded meanwhile
        if present > len(steps):
            raise StoreError(
                f"{path} has version {present}, this Salticus reads up to version {len(steps)}; "
                "use a newer Salticus"
            )
        for step in steps[present:]:
            for statement in statements(step):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(steps)}")


def version(db: sqlite3.Connection) -> int:
    """How many migrations the store has taken."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _recognise(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not ours to write, before anything in it is touched."""
    if not os.access(path, os.W_OK):  # SQLite would go on, and leave files that nobody may write
        raise PermissionError(errno.EACCES, "not writable")
    if 0 < path.stat().st_size < _SMALLEST:
        raise StoreError(f"{path}: file is not a database; choose another `store`")
    tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    mark = db.execute("PRAGMA application_id").fetchone()[0]
    if tables and mark != APPLICATION:
        raise StoreError(f"{path} is a database, but not a Salticus store")


def damaged(db: sqlite3.Connection) -> str | None:
    """The first thing that is wrong inside the file, None if nothing is. Reads all of it."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    return None if found == "ok" else str(found).splitlines()[-1]


def copy(source: Path, target: Path) -> None:
    """Copy a store that is in use, as it stood at one instant; never over an existing file.

    A copy of a damaged store would be none: StoreError then names the store.
    """
    if target.exists():
        raise InputError(f"{target} exists already; a backup does not replace it")
    part = target.with_name(f"{target.name}.part")
    try:
        with explained(target):
            part.unlink(missing_ok=True)
            _copy(source, part)
            part.rename(target)
    finally:
        with suppress(OSError):
            part.unlink()


def _copy(source: Path, target: Path) -> None:
    with explained(source):
        db = connect(source, read_only=True)
    with closing(db), closing(sqlite3.connect(target)) as out:
        db.backup(out)
        found = damaged(out)
    if found is not None:
        raise StoreError(f"{source}: {damage(source, found)}")


def _locked(file: IO[Any]) -> bool:
    """Take the lock. A few tries, because `holder_of` elsewhere holds it for an instant."""
    for _ in range(4):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.03)
        else:
            return True
    return False


def holder_of(store: Path) -> str | None:
    """The process that crawls on the store now, "unknown" if it did not say; None if none does."""
    path = _lock_file(store)
    with explained(path):
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None
    with file:
        return None if _locked(file) else _named(file)


def _named(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("ascii", "replace").strip() or "unknown"


@contextmanager
def instance_lock(store: Path) -> Iterator[None]:
    """Hold the store's lock file; StoreLocked if another process does.

    The kernel frees the lock when its holder dies, however it dies.
    """
    with explained(_lock_file(store)):
        file = _lock_file(store).open("ab+", buffering=0)  # closing must not fail on a full disk
    with file:
        if not _locked(file):
            raise StoreLocked(
                f"{store} is in use by another `salticus run` (process {_named(file)}); "
                "stop it, or give this one a store of its own"
            )
        with explained(_lock_file(store)):
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()).encode())
        yield


def _lock_file(store: Path) -> Path:
    return store.with_name(store.name + ".lock")
