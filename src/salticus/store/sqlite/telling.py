"""What is told about pages and hosts: by merchants' feeds, by alerts, and to readers of changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from salticus.store.base import AlertState
from salticus.store.news import by_origin, kind_of
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import clean, rows, text
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.searching import reindex
from salticus.types import Alert, Change, Told, Value
from salticus.urls import canonical

_BEFORE_ALL = -(2**63)


def told(db: sqlite3.Connection, stated: Sequence[Told]) -> int:
    """Store what feeds state that they did not state before. Returns how many rows that were."""
    groups = by_origin(stated)
    with transaction(db):
        db.execute(QUERIES["bump_revision"])
        return sum(_told(db, origin, group) for origin, group in groups)


def _told(db: sqlite3.Connection, origin: str, group: list[Told]) -> int:
    about = {
        "rows": rows([_stated(row) for row in group]),
        "kind": kind_of(clean(origin)),
        "never": _BEFORE_ALL,
    }
    db.execute(QUERIES["clear_stated"])
    db.execute(QUERIES["insert_stated"], about)
    db.execute(QUERIES["state_rows"], about)
    db.execute(QUERIES["tell_pages"], about)
    reindex(db, "choose_stated")
    return db.execute(QUERIES["signal_stated"], about).rowcount


def _stated(row: Told) -> tuple[Any, ...]:
    url, host = canonical(row.url)
    whole = rows(clean(msgspec.to_builtins(row))).decode()
    return url, host, row.value.kind, row.at, row.value.text, whole


def sound(db: sqlite3.Connection, alerts: Iterable[Alert]) -> None:
    """Raise and end alerts, within a transaction; one that lasts already takes the newer words."""
    for alert in alerts:
        query = QUERIES["end_alert" if alert.over else "raise_alert"]
        db.execute(query, clean(msgspec.to_builtins(alert)))


def raise_(db: sqlite3.Connection, alerts: Iterable[Alert]) -> None:
    """Raise and end alerts, all or none."""
    with transaction(db):
        sound(db, alerts)


def alerts(db: sqlite3.Connection, *, past: bool) -> list[AlertState]:
    """Alerts that last, or all of them."""
    return [AlertState(**dict(row)) for row in db.execute(QUERIES["alerts"], {"past": past})]


def changes(db: sqlite3.Connection, after: int, limit: int) -> list[Change]:
    """New values with a number above `after`, in order."""
    found = db.execute(QUERIES["changes"], {"after": after, "limit": limit})
    return [_change(row) for row in found]


def _change(row: sqlite3.Row) -> Change:
    before = _value(row, "earlier_")
    return Change(
        seq=row["seq"],
        at=row["at"],
        page=row["page"],
        url=row["url"],
        tags=tuple(msgspec.json.decode(row["tags"])),
        changed=None if before is None or row["changed"] is None else bool(row["changed"]),
        before=before,
        after=_value(row) or Value("", ""),
    )


def value(db: sqlite3.Connection, page: int) -> Value | None:
    """The latest value of a page."""
    row = db.execute(QUERIES["latest_value"], {"page": page}).fetchone()
    return None if row is None else _value(row)


def _value(row: sqlite3.Row, prefix: str = "") -> Value | None:
    kind, stored, fields = (row[f"{prefix}{name}"] for name in ("kind", "value", "fields"))
    return None if kind is None else Value(kind, text(stored) or "", msgspec.json.decode(fields))


def last_change(db: sqlite3.Connection) -> int:
    """The number of the newest change."""
    return int(db.execute(QUERIES["last_change"]).fetchone()[0])


def set_done(db: sqlite3.Connection, reader: str, seq: int) -> None:
    """Remember how far a reader has come."""
    db.execute(QUERIES["set_done"], {"reader": clean(reader), "seq": seq})


def done(db: sqlite3.Connection, reader: str) -> int:
    """How far a reader has come."""
    return int(db.execute(QUERIES["done"], {"reader": clean(reader)}).fetchone()[0])
