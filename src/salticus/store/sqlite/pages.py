"""Pages: added, found, edited, forgotten, charged for; what they promise is in `PageStore`."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from salticus.config import Scope
from salticus.errors import UnknownPage
from salticus.store.nouns import (
    DROPPED,
    SORTS,
    STATES,
    Edit,
    PageState,
    Query,
    Summary,
    known,
    plain,
)
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import clean, rows, text
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.reading import spelling
from salticus.types import Ints, NewPage, Target, Told
from salticus.urls import canonical

CHUNK = 10_000  # rows a transaction: others wait a tenth of a second for it at most
FORGOTTEN = 1000  # pages forgotten in a transaction, with all their visits
SHOWN = 200  # characters of a value

_FORGET = [name for name in QUERIES if name.startswith("forget_")]  # in order, pages last


def add(db: sqlite3.Connection, pages: Sequence[NewPage], *, at: int) -> int:
    """Add pages, edit known ones; nothing is written if a URL is wrong."""
    table = [row(page) for page in pages]
    new = 0
    for start in range(0, len(table), CHUNK):
        with transaction(db):
            new += put(db, table[start : start + CHUNK], at)
    return new


def row(page: NewPage) -> tuple[Any, ...]:
    """A page as `put` takes it; InputError if its URL is wrong."""
    url, host = canonical(page.url)
    tags = sorted(set(page.tags))
    return url, host, page.kind, tags, page.max_interval, page.demand, page.found


def put(db: sqlite3.Connection, table: list[Any], at: int) -> int:
    """Add or edit pages within a transaction; returns the new ones."""
    each = _folded(table)
    parameters = {"rows": rows(each), "at": at}
    db.execute(QUERIES["bump_revision"])
    new = db.execute(QUERIES["insert_pages"], parameters).rowcount
    if new < len(each):
        db.execute(QUERIES["edit_pages"], parameters)
    return new


def _folded(table: list[Any]) -> list[Any]:
    """Each URL once, with all that is given for it; of two settings the later counts."""
    once: dict[str, Any] = {}
    for row in table:
        once[row[0]] = _both(once[row[0]], row) if row[0] in once else row
    return table if len(once) == len(table) else list(once.values())


def _both(first: tuple[Any, ...], then: tuple[Any, ...]) -> tuple[Any, ...]:
    latest = [old if new is None else new for old, new in zip(first, then, strict=True)]
    latest[3] = sorted({*first[3], *then[3]})
    latest[6] = first[6] and then[6]
    return tuple(latest)


def targets(db: sqlite3.Connection, pages: Ints) -> list[Target]:
    """What is needed to visit pages."""
    (found,) = db.execute(QUERIES["targets"], {"ids": rows(pages.tolist())}).fetchone()
    return msgspec.json.decode(found, type=list[Target])


def page(db: sqlite3.Connection, url: str) -> PageState:
    """One page."""
    name = canonical(url)[0]
    row = db.execute(f"{QUERIES['page_states']} WHERE url = :url", {"url": name}).fetchone()
    if row is None:
        raise UnknownPage(name)
    return _state(row)


def _state(row: sqlite3.Row) -> PageState:
    read = {name: msgspec.json.decode(row[name]) for name in ("tags", "fields", "sources")}
    read |= {name: bool(row[name]) for name in ("paused", "unlisted")}
    told = row["told"] and msgspec.json.decode(row["told"], type=Told)
    return PageState(**dict(row) | read | {"value": text(row["value"]), "told": told})


def find(db: sqlite3.Connection, query: Query) -> list[PageState]:
    """Pages that fit, in the order asked for, then by id."""
    sort = known(query.sort, SORTS, "order")
    order = f"{sort} IS NULL, {sort} {'DESC' if query.descending else 'ASC'}, pages.id"
    limit = -1 if query.limit is None else query.limit
    which = f"WHERE pages.id IN ({QUERIES['fitting']}) ORDER BY {order} LIMIT :limit"
    found = db.execute(f"{QUERIES['page_states']} {which}", _asked(query) | {"limit": limit})
    states = [_state(row) for row in found]
    for state in states:
        state.value = state.value and state.value[:SHOWN]
    return states


def _asked(query: Query) -> dict[str, Any]:
    if query.state is not None:
        known(query.state, STATES, "state")
    asked: dict[str, Any] = clean(msgspec.to_builtins(query))
    patterns = {name: asked[name] and plain(asked[name]) for name in ("url", "host")}
    return asked | patterns


def edit(db: sqlite3.Connection, query: Query, edit: Edit) -> int:
    """Edit all pages that fit."""
    wanted = msgspec.structs.asdict(edit) | {
        "kind": clean(edit.kind),
        "no_interval": edit.max_interval == math.inf,
        "no_cost": edit.cost == math.inf,
        "add_tags": rows(edit.add_tags).decode(),
        "remove_tags": rows(edit.remove_tags).decode(),
    }
    with transaction(db):
        db.execute(QUERIES["bump_revision"])
        db.execute(QUERIES["clear_chosen"])
        db.execute(f"INSERT INTO chosen {QUERIES['fitting']}", _asked(query))
        return db.execute(QUERIES["edit_chosen"], wanted).rowcount


def forget(db: sqlite3.Connection, query: Query) -> int:
    """Delete all pages that fit, some at a time, each with all that is known of it."""
    ids = [row[0] for row in db.execute(QUERIES["fitting"], _asked(query))]
    starts = range(0, len(ids), FORGOTTEN)
    return sum(_forget(db, ids[start : start + FORGOTTEN]) for start in starts)


def _forget(db: sqlite3.Connection, ids: list[int]) -> int:
    with transaction(db):
        for step in ("bump_revision", "clear_chosen", "clear_named"):
            db.execute(QUERIES[step])
        db.execute(QUERIES["choose_ids"], {"ids": rows(ids)})
        for step in ("mark_forgotten", "name_linked", *_FORGET):
            gone = db.execute(QUERIES[step]).rowcount
        for step in ("clear_chosen", "choose_named", "relist"):
            db.execute(QUERIES[step])
        return gone


def charge(db: sqlite3.Connection, costs: Sequence[tuple[Scope, float]], after: int) -> int:
    """Set the costs of pages edited after a revision; the revision up to which they are set."""
    asked = {
        "scopes": rows([spelling(scope) for scope, _ in costs]),
        "costs": rows([cost for _, cost in costs]),
        "after": after,
    }
    with transaction(db):
        db.execute(QUERIES["bump_revision"])
        db.execute(QUERIES["charge"], asked)
        return int(db.execute(QUERIES["revision"]).fetchone()[0])


def summary(db: sqlite3.Connection, path: Path) -> Summary:
    """Counts; one pass over the pages, none over the visits."""
    asked = {"patience": DROPPED}
    counts: dict[str, Any] = dict(db.execute(QUERIES["summary"], asked).fetchone())
    by_status = {row[0]: row[1] for row in db.execute(QUERIES["count_by_status"])}
    files = (path, path.with_name(f"{path.name}-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    return Summary(**counts, by_status=by_status, bytes=size)
