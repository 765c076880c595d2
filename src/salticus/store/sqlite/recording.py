"""What a batch of records does to the database, in one statement.

A loop that is busy fetching must not share Python's lock with a thread that steps row by row. So
the whole batch is one INSERT into a view, which runs without the lock; its trigger does the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import zstandard

from salticus.config import Caps
from salticus.store.caps import Admission, Held, Known
from salticus.store.news import Named, named, place_of
from salticus.store.nouns import History, Loaded
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import Span, clean, pack, raw, rows, short
from salticus.store.sqlite.pages import put, row
from salticus.store.sqlite.queries import QUERIES
from salticus.store.sqlite.readers import reindex
from salticus.store.sqlite.reading import NEVER_US, listed
from salticus.types import Alert, Gauge, HostState, Member, NewPage, Record, Sample
from salticus.types.dates import DAY_US

PRUNED = 10_000  # rows deleted in a transaction

Row = tuple[Any, ...]

_VISIT = "visit page at purpose propensity status code changed since age_s digest fault size"
_visit = attrgetter(*_VISIT.split(), "elapsed_s", "etag", "last_modified", "chance")


class Recorder:
    """Writes records through one connection; lives in one thread."""

    def __init__(self, db: sqlite3.Connection, *, keep_content: bool) -> None:
        self.db = db
        self.keep_content = keep_content
        self._compressor = zstandard.ZstdCompressor(level=1)

    def record(self, records: Sequence[Record], caps: Caps) -> None:
        """Commit the records whose visits are not stored yet; entries as far as the caps allow."""
        bodies = [self._bodies(record) for record in records]
        packed, spans = pack(self._compressor, [body for some in bodies for body in some])
        each = iter(spans)
        table = [
            (
                *_visit(record.observation),
                *_finds(record, [next(each) for _ in some]),
                record.canonical and (place_of(record.canonical) or (None,))[0],
            )
            for record, some in zip(records, bodies, strict=True)
        ]
        batch = {"rows": rows(table), "packed": packed}
        if any(map(_reaches_out, records)):
            with transaction(self.db):
                self._record_news(records, batch, caps)
        else:
            self.db.execute(QUERIES["record"], batch)

    def _record_news(self, records: Sequence[Record], batch: dict[str, bytes], caps: Caps) -> None:
        """Record visits that say more than how their own page is."""
        news = [record for record in self._fresh(records) if _reaches_out(record)]
        self.db.execute(QUERIES["record"], batch)
        self.db.execute(QUERIES["bump_revision"])
        for record in news:
            if record.entries is not None:
                link(self.db, record, caps)
            elif record.looked:
                look_again(self.db, record)
            move(self.db, record)
            unite(self.db, record)
            put_alerts(self.db, record.alerts)

    def _fresh(self, records: Sequence[Record]) -> Iterable[Record]:
        """The records that count: the first of each visit that is not stored yet."""
        seen = [record.observation for record in records]
        gone = {*listed(self.db, "forgotten_pages", pages=[o.page for o in seen]).tolist()}
        stored = {*listed(self.db, "stored_visits", visits=[o.visit for o in seen]).tolist()}
        first: dict[int, Record] = {}
        for record in records:
            if record.observation.page not in gone and record.observation.visit not in stored:
                first.setdefault(record.observation.visit, record)
        return first.values()

    def load(
        self, pages: Iterable[Sequence[NewPage]], history: History, *, at: int, most: int
    ) -> Loaded:
        """Add pages and their history in one transaction."""
        db = self.db
        with transaction(db):
            before = db.execute(QUERIES["first_visit"]).fetchone()[0] or 0
            first = min(0, before) - most
            db.execute(QUERIES["keep_states"])
            new, ids, end = 0, [np.empty(0, dtype=np.int64)], first
            for some in pages:
                table = [row(page) for page in some]
                new += put(db, table, at)
                ids.append(listed(db, "ids_of_urls", urls=[url for url, *_ in table]))
            for batch in history(np.concatenate(ids)):
                known = listed(db, "known_visits", rows=[(seen.page, seen.at) for seen in batch])
                stored = {*known.tolist()}
                fresh = [seen for place, seen in enumerate(batch) if place not in stored]
                for number, seen in enumerate(fresh, end):
                    seen.visit = number
                self.record([Record(seen) for seen in fresh], Caps())
                end += len(fresh)
            db.execute(QUERIES["restore_states"], {"never": NEVER_US})
            reindex(db, "choose_before")
            db.execute(QUERIES["clear_before"])
        return Loaded(new, end - first, first, end)

    def _bodies(self, record: Record) -> list[bytes | None]:
        """What is stored compressed: the value if it is long, the content, each robots.txt."""
        value, content = record.observation.value, record.content if self.keep_content else None
        long = None if value is None or short(value.text) else raw(value.text)
        if long is None and content is None and not record.hosts:
            return []
        robots = [None if host.robots is None else raw(host.robots) for host in record.hosts]
        return [long, content, *robots]


def _reaches_out(record: Record) -> bool:
    """Whether a visit concerns other pages, or its host as a whole."""
    told = record.moved or record.canonical or record.alerts
    return bool(told or record.looked or record.entries is not None)


def _finds(record: Record, spans: Sequence[Span]) -> Row:
    """What a visit found beyond its observation, and the part of the blob that holds it."""
    value = record.observation.value
    if not spans:
        short_value = None if value is None else (value.kind, value.fields, value.text)
        return short_value, None, None, None, None
    start = min((first for first, _ in spans if first), default=1)
    long, body, *robots = [(first and first - start + 1, size) for first, size in spans]
    return (
        None
        if value is None
        else (value.kind, value.fields, None if long[1] else value.text, *long),
        (record.content_type, *body) if body[1] else None,
        [_host(host, span) for host, span in zip(record.hosts, robots, strict=True)] or None,
        start,
        sum(size or 0 for _, size in spans),
    )


def _host(host: HostState, robots: Span) -> Row:
    return host.host, host.next_at, host.strikes, host.robots_code, host.robots_until, *robots


def link(db: sqlite3.Connection, record: Record, caps: Caps) -> None:
    """Take up the entries of a source as far as the caps allow, within a transaction."""
    about = {
        "source": record.observation.page,
        "at": record.observation.at,
        "rows": rows(_admitted(db, record, caps)),
        "known": db.execute(QUERIES["last_page"]).fetchone()[0],
    }
    db.execute(QUERIES["clear_named"])
    for step in (
        "insert_entries",
        "name_entries",
        "signal_entries",
        "insert_look",
        "insert_finds",
        "link_entries",
    ):
        db.execute(QUERIES[step], about)
    if record.complete:
        db.execute(QUERIES["unlink_entries"], about)
    relist(db, record.observation.page)


def look_again(db: sqlite3.Connection, record: Record) -> None:
    """A source has said that it is as it was: all its links are still there."""
    about = {"source": record.observation.page, "at": record.observation.at}
    if db.execute(QUERIES["repeat_look"], about).rowcount:
        db.execute(QUERIES["see_links"], about)


def _admitted(db: sqlite3.Connection, record: Record, caps: Caps) -> list[Named]:
    """The entries that are taken up; if the caps leave out others, that is an alert."""
    source, entries = record.observation.page, named(record.entries or ())
    at = record.observation.at
    asked = {"source": source, "rows": rows(entries), "at": at, "day": at // DAY_US}
    (text,) = db.execute(QUERIES["known_entries"], asked).fetchone()
    known = msgspec.json.decode(text, type=list[Known], strict=False)
    row = db.execute(QUERIES["held_of_source"], asked).fetchone()
    host, url, links, host_links, pages, today, importing = row
    if record.complete:  # all other links of the source vanish
        links = sum(each.linked for each in known)
    hosts = {"hosts": rows(sorted({entry.host for entry in entries}))}
    on_hosts = dict(db.execute(QUERIES["held_on_hosts"], hosts).fetchall())
    admission = Admission(caps, Held(links, host_links, pages, on_hosts, today, bool(importing)))
    pairs = zip(entries, known, strict=True)
    admitted = [entry for entry, each in pairs if admission.admits(entry.host, each)]
    db.execute(QUERIES["count_found"], asked | {"new": 0 if importing else admission.new_})
    db.execute(QUERIES["leave_out"], {"source": source, "left_out": admission.left_out_})
    if admission.left_out_:
        put_alerts(db, [admission.alert(host, url, at)])
    elif not db.execute(QUERIES["leaves_out"], {"host": host}).fetchone()[0]:
        put_alerts(db, [Alert(host, "flood", at, over=True)])
    return admitted


def relist(db: sqlite3.Connection, source: int) -> None:
    """Let the pages that a source names, or named, rest or not, as their links now say."""
    db.execute(QUERIES["clear_chosen"])
    db.execute(QUERIES["choose_linked"], {"source": source})
    db.execute(QUERIES["relist"])


def move(db: sqlite3.Connection, record: Record) -> None:
    """Merge a page into the one that it has become, which is added if it is new."""
    if (place := place_of(record.moved)) is not None:
        seen = record.observation
        about = {"url": place[0], "host": place[1], "page": seen.page, "at": seen.at}
        db.execute(QUERIES["insert_moved"], about)
        (other,) = db.execute(QUERIES["page_of_url"], about).fetchone()
        merge(db, seen.page, other)


def unite(db: sqlite3.Connection, record: Record) -> None:
    """Merge a page into the one whose URL it calls its own, if they are known to be alike."""
    if (place := place_of(record.canonical)) is not None:
        page = record.observation.page
        found = db.execute(QUERIES["same_page"], {"url": place[0], "page": page}).fetchone()
        if found is not None:
            merge(db, page, found[0])


def merge(db: sqlite3.Connection, page: int, other: int) -> None:
    """Make one page an alias of another, unless that would close a ring.

    What was asked for the one holds for the other from now on, and its links go along.
    """
    both = {"page": page, "other": other}
    if db.execute(QUERIES["alias_page"], both).rowcount:
        for step in ("inherit", "hand_over_links", "drop_links", "hand_over_found"):
            db.execute(QUERIES[step], both)
        relist(db, other)


def set_done(db: sqlite3.Connection, reader: str, seq: int) -> None:
    """Remember how far a reader has come."""
    db.execute(QUERIES["set_done"], {"reader": clean(reader), "seq": seq})


def prune(db: sqlite3.Connection, before: int) -> int:
    """Delete what is old, some at a time. Returns how many observations."""
    total = 0
    tables = ("signals", "demand", "requests", "gauges", "samples", "looks", "finds")
    for table in (*tables, "observations"):
        total, query = 0, QUERIES[f"prune_{table}"]
        while gone := db.execute(query, {"before": before, "limit": PRUNED}).rowcount:
            total += gone
    return total


def remember(db: sqlite3.Connection, state: Iterable[bytes]) -> None:
    """Replace the run state, and count that. SQLite takes no more than a gigabyte in one piece."""
    with transaction(db):
        db.execute(QUERIES["forget_state"])
        for piece in state:
            db.execute(QUERIES["remember"], {"state": piece})
        db.execute(QUERIES["count_state"])


def put_alerts(db: sqlite3.Connection, alerts: Iterable[Alert]) -> None:
    """Raise and end alerts, within a transaction; one that lasts already takes the newer words."""
    for alert in alerts:
        query = QUERIES["end_alert" if alert.over else "raise_alert"]
        db.execute(query, clean(msgspec.to_builtins(alert)))


def sound(db: sqlite3.Connection, alerts: Sequence[Alert]) -> None:
    """Raise and end alerts, all or none."""
    with transaction(db):
        put_alerts(db, alerts)


def gauge(db: sqlite3.Connection, tick: Gauge, sample: Sample) -> None:
    """Keep a tick's sums and its sample, together or not at all."""
    drawn = zip(sample.visit.tolist(), sample.stale.tolist(), sample.demand.tolist(), strict=True)
    with transaction(db):
        db.execute(QUERIES["insert_gauge"], msgspec.structs.asdict(tick))
        db.execute(QUERIES["insert_samples"], {"rows": rows(list(drawn)), "at": tick.at})


def empanel(db: sqlite3.Connection, members: Sequence[Member]) -> None:
    """Let these be the panel, in place of the one before."""
    with transaction(db):
        db.execute(QUERIES["clear_panel"])
        table = [list(msgspec.structs.astuple(member)) for member in members]
        db.execute(QUERIES["insert_panel"], {"rows": rows(table)})
