"""Fakes and makers for tests of parts: a tick, blank pages, a store in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from salticus.coins import coins
from salticus.errors import InputError, StoreError, UnknownPage
from salticus.store.base import PageState, PageTable, Summary
from salticus.store.scanning import FIELD_COLUMNS
from salticus.store.urls import canonical
from salticus.types import (
    ANSWERED,
    NEVER,
    STATUS,
    HostState,
    Ints,
    NewPage,
    Observation,
    Outcomes,
    Pages,
    Plan,
    Record,
    Signal,
    Status,
    Target,
    Tick,
    Times,
)

__all__ = ["START", "MemoryStore", "StillWorld", "a_tick", "blank_pages"]

START = datetime(2026, 1, 1, tzinfo=UTC)


def blank_pages(n: int, *, hosts: int = 1) -> Pages:
    """`n` pages never visited, spread over `hosts` hosts, all alike.

    >>> len(blank_pages(3))
    3
    """
    ones = np.ones(n)
    return Pages(
        tick=a_tick(),
        ids=np.arange(n, dtype=np.int64),
        host=np.arange(n, dtype=np.int64) % hosts,
        added=np.full(n, np.datetime64(0, "us")),
        last_visit=np.full(n, NEVER),
        demand=ones,
        impressions=ones,
        cost=ones,
        max_interval=np.full(n, np.inf),
        capacity=np.full(hosts, np.inf),
    )


def a_tick(number: int = 0, length: timedelta = timedelta(hours=2)) -> Tick:
    """The tick of that number, counted from the start of 2026."""
    return Tick(number, START + number * length, START + (number + 1) * length)


class StillWorld:
    """A world whose pages never change and always answer, at the moment they are due.

    A share `drop` of the visits, by a hash of the visit, is dropped. `times` and `rows` tell what
    was visited when.
    """

    def __init__(self, pages: Pages, *, drop: float = 0.0) -> None:
        self._pages = replace(pages, last_visit=pages.last_visit.copy())
        self.drop = drop
        self.rows: list[Ints] = []
        self._times: list[Times] = []

    @property
    def times(self) -> Times:
        """When every visit was made."""
        return np.concatenate([np.empty(0, dtype="M8[us]"), *self._times])

    def times_of(self, row: int) -> Times:
        """When the page in that row was visited."""
        rows = np.concatenate([np.empty(0, dtype=np.int64), *self.rows])
        return np.asarray(self.times[rows == row])

    async def pages(self, tick: Tick) -> Pages:
        return replace(self._pages, tick=tick)

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        rows = self._pages.rows(plan.page)
        made = coins(0, plan.visit, 0) >= self.drop
        yield replace(
            Outcomes.dropped(plan, NEVER),
            at=plan.due,
            made=made,
            status=np.zeros(len(plan), dtype=np.int8),
            changed=np.zeros(len(plan), dtype=np.int8),
            since=self._pages.last_visit[rows],
        )
        self._pages.last_visit[rows[made]] = plan.due[made]
        self.rows.append(rows[made])
        self._times.append(plan.due[made])

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        nothing: list[Outcomes] = []
        for outcomes in nothing:
            yield outcomes


class _Page(msgspec.Struct):
    """A page in a `MemoryStore`: what people see, and what a visit needs."""

    state: PageState
    revision: int = 0
    digest: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    content: tuple[bytes, str] | None = None

    def edit(self, new: NewPage, revision: int) -> None:
        """Take the settings that are given."""
        state = self.state
        if new.kind is None and not new.tags and new.max_interval is None and new.demand is None:
            return
        self.revision = revision
        state.kind = state.kind if new.kind is None else new.kind
        state.tags = sorted({*state.tags, *new.tags})
        state.demand = state.demand if new.demand is None else new.demand
        if new.max_interval is not None:
            state.max_interval = new.max_interval

    def visited(self, seen: Observation) -> None:
        """Take up what a visit taught."""
        state = self.state
        state.last_visit, state.status, state.fault = seen.at, seen.status, seen.fault
        state.visits += 1
        if seen.changed:
            state.changes += 1
            state.last_change = seen.at
        if seen.value is not None:
            self.digest = seen.digest
            state.value, state.fields = seen.value.text, seen.value.fields
            state.kind = seen.value.kind if state.kind is None else state.kind
        if STATUS[seen.status] in ANSWERED:
            self._answered(seen)
        else:
            state.failures += 1

    def _answered(self, seen: Observation) -> None:
        self.state.last_answer = seen.at
        if seen.status == Status.OK.label or seen.etag is not None:
            self.etag = seen.etag
        if seen.status == Status.OK.label or seen.last_modified is not None:
            self.last_modified = seen.last_modified


class MemoryStore:
    """A store that forgets everything when it is dropped; for tests.

    >>> store = MemoryStore()
    >>> asyncio.run(store.add([NewPage("http://example.org")], at=0))
    1
    """

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}
        self._numbered: list[_Page] = []
        self._observations: dict[int, Observation] = {}
        self._values: dict[int, Observation] = {}
        self._hosts: dict[str, HostState] = {}
        self._signals: list[Signal] = []
        self._state: bytes | None = None
        self._revision = 0

    async def add(self, pages: Sequence[NewPage], *, at: int) -> int:
        before = len(self._pages)
        self._revision += 1
        for new, (url, host) in [(new, canonical(new.url)) for new in pages]:
            if url not in self._pages:
                self._numbered.append(_new_page(len(self._pages) + 1, url, host, at))
                self._pages[url] = self._numbered[-1]
                self._pages[url].revision = self._revision
            self._pages[url].edit(new, self._revision)
        return len(self._pages) - before

    async def table(self, after: int = -1) -> PageTable:
        pages = [page.state for page in self._pages.values() if page.revision > after]
        limits = [np.inf if p.max_interval is None else p.max_interval for p in pages]
        return PageTable(
            ids=np.array([p.page for p in pages], dtype=np.int64),
            host=[p.host for p in pages],
            added=_column([p.added for p in pages]),
            last_visit=_column([p.last_visit for p in pages]),
            demand=np.array([1.0 if p.demand is None else p.demand for p in pages]),
            cost=np.ones(len(pages)),
            max_interval=np.array(limits),
            revision=self._revision,
        )

    async def targets(self, pages: Ints) -> list[Target]:
        return [self._target(int(page)) for page in pages]

    def _target(self, number: int) -> Target:
        page = self._page(number)
        state = page.state
        return Target(
            page=number,
            url=state.url,
            host=state.host,
            kind=state.kind,
            etag=page.etag,
            last_modified=page.last_modified,
            digest=page.digest,
            seen=state.last_answer,
        )

    def _page(self, number: int) -> _Page:
        if not 0 < number <= len(self._numbered):
            raise StoreError(f"the store has no page with the id {number}")
        return self._numbered[number - 1]

    async def record(self, records: Sequence[Record]) -> None:
        for record in records:
            self._page(record.observation.page)
        for record in records:
            if record.observation.visit not in self._observations:
                self._record(record)

    def _record(self, record: Record) -> None:
        seen = record.observation
        page = self._page(seen.page)
        self._observations[seen.visit] = seen
        page.visited(seen)
        if seen.value is not None:
            self._values[seen.visit] = seen
        if record.content is not None:
            page.content = record.content, record.content_type
        self._hosts |= {host.host: host for host in record.hosts}

    async def outcomes(self, visits: Ints) -> Outcomes:
        stored = {int(visit) for visit in visits} & self._observations.keys()
        return Outcomes.of([self._observations[visit] for visit in sorted(stored)])

    async def hosts(self) -> list[HostState]:
        return [self._hosts[host] for host in sorted(self._hosts)]

    async def remember(self, state: bytes) -> None:
        self._state = state

    async def recall(self) -> bytes | None:
        return self._state

    async def notice(self, signals: Sequence[Signal]) -> None:
        self._signals += signals

    async def page(self, url: str) -> PageState:
        known = canonical(url)[0]
        if known not in self._pages:
            raise UnknownPage(known)
        return msgspec.structs.replace(self._pages[known].state)

    async def content(self, page: int) -> tuple[bytes, str] | None:
        return self._page(page).content if page in range(1, len(self._pages) + 1) else None

    async def summary(self) -> Summary:
        pages = [page.state for page in self._pages.values()]
        times = [seen.at for seen in self._observations.values()]
        return Summary(
            pages=len(pages),
            visited=sum(p.visits > 0 for p in pages),
            hosts=len({p.host for p in pages}),
            visits=sum(p.visits for p in pages),
            answered=sum(p.visits - p.failures for p in pages),
            changes=sum(p.changes for p in pages),
            by_status=dict(Counter(p.status for p in pages if p.status is not None)),
            first=min(times, default=None),
            last=max(times, default=None),
            bytes=0,
        )

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        tables: dict[str, Callable[[], list[dict[str, Any]]]] = {
            "pages": lambda: [_page_row(p.state) for p in self._numbered],
            "visits": lambda: [_visit_row(seen) for seen in _in_time(self._observations.values())],
            "values": lambda: [_value_row(seen) for seen in _in_time(self._values.values())],
            "signals": lambda: [
                {"page_id": s.page, "at": s.at, "kind": s.kind, "value": s.value}
                for s in sorted(self._signals, key=lambda s: s.at)
            ],
        }
        if table not in tables:
            raise InputError(f"the store has no table {table!r}; it has {', '.join(tables)}")
        return (row for row in tables[table]() if page in (None, row["page_id"]))

    async def backup(self, path: Path) -> None:
        """Write what people see of the pages, as JSON."""
        seen = msgspec.json.encode([page.state for page in self._numbered])
        await asyncio.to_thread(_write_new, path, seen)

    async def prune(self, before: int) -> int:
        old = [visit for visit, seen in self._observations.items() if seen.at < before]
        for visit in old:
            del self._observations[visit]
        self._signals = [signal for signal in self._signals if signal.at >= before]
        return len(old)

    async def close(self) -> None:
        """Nothing to close."""


def _new_page(number: int, url: str, host: str, at: int) -> _Page:
    return _Page(
        PageState(
            page=number,
            url=url,
            host=host,
            kind=None,
            tags=[],
            added=at,
            last_visit=None,
            last_answer=None,
            last_change=None,
            status=None,
            fault=None,
            value=None,
            fields={},
            visits=0,
            changes=0,
            failures=0,
            max_interval=None,
            demand=None,
        )
    )


def _write_new(path: Path, body: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(body)
    except FileExistsError:
        raise InputError(f"{path} exists already; a backup does not replace it") from None


def _column(micros: Sequence[int | None]) -> Times:
    return np.array(
        [NEVER if m is None else np.datetime64(m, "us") for m in micros], dtype="M8[us]"
    )


def _in_time(observations: Iterable[Observation]) -> list[Observation]:
    return sorted(observations, key=lambda seen: (seen.at, seen.visit))


def _page_row(state: PageState) -> dict[str, Any]:
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


def _visit_row(seen: Observation) -> dict[str, Any]:
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
    }


def _value_row(seen: Observation) -> dict[str, Any]:
    return {"page_id": seen.page, "at": seen.at, "value": seen.value and seen.value.text}
