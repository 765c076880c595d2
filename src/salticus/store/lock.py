"""One `run` at a time on a store."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from salticus.errors import StoreError, StoreLocked


def _locked(file: TextIO) -> bool:
    """Take the lock. A few tries, because `is_locked` elsewhere holds it for an instant."""
    for _ in range(4):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.03)
        else:
            return True
    return False


def is_locked(store: Path) -> bool:
    """Whether a crawler runs on the store now."""
    try:
        with instance_lock(store):
            return False
    except StoreLocked:
        return True


@contextmanager
def instance_lock(store: Path) -> Iterator[None]:
    """Hold the store's lock file; StoreLocked if another process does.

    The kernel frees the lock when its holder dies, however it dies.
    """
    path = store.with_name(store.name + ".lock")
    try:
        file = path.open("a+")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    with file:
        if not _locked(file):
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise StoreLocked(
                f"{store} is in use by another `salticus run` (process {holder}); "
                "stop it, or give this one a store of its own"
            )
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield
