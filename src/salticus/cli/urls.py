"""URLs as people give them: on the command line, in a file, on standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from salticus.errors import InputError


def given_urls(words: list[str], file: Path | None = None) -> list[str]:
    """All URLs given, in canonical form, each once. InputError names every line that is none."""
    from salticus.crawl.adding import canonical_urls

    return canonical_urls(_lines(words, file))


def _lines(words: list[str], file: Path | None) -> Iterator[tuple[str, str]]:
    """(where it stands, text) of every entry; blank lines and lines that start with # are not."""
    for number, word in enumerate(words, 1):
        if word == "-":
            yield from _numbered("standard input", sys.stdin)
        else:
            yield f"argument {number}", word
    if file is not None:
        try:
            with file.open(encoding="utf-8") as lines:
                yield from _numbered(str(file), lines)
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 text ({error})") from error


def _numbered(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield f"{name}:{number}", text
