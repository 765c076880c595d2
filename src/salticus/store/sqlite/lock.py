"""One crawler at a time on a store."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from salticus.errors import StoreLocked
from salticus.store.sqlite.database import explained


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
