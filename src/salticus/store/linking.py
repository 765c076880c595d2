"""What sources name: their entries become pages, and links to them come and go."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from salticus.config import Caps
from salticus.errors import InputError
from salticus.store.caps import Admission, Held, Known
from salticus.store.packing import rows
from salticus.store.queries import QUERIES
from salticus.store.telling import sound
from salticus.types import Alert, Entry, Record
from salticus.urls import canonical

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Named(NamedTuple):
    """An entry as it is stored; `told` is its time for people, `word` what such a time is."""

    url: str
    host: str
    kind: str | None
    at: int | None
    told: str | None
    word: str


def named(entries: Iterable[Entry]) -> list[Named]:
    """The entries that can be visited, each URL once; the first that names it counts.

    >>> [each.url for each in named([Entry("http://a/#1"), Entry("http://a/"), Entry("mailto:b")])]
    ['http://a/']
    """
    found: dict[str, Named] = {}
    for entry in entries:
        place = place_of(entry.url)
        if place is not None and place[0] not in found:
            told = iso(entry.at)
            at = None if told is None else entry.at
            found[place[0]] = Named(*place, entry.kind, at, told, entry.word)
    return list(found.values())


def place_of(url: str | None) -> tuple[str, str] | None:
    """Canonical URL and host; None if there is none that can be visited."""
    try:
        return None if url is None else canonical(url)
    except InputError:
        return None


def iso(micros: int | None) -> str | None:
    """A time as a source would tell it; None if it lies beyond what calendars know.

    >>> iso(1_767_225_600_000_000), iso(10**30)
    ('2026-01-01T00:00:00+00:00', None)
    """
    try:
        return None if micros is None else (_EPOCH + timedelta(microseconds=micros)).isoformat()
    except OverflowError:
        return None


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
