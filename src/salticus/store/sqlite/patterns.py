"""Patterns for URLs and hosts, in the spelling that SQLite knows."""

from __future__ import annotations

from fnmatch import fnmatchcase

_LETTERS = [chr(code) for code in range(32, 127)]  # all that a canonical URL may have


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
