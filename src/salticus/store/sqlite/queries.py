"""SQL lives in files; here it gets its names."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_PART = re.compile(r"\{(\w+)\}")


def named(text: str) -> dict[str, str]:
    """The queries of a file, by the names in their ``-- name:`` lines.

    >>> named("-- name: one\\nSELECT 1;\\n-- name: two\\nSELECT 2;\\n")
    {'one': 'SELECT 1;', 'two': 'SELECT 2;'}
    """
    _, *parts = _NAME.split(text)
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one, so that a transaction can hold them all.

    >>> list(statements("CREATE TABLE a (b);\\nPRAGMA c = 1;\\n"))
    ['CREATE TABLE a (b);', 'PRAGMA c = 1;']
    """
    statement = ""
    for line in script.splitlines():
        statement = f"{statement}\n{line}".strip()
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def migrations() -> list[str]:
    """The scripts that lead from each version to the next, the first from an empty database."""
    found = files(__package__).joinpath("migrations").iterdir()
    scripts = sorted((f for f in found if f.name.endswith(".sql")), key=lambda f: f.name)
    return [script.read_text("utf-8") for script in scripts]


def whole(queries: dict[str, str]) -> dict[str, str]:
    """The queries with ``{name}`` replaced by the one of that name, which is only a part then.

    >>> whole({"all": "SELECT a FROM b WHERE {good};", "good": "a > 1"})
    {'all': 'SELECT a FROM b WHERE a > 1;'}
    """
    used = {name for text in queries.values() for name in _PART.findall(text)}
    return {
        name: _PART.sub(lambda found: queries[found[1]], text)
        for name, text in queries.items()
        if name not in used
    }


QUERIES = whole(named(files(__package__).joinpath("queries.sql").read_text("utf-8")))
