"""The mall's own record of who asked for what when; every promise is checked against it."""

from __future__ import annotations

import time
from io import FileIO
from pathlib import Path

import msgspec

from salticus.errors import InputError


class AccessEntry(msgspec.Struct, gc=False):
    """One request. `arrived` and `ended` are wall seconds since 1970, `world` is world time in µs.

    `ended` is taken just before the last byte is handed over, so that no client can hold the
    whole answer earlier; when the client leaves first, it is taken then. It is None while the
    request is under way. `status` is 0 if no answer was begun. `value` is set once the value was
    served in full or confirmed by 304. `retry_after` and `crawl_delay` are the seconds that this
    answer asked for.
    """

    host: str
    path: str
    arrived: float
    world: int
    ended: float | None = None
    status: int = 0
    value: str | None = None
    retry_after: float | None = None
    crawl_delay: float | None = None
    conditional: bool = False
    fault: str | None = None


class AccessLog:
    """Entries in order of arrival, and as JSON lines in order of their end if there is a path."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.entries: list[AccessEntry] = []
        self._file: FileIO | None = None
        self._encoder = msgspec.json.Encoder()

    def open(self) -> None:
        """Begin to append to the file, unbuffered, so that readers see whole lines at once."""
        if self.path is not None:
            self._file = FileIO(self.path, "a")

    def begin(self, entry: AccessEntry) -> None:
        """A request arrived."""
        self.entries.append(entry)

    def end(self, entry: AccessEntry) -> None:
        """The request is over; only the first call counts."""
        if entry.ended is not None:
            return
        entry.ended = time.time()
        if self._file is not None:
            self._file.write(self._encoder.encode(entry) + b"\n")

    def close(self) -> None:
        """Stop appending."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_entries(path: Path) -> list[AccessEntry]:
    """The entries of a file, in order of arrival; a last line still being written is left out."""
    decoder = msgspec.json.Decoder(AccessEntry)
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    try:
        entries = [decoder.decode(line) for line in whole.splitlines()]
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not an access log ({error})") from error
    return sorted(entries, key=lambda entry: entry.arrived)
