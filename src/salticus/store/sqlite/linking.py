"""What sources name: their entries become pages, and links to them come and go."""

from __future__ import annotations

import sqlite3

import msgspec

from salticus.config import Caps
from salticus.store.caps import Admission, Held, Known
from salticus.store.news import Named, named
from salticus.store.sqlite.packing import rows
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.telling import sound
from salticus.types import Alert, Record


def link(db: sqlite3.Connection, record: Record, caps: Caps) -> None:
    """Take up the entries of a source as far as the caps allow, within a transaction."""
    about = {
        "source": record.observation.page,
        "at": record.observation.at,
        "rows": rows(_admitted(db, record, caps)),
    }
    db.execute(QUERIES["clear_named"])
    for step in ("insert_entries", "name_entries", "signal_entries", "link_entries"):
        db.execute(QUERIES[step], about)
    if record.complete:
        db.execute(QUERIES["unlink_entries"], about)
    relist(db, record.observation.page)


def _admitted(db: sqlite3.Connection, record: Record, caps: Caps) -> list[Named]:
    """The entries that are taken up; if the caps leave out others, that is an alert."""
    source, entries = record.observation.page, named(record.entries or ())
    asked = {"source": source, "rows": rows(entries)}
    (text,) = db.execute(QUERIES["known_entries"], asked).fetchone()
    known = msgspec.json.decode(text, type=list[Known], strict=False)
    host, url, links, host_links, pages = db.execute(QUERIES["held_of_source"], asked).fetchone()
    if record.complete:  # all other links of the source vanish
        links = sum(each.linked for each in known)
    hosts = {"hosts": rows(sorted({entry.host for entry in entries}))}
    on_hosts = dict(db.execute(QUERIES["held_on_hosts"], hosts).fetchall())
    admission = Admission(caps, Held(links, host_links, pages, on_hosts))
    pairs = zip(entries, known, strict=True)
    admitted = [entry for entry, each in pairs if admission.admits(entry.host, each)]
    db.execute(QUERIES["leave_out"], {"source": source, "left_out": admission.left_out_})
    if admission.left_out_:
        sound(db, [admission.alert(host, url, record.observation.at)])
    elif not db.execute(QUERIES["leaves_out"], {"host": host}).fetchone()[0]:
        sound(db, [Alert(host, "flood", record.observation.at, over=True)])
    return admitted


def relist(db: sqlite3.Connection, source: int) -> None:
    """Let the pages that a source names, or named, rest or not, as their links now say."""
    db.execute(QUERIES["clear_chosen"])
    db.execute(QUERIES["choose_linked"], {"source": source})
    db.execute(QUERIES["relist"])
