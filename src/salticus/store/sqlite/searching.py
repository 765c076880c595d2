"""Product search over the local copy: an index of words, in step with what pages say."""

from __future__ import annotations

import sqlite3

import msgspec

from salticus.store.base import Hit
from salticus.store.sqlite.packing import clean
from salticus.store.sqlite.queries import QUERIES
from salticus.types import Told

MOST_WORDS = 32  # of a search; the rest is not looked at
LONGEST = 100  # characters of a word


def search(db: sqlite3.Connection, words: str, limit: int) -> list[Hit]:
    """Pages that have all words, best first."""
    asked = match(words)
    if not asked:
        return []
    found = db.execute(QUERIES["search"], {"words": asked, "limit": max(limit, 0)})
    return [_hit(row) for row in found]


def match(words: str) -> str:
    """The words as FTS5 wants them: each quoted, so that nothing in it commands; the last open.

    >>> match("red tea OR NEAR")
    '"red" "tea" "OR" "NEAR"*'
    >>> match(" - ")
    ''
    """
    asked = [word for word in clean(words[:_FAR]).replace("\0", " ").split() if _says(word)]
    quoted = ['"' + word[:LONGEST].replace('"', '""') + '"' for word in asked[:MOST_WORDS]]
    return " ".join(quoted) + "*" * bool(quoted)


_FAR = MOST_WORDS * LONGEST


def _says(word: str) -> bool:
    return any(map(str.isalnum, word))


def _hit(row: sqlite3.Row) -> Hit:
    known: dict[str, str] = msgspec.json.decode(row["fields"])
    return Hit(
        page=row["page"],
        url=row["url"],
        title=known.get("title"),
        price=known.get("price"),
        currency=known.get("currency"),
        availability=known.get("availability"),
        last_visit=row["last_visit"],
        last_answer=row["last_answer"],
        told=row["told"] and msgspec.json.decode(row["told"], type=Told),
    )


def reindex(db: sqlite3.Connection, choose: str) -> None:
    """Bring the words of some pages up to date, within a transaction; `choose` names the query that
    says which."""
    db.execute(QUERIES["clear_chosen"])
    for step in (choose, "drop_words", "add_words"):
        db.execute(QUERIES[step])
