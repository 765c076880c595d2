"""What SQLite and the system complain of, in words: the file, what is wrong, what to do."""

from __future__ import annotations

import errno
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import zstandard

from salticus.errors import StoreError

_SAFE = "nothing that was stored is lost"
_FULL = f"the disk is full: free some space and start again; {_SAFE}"
_LIMIT = (
    "no file may grow so large, says the system (`ulimit -f`): raise that limit and start again; "
    f"{_SAFE}"
)
_RIGHTS = (
    "you have no right to write it: get it for this file, its folder, and all files there that "
    "begin with the same name, or choose another `store`"
)
_IO = "the disk fails to read or write (%s): see to it, and to how full it is, and start again"
_SCARCE = 1_000_000  # bytes free on a disk that is as good as full

# what a damaged file leads to: SQLite's complaints, the system's, and texts that make no sense
TROUBLE = (sqlite3.Error, OSError, zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with the file into a StoreError that says so in one line."""
    try:
        yield
    except TROUBLE as error:
        raise StoreError(f"{path}: {words(path, error)}") from error


def words(path: Path, error: Exception) -> str:
    """What is wrong with a file, and what to do.

    >>> words(Path("a.db"), OSError(errno.ENOSPC, "No space left on device"))
    'the disk is full: free some space and start again; nothing that was stored is lost'
    """
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(path, error)
    if isinstance(error, OSError):
        return _of_system(path, error)
    return damage(path, str(error))


def damage(path: Path, found: str) -> str:
    """What to do about a damaged file."""
    return (
        f"the file is damaged ({found}): restore a backup, "
        f"or save what can be read with `sqlite3 {path} .recover | sqlite3 NEW`"
    )


def _of_sqlite(path: Path, error: sqlite3.Error) -> str:
    """What is wrong, by the code that SQLite gives."""
    code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
    if code == sqlite3.SQLITE_CANTOPEN:
        return _place(path)
    if code == sqlite3.SQLITE_IOERR:
        return _refused(path, error.sqlite_errorname)
    if "decode to UTF-8" in str(error):  # the one damage that SQLite leaves to Python
        return damage(path, "a text is not UTF-8")
    known = {
        sqlite3.SQLITE_FULL: _FULL,
        sqlite3.SQLITE_CORRUPT: damage(path, str(error)),
        sqlite3.SQLITE_NOTADB: f"file is not a database; if it was one, {damage(path, 'header')}",
        sqlite3.SQLITE_READONLY: _RIGHTS,
        sqlite3.SQLITE_PERM: _RIGHTS,
        sqlite3.SQLITE_BUSY: "another program holds the file: end it, or try again later",
    }
    return known.get(code, str(error))


def _of_system(path: Path, error: OSError) -> str:
    """What is wrong, by the number that the system gives."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _FULL
    if error.errno == errno.EFBIG:
        return _LIMIT
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return _RIGHTS
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
        return _place(path)
    return error.strerror or str(error)


def _place(path: Path) -> str:
    """Why a file cannot be opened where it is said to be."""
    if _is_folder(path):
        return "this is a folder: let `store` name a file in it"
    if not _is_folder(path.parent):
        return f"there is no folder {path.parent}: make it, or choose another `store`"
    return _RIGHTS


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # it lies in a folder that may not be looked into
        return False


def _refused(path: Path, name: str) -> str:
    """Why the system does not write. SQLite does not tell, but what is scarce explains it."""
    with suppress(OSError):
        if shutil.disk_usage(path.parent).free < _SCARCE:
            return _FULL
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return _IO % name if limit == resource.RLIM_INFINITY else _LIMIT
