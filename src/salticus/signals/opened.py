"""Files that others made: opened as bytes or as lines, under gzip or not, in any character set."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from salticus.errors import InputError
from salticus.markup import MARKS

MAX_LINE = 1_000_000  # characters
MAX_BYTES = 20 * 10**9  # of one file, unpacked

_PIECE = 1 << 16


class Opened:
    """A file that can be read from its start as often as needed; `name` is for messages.

    Whatever goes wrong on the way is an InputError that names the file.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path = path
        self.name = name or str(path)

    def head(self) -> bytes:
        """The first bytes, unpacked."""
        return next(self.pieces(), b"")

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the file, some at a time."""
        left = MAX_BYTES
        with self._stream() as stream:
            while piece := stream.read(_PIECE):
                left -= len(piece)
                if left < 0:
                    raise InputError(f"{self.name}: more than {MAX_BYTES // 10**9} GB; split it")
                yield piece

    def lines(self) -> Iterator[str]:
        """The lines of the file with their ends."""
        encoding = self._encoding()
        with self._stream() as stream:
            text = io.TextIOWrapper(stream, encoding, errors="replace")
            number = 0
            while line := text.readline(MAX_LINE):
                number += 1
                if len(line) == MAX_LINE:
                    raise InputError(
                        f"{self.name}:{number}: a line of a million characters; "
                        "feeds are tables or XML with line breaks"
                    )
                yield line

    @contextmanager
    def _stream(self) -> Iterator[IO[bytes]]:
        try:
            with self.path.open("rb") as file:
                packed = file.read(2) == b"\x1f\x8b"
                file.seek(0)
                yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{self.name}: broken gzip ({error}); fetch it again") from error
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror or error}") from error

    def _encoding(self) -> str:
        """By byte order mark; else UTF-8 if all of it is, else what Windows writes."""
        head = self.head()
        for mark, name in MARKS.items():
            if head.startswith(mark):
                return name
        if head[1:2] == b"\0" or head[:1] == b"\0":
            return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for piece in self.pieces():
                decoder.decode(piece)
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            return "cp1252"
        return "utf-8"
