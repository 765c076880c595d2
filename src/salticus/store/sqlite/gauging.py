"""What the estimate of freshness is made from: a row a tick, and the visits that explored."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from salticus.store.sqlite.database import transaction
from salticus.store.sqlite.packing import rows
from salticus.store.sqlite.queries import QUERIES
from salticus.types import Findings, Gauge, Member, Sample, Sighting


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
