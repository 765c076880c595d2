"""Readers, and what comes in without a visit: searches, clicks, signals, feeds (`ReaderStore`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.store.news import by_hour, by_kind, place_of
from salticus.store.nouns import HIT_FIELDS, MOST_CLICKS, MOST_IMPRESSIONS, Hit
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import clean, rows
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.reading import NEVER_US, listed
from salticus.types import Count, Counted, Counts, Ints, Mark, Request, Signal, Told
from salticus.urls import canonical

MOST_WORDS = 32  # of a search; the rest is not looked at
LONGEST = 100  # characters of a word


def take(db: sqlite3.Connection, rows: Sequence[Count], mark: Mark | None = None) -> Counted:
    """Add counts of known pages, and the mark if they added something."""
    together, number = by_hour(rows)
    urls = list(number)
    with transaction(db):
        page = dict(zip(urls, listed(db, "became", urls=urls).tolist(), strict=True))
        table = [(page[url], at, *sums) for (url, at), sums in together.items() if page[url] >= 0]
        clicks, impressions = _put(db, table)
        if mark is not None and (clicks or impressions):
            db.execute(QUERIES["insert_mark"], clean(msgspec.to_builtins(mark)))
    known = sum(number[url] for url in urls if page[url] >= 0)
    return Counted(known, clicks, impressions, tuple(url for url in urls if page[url] < 0))


def _put(db: sqlite3.Connection, table: Sequence[Any]) -> tuple[int, int]:
    """Add counts within a transaction; the clicks and impressions that were added."""
    (last,) = db.execute(QUERIES["last_count"]).fetchone()
    most = {"clicks": MOST_CLICKS, "impressions": MOST_IMPRESSIONS}
    db.execute(QUERIES["insert_counts"], {"rows": rows(table)} | most)
    clicks, impressions = db.execute(QUERIES["sum_counts"], {"after": last}).fetchone()
    return clicks, impressions


def counts(db: sqlite3.Connection, after: int = 0, *, limit: int = 250_000) -> Counts:
    """What was counted after a row."""
    *columns, last = db.execute(QUERIES["counts"], {"after": after, "limit": limit}).fetchone()
    page, at, clicks, impressions = (
        np.array(msgspec.json.decode(column), dtype=np.int64) for column in columns
    )
    return Counts(page, at.view("M8[us]"), clicks, impressions, after if last is None else last)


def ask(db: sqlite3.Connection, requests: Sequence[Request]) -> None:
    """Store requests together or not at all."""
    table = [msgspec.structs.astuple(request) for request in requests]
    with transaction(db):
        db.execute(QUERIES["insert_requests"], {"rows": rows(table)})


def asked(db: sqlite3.Connection, after: int = 0) -> list[Request]:
    """Requests after one."""
    found = db.execute(QUERIES["requests"], {"after": after})
    return [
        Request(number, page, at, score, propensity, bool(sent), visit)
        for number, page, at, score, propensity, sent, visit in found
    ]


def ids(db: sqlite3.Connection, urls: Sequence[str]) -> Ints:
    """The page of each URL, or the one that it has become; -1 = not known, or no URL."""
    spelt = {row: place[0] for row, url in enumerate(urls) if (place := place_of(url)) is not None}
    found = np.full(len(urls), -1, dtype=np.int64)
    found[list(spelt)] = listed(db, "became", urls=list(spelt.values()))
    return found


def search(db: sqlite3.Connection, words: str, limit: int = 20) -> list[Hit]:
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
    each = clean(words[: MOST_WORDS * LONGEST]).replace("\0", " ").split()
    asked = [word for word in each if any(map(str.isalnum, word))]
    quoted = ['"' + word[:LONGEST].replace('"', '""') + '"' for word in asked[:MOST_WORDS]]
    return " ".join(quoted) + "*" * bool(quoted)


def _hit(row: sqlite3.Row) -> Hit:
    known = dict(row)
    fields = msgspec.json.decode(known.pop("fields"))
    known["told"] = known["told"] and msgspec.json.decode(known["told"], type=Told)
    return Hit(**known, **{name: fields.get(name) for name in HIT_FIELDS})


def reindex(db: sqlite3.Connection, choose: str) -> None:
    """Bring the words of some pages up to date, within a transaction; `choose` names the query that
    says which."""
    for step in ("clear_chosen", choose, "drop_words", "add_words"):
        db.execute(QUERIES[step])


def notice(db: sqlite3.Connection, signals: Sequence[Signal]) -> None:
    """Store signals together or not at all."""
    table = [(s.page, s.at, s.kind, s.value) for s in signals]
    with transaction(db):
        db.execute(QUERIES["insert_signals"], {"rows": rows(table)})


def told(db: sqlite3.Connection, rows: Sequence[Told]) -> int:
    """Store what feeds state that they did not state before. Returns how many rows that were."""
    groups = by_kind(rows)
    with transaction(db):
        db.execute(QUERIES["bump_revision"])
        return sum(_told(db, kind, group) for kind, group in groups)


def _told(db: sqlite3.Connection, kind: str, group: list[Told]) -> int:
    about = {"rows": rows([*map(_stated, group)]), "kind": clean(kind), "never": NEVER_US}
    db.execute(QUERIES["clear_stated"])
    for step in ("insert_stated", "state_rows", "tell_pages"):
        db.execute(QUERIES[step], about)
    reindex(db, "choose_stated")
    return db.execute(QUERIES["signal_stated"], about).rowcount


def _stated(row: Told) -> tuple[Any, ...]:
    url, host = canonical(row.url)
    whole = rows(clean(msgspec.to_builtins(row))).decode()
    return url, host, row.value.kind, row.at, row.value.text, whole
