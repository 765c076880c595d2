"""Two URLs, one page: what has moved for good, and what calls itself by another name."""

from __future__ import annotations

import sqlite3

from salticus.store.news import place_of
from salticus.store.sqlite.linking import relist
from salticus.store.sqlite.queries import QUERIES
from salticus.types import Record


def move(db: sqlite3.Connection, record: Record) -> None:
    """Merge a page into the one that it has become, which is added if it is new."""
    place, seen = place_of(record.moved), record.observation
    if place is None:
        return
    url, host = place
    about = {"url": url, "host": host, "page": seen.page, "at": seen.at}
    db.execute(QUERIES["insert_moved"], about)
    (other,) = db.execute(QUERIES["page_of_url"], about).fetchone()
    merge(db, seen.page, other)


def unite(db: sqlite3.Connection, record: Record) -> None:
    """Merge a page into the one whose URL it calls its own, if they are known to be alike."""
    place, page = place_of(record.canonical), record.observation.page
    if place is None:
        return
    found = db.execute(QUERIES["same_page"], {"url": place[0], "page": page}).fetchone()
    if found is not None:
        merge(db, page, found[0])


def merge(db: sqlite3.Connection, page: int, other: int) -> None:
    """Make one page an alias of another, unless that would close a ring.

    What was asked for the one holds for the other from now on, and its links go along.
    """
    both = {"page": page, "other": other}
    if not db.execute(QUERIES["alias_page"], both).rowcount:
        return
    db.execute(QUERIES["inherit"], both)
    db.execute(QUERIES["hand_over_links"], both)
    db.execute(QUERIES["drop_links"], both)
    relist(db, other)
