"""A store in memory: the laws of `Store` in plain Python."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Self, cast

import msgspec
import numpy as np

from salticus.errors import InputError, StoreError, StoreLocked, StoreMissing
from salticus.store.memory.page import row_of
from salticus.store.memory.readers import ReaderBook
from salticus.store.news import named, place_of
from salticus.store.nouns import (
    FIELD_COLUMNS,
    AlertState,
    Health,
    History,
    Loaded,
    Query,
    Stamp,
    Summary,
)
from salticus.types import (
    Alert,
    Change,
    Findings,
    Gauge,
    HostState,
    Ints,
    Member,
    NewPage,
    Observation,
    Outcomes,
    Record,
    Sample,
    Sighting,
    Signal,
    Value,
)
from salticus.urls import canonical

_VISIT = "at purpose policy propensity status changed value age_s code fault chance"
_GONE = ("gone", "soft_404")
_ANSWERED = ("ok", "not_modified")
_NAMED: dict[tuple[type, str], MemoryStore] = {}


class MemoryStore(ReaderBook):
    """A store that forgets everything when it is dropped; for tests.

    >>> from salticus.types import NewPage
    >>> store = MemoryStore()
    >>> asyncio.run(store.add([NewPage("http://example.org")], at=0))
    1
    """

    def __init__(self, *, keep_content: bool = True) -> None:
        super().__init__()
        self.keep_content = keep_content
        self._holder: str | None = None
        self._observations: dict[int, Observation] = {}  # by visit
        self._values: dict[int, Observation] = {}
        self._changes: list[int] = []
        self._alerts: list[AlertState] = []
        self._hosts: dict[str, HostState] = {}
        self._done: dict[str, int] = {}
        self._gauges: dict[int, Gauge] = {}
        self._samples: dict[int, tuple[int, float, float]] = {}
        self._panel: dict[int, Member] = {}
        self._state: bytes | None = None
        self._states = self._looks = 0

    @classmethod
    async def open(cls, place: str, *, keep_content: bool = True, create: bool = True) -> Self:
        """Without a name a new store, else the one that this process calls so."""
        if not create and (cls, place) not in _NAMED:
            raise StoreMissing(f"there is no store {place!r} in memory yet")
        store = cls() if not place else _NAMED.setdefault((cls, place), cls())
        store.keep_content = keep_content
        return cast(Self, store)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        if self._holder is not None:
            raise StoreLocked("this store in memory is in use by another crawler")
        self._holder = str(os.getpid())
        try:
            yield
        finally:
            self._holder = None

    async def holder(self) -> str | None:
        return self._holder

    async def health(self) -> Health:
        return Health(None, 0, None)

    # ----------------------------------------------------------------------------------- visits

    async def record(self, records: Sequence[Record]) -> None:
        strangers = {record.observation.page for record in records} - self._pages.keys()
        if strangers - self._forgotten.keys():
            raise StoreError("a visit to a page that is not in the store cannot be recorded")
        self._revision += 1
        for record in [record for record in records if self._visited(record)]:
            self._reach_out(record)

    async def load(
        self, pages: Iterable[Sequence[NewPage]], history: History, *, at: int, most: int
    ) -> Loaded:
        before = deepcopy(self.__dict__)
        new, ids, first = 0, list[int](), min([0, *self._observations]) - most
        end = first
        try:
            for batch in pages:
                new += await self.add(batch, at=at)
                ids += [self._ids[canonical(page.url)[0]] for page in batch]
            for seen in history(np.array(ids, dtype=np.int64)):
                known = {(each.page, each.at) for each in self._observations.values()}
                fresh = [each for each in seen if (each.page, each.at) not in known]
                for number, each in enumerate(fresh, end):
                    each.visit = number
                end += len(fresh)
                await self.record([Record(each) for each in fresh])
            for number, page in before["_pages"].items():
                self._pages[number].stays(page)
        except BaseException:
            self.__dict__ = before
            raise
        return Loaded(new, end - first, first, end)

    def _visited(self, record: Record) -> bool:
        """Take up a visit; False if it does not count."""
        seen = record.observation
        if seen.page in self._forgotten or seen.visit in self._observations:
            return False
        if not self.keep_content:
            record = msgspec.structs.replace(record, content=None)
        self._observations[seen.visit] = seen
        self._pages[seen.page].visited(record)
        if seen.value is not None:
            self._values[seen.visit] = seen
            self._changes += [seen.visit] if seen.visit >= 0 else []
        self._hosts |= {host.host: host for host in record.hosts}
        return True

    def _reach_out(self, record: Record) -> None:
        """What a visit says of other pages, and of its host as a whole."""
        seen = record.observation
        if record.entries is not None:
            entries, alert = self._admitted(record, named(record.entries))
            if alert is not None:
                self._sound(alert)
            news = self._link(record, entries)
            told = {self._ids[entry.url]: (entry.word, entry.told) for entry in entries}
            self._signals += [Signal(page, seen.at, *told[page]) for page in news]
        elif record.looked:
            self._look_again(record)
        if (place := place_of(record.moved)) is not None:
            self._move(seen.page, place, seen.at)
        if (place := place_of(record.canonical)) is not None:
            self._unite(seen.page, place[0])
        for alert in record.alerts:
            self._sound(alert)

    async def outcomes(self, visits: Ints) -> Outcomes:
        stored = {int(visit) for visit in visits} & self._observations.keys()
        return Outcomes.of([self._observations[visit] for visit in sorted(stored)])

    async def outcomes_after(self, visit: int) -> Outcomes:
        later = sorted(number for number in self._observations if number > visit)
        return Outcomes.of([self._observations[number] for number in later])

    async def value(self, page: int) -> Value | None:
        return self._pages[page].value if page in self._pages else None

    async def content(self, page: int) -> tuple[bytes, str] | None:
        return self._pages[page].content if page in self._pages else None

    async def changes(self, after: int, *, limit: int = 1000) -> list[Change]:
        numbered = [(seq, visit) for seq, visit in enumerate(self._changes, 1) if seq > after]
        kept = [(seq, self._values[visit]) for seq, visit in numbered if visit in self._values]
        return [self._change(seq, found) for seq, found in kept[:limit]]

    def _change(self, seq: int, found: Observation) -> Change:
        page, values = self._pages[found.page].state, _in_time(self._values.values())
        earlier = [seen.value for seen in values[: values.index(found)] if seen.page == found.page]
        before = earlier[-1] if earlier else None
        changed = found.changed if found.visit in self._observations else True
        return Change(
            seq=seq,
            at=found.at,
            page=found.page,
            url=page.url,
            tags=tuple(page.tags),
            changed=None if before is None else changed,
            before=before,
            after=found.value or Value("", ""),
        )

    async def last_change(self) -> int:
        return len(self._changes)

    async def done(self, reader: str, seq: int | None = None) -> int:
        if seq is not None:
            self._done[reader] = seq
        return self._done.get(reader, 0)

    # --------------------------------------------------------------------------------- the rest

    async def hosts(self) -> list[HostState]:
        return [self._hosts[host] for host in sorted(self._hosts)]

    async def remember(self, state: Iterable[bytes]) -> None:
        self._state, self._states = b"".join(state), self._states + 1

    async def stamp(self) -> Stamp:
        self._looks += 1  # nobody counts the writes, so every look may find another store
        return Stamp(self._looks, self._states)

    async def recall(self) -> bytes | None:
        return self._state

    def _sound(self, alert: Alert) -> None:
        open_ = {(a.host, a.kind): a for a in self._alerts if a.until is None}
        lasting = open_.get((alert.host, alert.kind))
        if lasting is None:
            new = AlertState(alert.host, alert.kind, alert.at, None, alert.fault)
            self._alerts += [] if alert.over else [new]
        elif alert.over:
            lasting.until = alert.at
        else:
            lasting.fault = alert.fault

    async def sound(self, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            self._sound(alert)

    async def alerts(self, *, past: bool = False) -> list[AlertState]:
        wanted = [alert for alert in self._alerts if past or alert.until is None]
        return sorted(map(msgspec.structs.replace, wanted), key=lambda alert: alert.since)

    # ------------------------------------------------------------------------------- freshness

    async def gauge(self, tick: Gauge, sample: Sample) -> None:
        self._gauges[tick.at] = tick
        drawn = zip(sample.stale.tolist(), sample.demand.tolist(), strict=True)
        visits = zip(sample.visit.tolist(), drawn, strict=True)
        self._samples |= {visit: (tick.at, *known) for visit, known in visits}

    async def gauged(self, start: int, end: int) -> tuple[list[Gauge], Findings]:
        ticks = [self._gauges[at] for at in sorted(self._gauges) if start <= at < end]
        table: list[tuple[float | None, ...]] = []
        for visit, (at, stale, demand) in sorted(self._samples.items()):
            seen = self._observations.get(visit)
            if seen is not None and start <= at < end:
                since = [o for o in self._of_page(seen.page) if o.at >= at]  # maybe an urgent one
                found = self._found(min([seen, *since], key=lambda o: o.at))
                table.append((seen.page, at, seen.propensity, seen.chance, stale, demand, found))
        return ticks, Findings.of(table)

    def _of_page(self, page: int) -> list[Observation]:
        """All visits to a page, in order of time."""
        return [seen for seen in _in_time(self._observations.values()) if seen.page == page]

    def _found(self, seen: Observation) -> float | None:
        """Whether the copy was out of date; None if the visit cannot tell."""
        if seen.status in _GONE:
            past = [o.status for o in self._of_page(seen.page) if o.at < seen.at]
            known = [status for status in past if status in (*_GONE, *_ANSWERED)]
            return float(not known or known[-1] in _ANSWERED)
        if seen.status not in _ANSWERED:
            return None
        if seen.since is None:
            return 1.0
        return None if seen.changed is None else float(seen.changed)

    async def empanel(self, members: Sequence[Member]) -> None:
        self._panel = {member.page: member for member in members}

    async def panel(self) -> list[Member]:
        return [self._panel[p] for p in sorted(self._panel) if p not in self._forgotten]

    async def sightings(self) -> list[Sighting]:
        found = []
        for page, member in sorted(self._panel.items()):
            visits = self._of_page(page)
            known = (o.at for o in visits if o.at < member.since and o.status in _ANSWERED)
            start = max(known, default=member.since)
            for o in visits:
                if start <= o.at <= (o.at if member.until is None else member.until):
                    digest = o.digest if o.status in _ANSWERED else None
                    found.append(Sighting(page, o.at, o.purpose, digest))
        return found

    # --------------------------------------------------------------------------------- all of it

    async def forget(self, query: Query) -> int:
        gone = await super().forget(query)
        for kept in (self._observations, self._values):
            for visit in [visit for visit, seen in kept.items() if seen.page in self._forgotten]:
                del kept[visit]
        self._keep(lambda page, at: page not in self._forgotten)
        return gone

    async def summary(self) -> Summary:
        pages = [page.state for page in self._pages.values()]
        times = [seen.at for seen in self._observations.values()]
        rest = [self._rests(p) or p.state.is_dropped for p in self._pages.values()]
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
            resting=sum(rest),
        )

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        tables: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
            "pages": self._page_rows,
            "visits": lambda: _rows(_VISIT, self._observations),
            "values": lambda: _rows("at value", self._values),
            "signals": self._signal_rows,
            "links": self._link_rows,
            "demand": self._demand_rows,
            "requests": self._request_rows,
        }
        if table not in tables:
            raise InputError(f"the store has no table {table!r}; it has {', '.join(tables)}")
        return (row for row in tables[table]() if page in (None, row["page_id"]))

    def facts(self, pages: Ints) -> dict[str, list[str | None]]:
        found: dict[str, list[str | None]] = {name: [] for name in ("host", *FIELD_COLUMNS)}
        for page in map(self._pages.get, pages.tolist()):
            fields = page.known_fields if page else {}
            found["host"].append(page.state.host if page else "")
            for name in FIELD_COLUMNS:
                found[name].append(fields.get(name))
        return found

    def history(self) -> Iterator[Outcomes]:
        if self._observations:
            yield Outcomes.of(_in_time(self._observations.values()))

    async def backup(self, path: Path) -> None:
        """Write what people see of the pages, as JSON."""
        seen = msgspec.json.encode([self._shown(page) for page in self._pages.values()])
        await asyncio.to_thread(_write_new, path, seen)

    async def prune(self, before: int) -> int:
        old = [visit for visit, seen in self._observations.items() if seen.at < before]
        for visit in old:
            del self._observations[visit]
        self._keep(lambda page, at: at >= before)
        self._prune_looks(before)
        self._gauges = {at: tick for at, tick in self._gauges.items() if at >= before}
        self._samples = {v: drawn for v, drawn in self._samples.items() if drawn[0] >= before}
        return len(old)

    async def close(self) -> None:
        """Nothing to close."""


def _write_new(path: Path, body: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(body)
    except FileExistsError:
        raise InputError(f"{path} exists already; a backup does not replace it") from None


def _in_time(observations: Iterable[Observation]) -> list[Observation]:
    return sorted(observations, key=lambda seen: (seen.at, seen.visit))


def _rows(columns: str, kept: dict[int, Observation]) -> Iterator[dict[str, Any]]:
    for seen in _in_time(kept.values()):
        yield row_of(columns, seen, policy=None, value=seen.value and seen.value.text)
