"""Pages by what they are: found, edited, forgotten, charged for."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from salticus.config import Scope
from salticus.store.base import SORTS, STATES, Edit, PageState, Query, known, plain
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import clean, rows
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.reading import spelling, state
from salticus.types import Ints

CHUNK = 1000  # pages forgotten in a transaction, with all their visits
SHOWN = 200  # characters of a value


def find(db: sqlite3.Connection, query: Query) -> list[PageState]:
    """Pages that fit, in the order asked for, then by id."""
    sort = known(query.sort, SORTS, "order")
    order = f"{sort} IS NULL, {sort} {'DESC' if query.descending else 'ASC'}, pages.id"
    limit = -1 if query.limit is None else query.limit
    which = f"WHERE pages.id IN ({QUERIES['fitting']}) ORDER BY {order} LIMIT :limit"
    found = db.execute(f"{QUERIES['page_states']} {which}", _asked(query) | {"limit": limit})
    return [_cut(state(row)) for row in found]


def _cut(page: PageState) -> PageState:
    page.value = page.value and page.value[:SHOWN]
    return page


def _asked(query: Query) -> dict[str, Any]:
    if query.state is not None:
        known(query.state, STATES, "state")
    asked: dict[str, Any] = clean(msgspec.to_builtins(query))
    patterns = {name: asked[name] and plain(asked[name]) for name in ("url", "host")}
    return asked | patterns


def edit(db: sqlite3.Connection, query: Query, change: Edit) -> int:
    """Edit all pages that fit; returns how many."""
    wanted = {
        "kind": clean(change.kind),
        "demand": change.demand,
        "max_interval": change.max_interval,
        "no_interval": change.max_interval == math.inf,
        "cost": change.cost,
        "no_cost": change.cost == math.inf,
        "paused": change.paused,
        "add_tags": rows(change.add_tags).decode(),
        "remove_tags": rows(change.remove_tags).decode(),
    }
    with transaction(db):
        db.execute(QUERIES["bump_revision"])
        db.execute(QUERIES["clear_chosen"])
        db.execute(f"INSERT INTO chosen {QUERIES['fitting']}", _asked(query))
        return db.execute(QUERIES["edit_chosen"], wanted).rowcount


def forget(db: sqlite3.Connection, query: Query) -> int:
    """Delete all pages that fit, some at a time, each with all that is known of it."""
    asked = _asked(query)
    ids = np.array([row[0] for row in db.execute(QUERIES["fitting"], asked)], dtype=np.int64)
    return sum(_forget(db, ids[i : i + CHUNK]) for i in range(0, len(ids), CHUNK))


_FORGET = (
    "mark_forgotten",
    "forget_aliases",
    "name_linked",
    "forget_content",
    "forget_values",
    "forget_observations",
    "forget_signals",
    "forget_demand",
    "forget_requests",
    "forget_sources",
    "forget_links",
    "forget_words",
    "forget_pages",
)


def _forget(db: sqlite3.Connection, ids: Ints) -> int:
    with transaction(db):
        db.execute(QUERIES["bump_revision"])
        db.execute(QUERIES["clear_chosen"])
        db.execute(QUERIES["clear_named"])
        db.execute(QUERIES["choose_ids"], {"ids": rows(ids.tolist())})
        for step in _FORGET:
            gone = db.execute(QUERIES[step]).rowcount
        db.execute(QUERIES["clear_chosen"])
        db.execute(QUERIES["choose_named"])
        db.execute(QUERIES["relist"])
        return gone


def charge(db: sqlite3.Connection, costs: Sequence[tuple[Scope, float]], after: int) -> int:
    """Set the costs of pages edited after a revision; the revision up to which they are set."""
    with transaction(db):
        db.execute(QUERIES["bump_revision"])
        db.execute(QUERIES["clear_costs"])
        for scope, cost in costs:
            db.execute(QUERIES["insert_cost"], spelling(scope) | {"cost": cost})
        db.execute(QUERIES["charge"], {"after": after})
        return int(db.execute(QUERIES["revision"]).fetchone()[0])
