"""Files and folders that appear when they are complete, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from salticus.errors import InputError


@contextmanager
def in_place(target: Path) -> Iterator[Path]:
    """A hidden sibling of `target` to write to; it gets that name at the end.

    Nothing is left behind if that fails. A file of that name is replaced.
    """
    part = target.parent / f".{target.name}.{os.getpid()}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.rename(target)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):  # a folder is gone by now
            part.unlink()
        if isinstance(error, OSError):
            raise InputError(f"{target}: cannot be written: {error}") from error
        raise


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill that becomes `folder`, which must not be there yet or be empty."""
    check_free(folder)
    with in_place(folder) as part:
        part.mkdir()
        yield part
        if folder.exists():
            folder.rmdir()


@contextmanager
def work_folder(target: Path) -> Iterator[Path]:
    """A folder for what is on its way, on the disk of `target`; nothing is left of it."""
    try:
        near = next(folder for folder in target.absolute().parents if folder.is_dir())
        with TemporaryDirectory(prefix=f".{target.name}.", dir=near) as work:
            yield Path(work)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error}") from error


def check_free(folder: Path) -> None:
    """Refuse a folder with something in it, before any work is done for it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: already there and not empty; name another folder")
