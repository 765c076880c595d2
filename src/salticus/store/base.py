"""The contract of the store: nothing observed is ever lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from salticus.types import (
    Floats,
    HostState,
    Ints,
    NewPage,
    Outcomes,
    Record,
    Signal,
    Target,
    Times,
)


@dataclass(frozen=True, slots=True)
class PageTable:
    """Pages as stored: columns ordered by id. `revision` is passed back to ask for later edits."""

    ids: Ints
    host: list[str]
    added: Times
    last_visit: Times
    demand: Floats
    cost: Floats
    max_interval: Floats  # days, inf = none
    revision: int


class PageState(msgspec.Struct):
    """One page with its present state, for people. Times are µs, None = never."""

    page: int
    url: str
    host: str
    kind: str | None
    tags: list[str]
    added: int
    last_visit: int | None
    last_answer: int | None
    last_change: int | None
    status: str | None
    fault: str | None
    value: str | None
    fields: dict[str, str]
    visits: int
    changes: int
    failures: int
    max_interval: float | None
    demand: float | None


class Summary(msgspec.Struct):
    """Counts over the whole store."""

    pages: int
    visited: int
    hosts: int
    visits: int
    answered: int
    changes: int
    by_status: dict[str, int]
    first: int | None
    last: int | None
    bytes: int


class Store(Protocol):
    """Pages, observations (append-only), values, latest content, hosts, signals, run state.

    Laws: what `record` was given is there after it returns, once, also after kill -9; the records
    of one call are committed together or not at all; a visit id is stored once (a second record of
    the same visit is ignored); reads return what was given, in order.
    """

    async def add(self, pages: Sequence[NewPage], *, at: int) -> int:
        """Add pages (µs `at`); known ones get the settings that are given. Returns the new ones."""

    async def table(self, after: int = -1) -> PageTable:
        """Pages added or edited after a revision; all by default."""

    async def targets(self, pages: Ints) -> list[Target]:
        """What is needed to visit these pages, in the order given."""

    async def record(self, records: Sequence[Record]) -> None:
        """Store visits in one transaction: observation, new state of page and host, content."""

    async def outcomes(self, visits: Ints) -> Outcomes:
        """The outcomes of those of the given visits that are stored, ordered by visit."""

    async def hosts(self) -> list[HostState]:
        """Every host's remembered state."""

    async def remember(self, state: bytes) -> None:
        """Replace the run state."""

    async def recall(self) -> bytes | None:
        """The run state last remembered."""

    async def notice(self, signals: Sequence[Signal]) -> None:
        """Store signals."""

    async def page(self, url: str) -> PageState:
        """One page; raises UnknownPage."""

    async def content(self, page: int) -> tuple[bytes, str] | None:
        """Latest content kept, with its content type."""

    async def summary(self) -> Summary:
        """Counts for `status`."""

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        """Rows of "pages", "visits", "values" or "signals" in order of time, streamed; of one page
        if given. Columns are those of the exchange format. Times are µs. A plain iterator: exports
        run in a process of their own."""

    async def backup(self, path: Path) -> None:
        """Copy the store while it is in use."""

    async def prune(self, before: int) -> int:
        """Delete observations and signals older than µs `before`; values and page states stay.
        Returns how many observations went."""

    async def close(self) -> None: ...
