"""A history made elsewhere, taken in whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from salticus.store.base import History, Loaded
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.editing import put, row
from salticus.store.sqlite.packing import rows
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.recording import Recorder
from salticus.store.sqlite.searching import reindex
from salticus.types import Ints, NewPage, Observation, Record


def load(
    recorder: Recorder, pages: Iterable[Sequence[NewPage]], history: History, *, at: int, most: int
) -> Loaded:
    """Add pages (µs `at`) and their history in one transaction.

    `history` is told the ids of the pages in the order in which they came, and gives at most `most`
    visits in order of time. One whose page has a visit at that time already is passed over. The
    numbers are negative: those above 0 are the planner's. A page that was visited later keeps the
    state which that left it in.
    """
    db = recorder.db
    with transaction(db):
        before = db.execute(QUERIES["first_visit"]).fetchone()[0] or 0
        first = min(0, before) - most
        db.execute(QUERIES["keep_states"])
        new, ids = _add(db, pages, at)
        end = first
        for batch in _fresh(db, history(ids)):
            recorder.record([Record(seen) for seen in _numbered(batch, end)])
            end += len(batch)
        db.execute(QUERIES["restore_states"], {"never": -(2**63)})
        reindex(db, "choose_before")
        db.execute(QUERIES["forget_states"])
    return Loaded(new, end - first, first, end)


def _add(db: sqlite3.Connection, pages: Iterable[Sequence[NewPage]], at: int) -> tuple[int, Ints]:
    new, ids = 0, [np.empty(0, dtype=np.int64)]
    for batch in pages:
        table = [row(page) for page in batch]
        new += put(db, table, at)
        (found,) = db.execute(
            QUERIES["ids_of_urls"], {"urls": rows([url for url, *_ in table])}
        ).fetchone()
        ids.append(np.array(msgspec.json.decode(found, type=list[int]), dtype=np.int64))
    return new, np.concatenate(ids)


def _fresh(
    db: sqlite3.Connection, batches: Iterable[Sequence[Observation]]
) -> Iterator[list[Observation]]:
    """The visits that are not in the store yet."""
    for batch in batches:
        asked = {"rows": rows([(seen.page, seen.at) for seen in batch])}
        (found,) = db.execute(QUERIES["known_visits"], asked).fetchone()
        known = set(msgspec.json.decode(found, type=list[int]))
        yield [seen for place, seen in enumerate(batch) if place not in known]


def _numbered(batch: Sequence[Observation], first: int) -> Iterator[Observation]:
    for number, seen in enumerate(batch, first):
        seen.visit = number
        yield seen
