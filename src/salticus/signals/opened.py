"""Files that others made: opened as bytes or as lines, packed or not, in any character set."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import zstandard

from salticus.errors import InputError
from salticus.markup import MARKS
from salticus.types import Mark

MAX_LINE = 65_536  # bytes; what is longer is no row of anything
MAX_TEXT_LINE = 1_000_000  # characters
MAX_BYTES = 20 * 10**9  # of one file, unpacked

_PIECE = 1 << 16
_SKIPPED = 1 << 20
_BUFFER = 1 << 18
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Whatever goes wrong with the file of this name is an InputError that says so."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: broken gzip ({error}); fetch it again") from error
    except zstandard.ZstdError as error:
        raise InputError(f"{name}: broken zstd ({error}); fetch it again") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error


def unpacked(file: io.BufferedReader) -> io.BufferedReader:
    """The stream, from under gzip or zstd if its first bytes say so.

    >>> unpacked(io.BufferedReader(io.BytesIO(gzip.compress(b"text")))).read()
    b'text'
    """
    head = file.peek(4)
    if head.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=file), _BUFFER)
    if head.startswith(_ZSTD):
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return io.BufferedReader(cast(io.RawIOBase, stream), _BUFFER)
    return file


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
            while line := text.readline(MAX_TEXT_LINE):
                number += 1
                if len(line) == MAX_TEXT_LINE:
                    raise InputError(
                        f"{self.name}:{number}: a line of a million characters; "
                        "feeds are tables or XML with line breaks"
                    )
                yield line

    @contextmanager
    def _stream(self) -> Iterator[IO[bytes]]:
        with readable(self.name), self.path.open("rb") as file:
            yield unpacked(file)

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


class Lines:
    """Lines without their ends; one that is longer than `MAX_LINE` comes as None.

    `number` is that of the line that came last, `place` the bytes read up to its end, unpacked, and
    `mark` names all of them: two files that begin alike have the same marks as far as they do. If
    the last line has no end, and may still be written, `whole` is the mark before it.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        self.file = file
        self.number = 0
        self.place = 0
        self.whole: Mark | None = None
        self._stream = unpacked(file)
        self._digest = hashlib.blake2b(digest_size=16)

    def __iter__(self) -> Iterator[bytes | None]:
        while line := self._stream.readline(MAX_LINE + 2):
            self.number += 1
            whole = line.endswith(b"\n")
            self.whole = None if whole else self.mark
            self._seen(line)
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            if self.number == 1:
                text = text.removeprefix(codecs.BOM_UTF8)
            if len(text) > MAX_LINE:
                if not whole:
                    self._end_line()
                yield None
            else:
                yield text

    @property
    def mark(self) -> Mark:
        """The name of what was read so far."""
        return Mark(self.place, self._digest.hexdigest())

    def skip(self, place: int) -> None:
        """Read on to `place` (bytes), and to the end of the line in which it lies, if in one."""
        last = b"\n"
        while self.place < place:
            piece = self._read(min(_SKIPPED, place - self.place))
            if not piece:
                return
            self.number += piece.count(b"\n")
            last = piece[-1:]
        if last != b"\n":
            self._end_line()
            self.number += 1

    def latest(self, marks: Iterable[Mark]) -> Mark | None:
        """The last of the marks that these lines pass, None if they pass none; reads on."""
        known = {(mark.place, mark.digest): mark for mark in marks}
        found = None
        for place in sorted({place for place, _ in known}):
            while self.place < place and self._read(min(_SKIPPED, place - self.place)):
                pass
            found = known.get((self.place, self.mark.digest), found)
        return found

    def _end_line(self) -> None:
        while (rest := self._seen(self._stream.readline(MAX_LINE))) and not rest.endswith(b"\n"):
            pass

    def _read(self, most: int) -> bytes:
        return self._seen(self._stream.read(most))

    def _seen(self, piece: bytes) -> bytes:
        self.place += len(piece)
        self._digest.update(piece)
        return piece
