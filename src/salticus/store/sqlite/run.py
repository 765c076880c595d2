"""What a crawl needs to go on where it was stopped, and to be the only one (`RunStore`)."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from salticus.errors import StoreLocked
from salticus.store.nouns import Stamp
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import rows, text
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.reading import NEVER_US, outcomes_of
from salticus.store.sqlite.trouble import explained
from salticus.types import HostState, Ints, Outcomes


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


def remember(db: sqlite3.Connection, state: bytes) -> None:
    """Replace the run state, and count that."""
    with transaction(db):
        db.execute(QUERIES["remember"], {"state": state})
        db.execute(QUERIES["count_state"])


def recall(db: sqlite3.Connection) -> bytes | None:
    """The run state."""
    row = db.execute(QUERIES["recall"]).fetchone()
    return None if row is None else bytes(row[0])


def stamp(db: sqlite3.Connection) -> Stamp:
    """What others have committed, as SQLite numbers it for this connection."""
    (state,) = db.execute(QUERIES["states_remembered"]).fetchone()
    (data,) = db.execute(QUERIES["data_version"]).fetchone()
    return Stamp(data, state)


def outcomes(db: sqlite3.Connection, visits: Ints) -> Outcomes:
    """Outcomes of the stored ones among the visits, ordered by visit."""
    return _outcomes(db, rows(visits.tolist()))


def _outcomes(db: sqlite3.Connection, visits: bytes | str) -> Outcomes:
    asked = {"visits": visits, "never": NEVER_US}
    columns = db.execute(QUERIES["outcomes"], asked).fetchone()
    return outcomes_of(*map(msgspec.json.decode, columns))


def outcomes_after(db: sqlite3.Connection, visit: int) -> Outcomes:
    """Outcomes of all visits with a higher number."""
    (later,) = db.execute(QUERIES["visits_after"], {"visit": visit}).fetchone()
    return _outcomes(db, later)


def hosts(db: sqlite3.Connection) -> list[HostState]:
    """Every host, ordered by name."""
    found = [dict(row) for row in db.execute(QUERIES["hosts"])]
    return [HostState(**row | {"robots": text(row["robots"])}) for row in found]
