"""The lines of a stream of any length: bounded in memory, and known again when they come twice."""

from __future__ import annotations

import codecs
import hashlib
import io
from collections.abc import Iterable, Iterator

from salticus.signals.opened import unpacked
from salticus.types import Mark

MAX_LINE = 65_536  # bytes; what is longer is no row of anything

_PIECE = 1 << 20


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
            piece = self._read(min(_PIECE, place - self.place))
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
            while self.place < place and self._read(min(_PIECE, place - self.place)):
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
