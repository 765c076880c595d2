"""Where the store is: a path, or a URL whose scheme names the kind of store."""

from __future__ import annotations

import re
from pathlib import Path

# file.py:Class, package.module:Class, or a name; then the place, if there is one
_URL = re.compile(r"([^:]+\.py:\w+|\w+(?:\.\w+)+:\w+|[A-Za-z][\w-]+(?=:))(?::(.*))?", re.DOTALL)


def split(url: str) -> tuple[str, str]:
    """The kind of store, and its place; a plain path is a SQLite file.

    The kind is a name, or the part itself as ``file.py:Class`` or ``module:Class``.

    >>> split("crawl.db"), split("sqlite:crawl.db"), split("memory:")
    (('sqlite', 'crawl.db'), ('sqlite', 'crawl.db'), ('memory', ''))
    >>> split("mine.py:Mine:anything"), split("mine.py:Mine")
    (('mine.py:Mine', 'anything'), ('mine.py:Mine', ''))
    """
    found = _URL.fullmatch(url)
    return ("sqlite", url) if found is None else (found[1], found[2] or "")


def beside(folder: Path, url: str) -> str:
    """The same store with its path, if it is one, taken from `folder`.

    >>> beside(Path("/a"), "b.db"), beside(Path("/a"), "sqlite:b.db"), beside(Path("/a"), "memory:")
    ('/a/b.db', 'sqlite:/a/b.db', 'memory:')
    """
    kind, place = split(url)
    if kind != "sqlite":
        return url
    return f"{url.removesuffix(place)}{folder / place}"
