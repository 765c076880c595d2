"""How rows, texts, bodies and patterns travel into SQLite: JSON for rows, zstd for long ones."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import zstandard

LONG = 1024  # bytes of UTF-8 beyond which a text is stored compressed

Span = tuple[int | None, int | None]

_LETTERS = [chr(code) for code in range(32, 127)]  # all that a canonical URL may have
_json = msgspec.json.Encoder()


def rows(table: Sequence[Any]) -> bytes:
    """Rows as one JSON array for `json_each`.

    SQLite ends a JSON string at NUL and knows no lone surrogates. Hostile servers send both (in an
    ETag, say): they are replaced, so that they cost no more than a wrong character.
    """
    try:
        encoded = _json.encode(table)
    except UnicodeEncodeError:
        return _json.encode(clean(table))
    return _json.encode(clean(table)) if b"\\u0000" in encoded else encoded


def clean(part: Any) -> Any:
    """The same with what SQLite cannot read replaced: NUL and lone surrogates, at any depth."""
    if isinstance(part, str):
        return part.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
    if isinstance(part, dict):
        return {clean(name): clean(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [clean(item) for item in part]
    return part


def short(text: str) -> bool:
    """Whether a text is stored as it is."""
    try:
        return len(text.encode("utf-8")) <= LONG and "\0" not in text
    except UnicodeEncodeError:
        return False


def raw(text: str) -> bytes:
    """The bytes of any text, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def pack(
    compressor: zstandard.ZstdCompressor, bodies: Sequence[bytes | None]
) -> tuple[bytes, list[Span]]:
    """All bodies compressed into one blob, and where `substr` finds each: (start, size).

    Nothing is found of a body that is None. Compression is one call, which runs without Python's
    lock.
    """
    frames = iter(_frames(compressor, [body for body in bodies if body is not None]))
    blob, spans = bytearray(), list[Span]()
    for body in bodies:
        start = len(blob) + 1
        blob += b"" if body is None else next(frames)
        spans.append((None, None) if body is None else (start, len(blob) + 1 - start))
    return bytes(blob), spans


def _frames(compressor: zstandard.ZstdCompressor, bodies: list[bytes]) -> Sequence[bytes]:
    if not any(bodies):  # refused by the call below
        return [compressor.compress(body) for body in bodies]
    frames = compressor.multi_compress_to_buffer([*bodies], threads=1)
    return [frames[i].tobytes() for i in range(len(frames))]


def unpack(body: bytes) -> bytes:
    """A body that `pack` compressed."""
    return zstandard.ZstdDecompressor().decompress(body)


def text(stored: str | bytes | None) -> str | None:
    """A stored text, short or long; None if there is none."""
    return unpack(stored).decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else stored


def glob(pattern: str) -> str:
    """A pattern of Python's `fnmatch` for GLOB, which spells sets of letters in another way.

    >>> glob("*/[0-3]"), glob("*[")
    ('*/[0123]', '*[[]')
    """
    done, place = "", 0
    while (start := pattern.find("[", place)) >= 0:
        end = pattern.find("]", start + (3 if pattern[start + 1 : start + 2] == "!" else 2))
        done += pattern[place:start]
        done += "[[]" if end < 0 else _set(pattern[start : end + 1])
        place = start + 1 if end < 0 else end + 1
    return done + pattern[place:]


def _set(members: str) -> str:
    """A set, letter by letter; ``]``, ``-`` and ``^`` stand where they mean themselves."""
    found = [letter for letter in _LETTERS if fnmatchcase(letter, members)]
    if found == ["^"]:
        return "^"
    order = sorted(found, key=lambda letter: "]-".find(letter) % 3 + 3 * (letter == "^"))
    return f"[{''.join(order) or chr(127)}]"
