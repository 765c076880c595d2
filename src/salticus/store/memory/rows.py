"""What a `MemoryStore` holds, as rows of the exchange format and as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from salticus.store.base import FIELD_COLUMNS, PageState, PageTable
from salticus.types import KINDS, NEVER, Observation, Signal, Times

Row = dict[str, Any]


def table_of(rows: Sequence[tuple[PageState, bool, bool]], revision: int) -> PageTable:
    """Columns of pages, each with whether it rests, and whether it was found."""
    pages = [page for page, *_ in rows]
    limits = [np.inf if p.max_interval is None else p.max_interval for p in pages]
    return PageTable(
        ids=np.array([p.page for p in pages], dtype=np.int64),
        host=[p.host for p in pages],
        added=_times([p.added for p in pages]),
        last_visit=_times([p.last_visit for p in pages]),
        last_answer=_times([p.last_answer for p in pages]),
        kind=np.array([_kind(p.kind) for p in pages], dtype=np.int8),
        demand=np.array([1.0 if p.demand is None else p.demand for p in pages]),
        cost=np.array([p.cost for p in pages]),
        max_interval=np.array(limits),
        idle=np.array([p.idle for p in pages], dtype=np.int64),
        rests=np.array([rests for _, rests, _ in rows], dtype=np.bool_),
        found=np.array([found for *_, found in rows], dtype=np.bool_),
        revision=revision,
    )


def _kind(kind: str | None) -> int:
    return KINDS.index(kind) if kind in KINDS else -1


def _times(micros: Sequence[int | None]) -> Times:
    return np.array(
        [NEVER if m is None else np.datetime64(m, "us") for m in micros], dtype="M8[us]"
    )


def in_time(observations: Iterable[Observation]) -> list[Observation]:
    """In order of time, then of visit."""
    return sorted(observations, key=lambda seen: (seen.at, seen.visit))


def page_row(state: PageState) -> Row:
    """A page."""
    known = {name: state.fields.get(name) for name in FIELD_COLUMNS}
    return {
        "page_id": state.page,
        "url": state.url,
        "kind": state.kind,
        "host": state.host,
        "tags": state.tags,
        "max_interval": state.max_interval,
        "demand": state.demand,
        **known,
    }


def visit_row(seen: Observation) -> Row:
    """A visit."""
    return {
        "page_id": seen.page,
        "at": seen.at,
        "purpose": seen.purpose,
        "policy": None,
        "propensity": seen.propensity,
        "status": seen.status,
        "changed": seen.changed,
        "value": None if seen.value is None else seen.value.text,
        "age_s": seen.age_s,
        "code": seen.code,
        "fault": seen.fault,
        "chance": seen.chance,
    }


def value_row(seen: Observation) -> Row:
    """A new value."""
    return {"page_id": seen.page, "at": seen.at, "value": seen.value and seen.value.text}


def signal_row(signal: Signal) -> Row:
    """A signal."""
    return {
        "page_id": signal.page,
        "at": signal.at,
        "kind": signal.kind,
        "value": signal.value,
    }
