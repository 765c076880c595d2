"""What estimates of freshness are made from, and alerts (`FreshnessStore`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from salticus.store.nouns import AlertState
from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import clean, rows
from salticus.store.sqlite.queries import QUERIES
from salticus.types import Alert, Findings, Gauge, Member, Sample, Sighting


def gauge(db: sqlite3.Connection, tick: Gauge, sample: Sample) -> None:
    """Keep a tick's sums and its sample, together or not at all."""
    drawn = zip(sample.visit.tolist(), sample.stale.tolist(), sample.demand.tolist(), strict=True)
    with transaction(db):
        db.execute(QUERIES["insert_gauge"], msgspec.structs.asdict(tick))
        db.execute(QUERIES["insert_samples"], {"rows": rows(list(drawn)), "at": tick.at})


def gauged(db: sqlite3.Connection, start: int, end: int) -> tuple[list[Gauge], Findings]:
    """The ticks that began from µs `start` up to `end`, and what their samples found."""
    span = {"start": start, "end": end}
    ticks = [Gauge(**dict(row)) for row in db.execute(QUERIES["gauges"], span)]
    return ticks, Findings.of([tuple(row) for row in db.execute(QUERIES["findings"], span)])


def empanel(db: sqlite3.Connection, members: Sequence[Member]) -> None:
    """Let these be the panel, in place of the one before."""
    with transaction(db):
        db.execute(QUERIES["clear_panel"])
        table = [list(msgspec.structs.astuple(member)) for member in members]
        db.execute(QUERIES["insert_panel"], {"rows": rows(table)})


def panel(db: sqlite3.Connection) -> list[Member]:
    """The panel, ordered by page."""
    return [Member(**dict(row)) for row in db.execute(QUERIES["panel"])]


def sightings(db: sqlite3.Connection) -> list[Sighting]:
    """All visits to the pages of the panel while they belonged to it, and the last before."""
    return [Sighting(**dict(row)) for row in db.execute(QUERIES["sightings"])]


def put_alerts(db: sqlite3.Connection, alerts: Iterable[Alert]) -> None:
    """Raise and end alerts, within a transaction; one that lasts already takes the newer words."""
    for alert in alerts:
        query = QUERIES["end_alert" if alert.over else "raise_alert"]
        db.execute(query, clean(msgspec.to_builtins(alert)))


def sound(db: sqlite3.Connection, alerts: Sequence[Alert]) -> None:
    """Raise and end alerts, all or none."""
    with transaction(db):
        put_alerts(db, alerts)


def alerts(db: sqlite3.Connection, *, past: bool = False) -> list[AlertState]:
    """Alerts that last, or all of them."""
    return [AlertState(**dict(row)) for row in db.execute(QUERIES["alerts"], {"past": past})]
