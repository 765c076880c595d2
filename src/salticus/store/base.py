"""The contract of the store: nothing observed is ever lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from salticus.config import Caps, Scope
from salticus.errors import InputError
from salticus.types import (
    Alert,
    Bools,
    Change,
    Codes,
    Count,
    Counts,
    Findings,
    Floats,
    Gauge,
    HostState,
    Ints,
    Mark,
    Member,
    NewPage,
    Outcomes,
    Record,
    Request,
    Sample,
    Sighting,
    Signal,
    Target,
    Times,
    Told,
    Value,
)

STATES = ("moved", "paused", "unlisted", "new", "gone", "failing", "well")
SORTS = ("url", "added", "last_visit", "last_change", "changes", "failures", "demand")
MOST_CLICKS = 10_000  # of a page in an hour; more are a fault, or an attack on the budget
MOST_IMPRESSIONS = 100_000  # likewise
DROPPED = 9  # visits in a row with nothing to come back for, after which a page is dropped


@dataclass(frozen=True, slots=True)
class PageTable:
    """Pages as stored: columns ordered by id. `revision` is passed back to ask for later edits.

    `rests` is True for a page that is not to be visited: paused, merged into another, or no longer
    named by the sitemaps that it was found in. `found` is True for what sources brought. `idle`
    counts the visits in a row after which there was nothing to come back for soon: gone, soft_404,
    disallowed, unsafe. A forgotten page is there once more, with `rests`, so that whoever keeps
    columns learns of it.
    """

    ids: Ints
    host: list[str]
    added: Times
    last_visit: Times
    last_answer: Times
    kind: Codes  # place in `KINDS`, -1 = another or unknown
    demand: Floats
    cost: Floats
    max_interval: Floats  # days, inf = none
    idle: Ints
    rests: Bools
    found: Bools
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
    cost: float = 1.0
    idle: int = 0
    paused: bool = False
    unlisted: bool = False  # found by sources that have all ceased to name it
    moved: str | None = None  # the URL of the page that this one was merged into
    canonical: str | None = None  # what the page itself says its URL is
    sources: list[str] = []  # URLs of the sources that name it now
    told: Told | None = None  # what a merchant's feed says, if it is newer than the last answer

    @property
    def state(self) -> str:
        """One word for people, the first of `STATES` that fits."""
        if self.moved:
            return "moved"
        if self.paused:
            return "paused"
        if self.unlisted:
            return "unlisted"
        if self.status is None:
            return "new"
        if self.idle:
            return "gone"
        return "well" if self.status in ("ok", "not_modified") else "failing"


class Counted(msgspec.Struct, frozen=True):
    """What came of rows: how many were of known pages, what they added, which pages are unknown.

    What would exceed the cap for one hour of a page is not added.
    """

    rows: int
    clicks: int
    impressions: int
    unknown: tuple[str, ...] = ()  # canonical URLs, in the order in which they came


class Hit(msgspec.Struct, frozen=True):
    """A page that a search found, with what is known of it without a visit. Times are µs.

    What it offers is what the last answered visit left; of a page that was never answered, what a
    merchant's feed tells. `told` is what a feed says since the last answer.
    """

    page: int
    url: str
    title: str | None = None
    price: str | None = None
    currency: str | None = None
    availability: str | None = None
    last_visit: int | None = None
    last_answer: int | None = None
    told: Told | None = None


class Query(msgspec.Struct, frozen=True):
    """Which pages; conditions that are None do not count, `url` is a pattern (``*``, ``?``).

    `sort` is one of `SORTS`; what is unknown comes last, and equal pages in order of id.
    """

    url: str | None = None
    host: str | None = None  # a pattern, like `url`
    tag: str | None = None
    kind: str | None = None
    status: str | None = None
    state: str | None = None  # one of `STATES`
    sort: str = "url"
    descending: bool = False
    limit: int | None = None


def known(word: str, words: Sequence[str], what: str) -> str:
    """The word, if it is one of those known; InputError tells which are.

    >>> known("url", SORTS, "order")
    'url'
    """
    if word not in words:
        raise InputError(f"there is no {what} {word!r}; there is {', '.join(words)}")
    return word


class Edit(msgspec.Struct, frozen=True):
    """What to change of pages; None = leave as it is. A tag to add and to remove is removed."""

    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    kind: str | None = None
    max_interval: float | None = None  # days; inf = none
    demand: float | None = None
    cost: float | None = None  # in visits; inf = as the settings say
    paused: bool | None = None


class AlertState(msgspec.Struct):
    """An alert as it is kept. `until` is None while it lasts; µs."""

    host: str
    kind: str
    since: int
    until: int | None
    fault: str


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
    resting: int = 0  # pages that are not visited: paused, merged, dropped


class Store(Protocol):
    """Pages, observations (append-only), values, latest content, hosts, signals, run state.

    Laws: what `record` was given is there after it returns, once, also after kill -9; the records
    of one call are committed together or not at all; a visit id is stored once (a second record of
    the same visit is ignored); reads return what was given, in order; what sources name is taken
    up within `caps`, and what these leave out is an alert of the kind "flood".
    """

    caps: Caps

    async def add(self, pages: Sequence[NewPage], *, at: int) -> int:
        """Add pages (µs `at`); known ones get the settings that are given, and are revived unless
        they are only `found`. Returns how many are new."""

    async def table(self, after: int = -1) -> PageTable:
        """Pages added or edited after a revision; all by default."""

    async def targets(self, pages: Ints) -> list[Target]:
        """What is needed to visit these pages, in the order given, without those that are gone."""

    async def record(self, records: Sequence[Record]) -> None:
        """Store visits in one transaction: observation, new state of page and host, content; then
        what they say of other pages. Visits to forgotten pages are ignored."""

    async def outcomes(self, visits: Ints) -> Outcomes:
        """The outcomes of those of the given visits that are stored, ordered by visit."""

    async def outcomes_after(self, visit: int) -> Outcomes:
        """The outcomes of all stored visits with a higher number, ordered by visit."""

    async def hosts(self) -> list[HostState]:
        """Every host's remembered state."""

    async def remember(self, state: bytes) -> None:
        """Replace the run state."""

    async def recall(self) -> bytes | None:
        """The run state last remembered."""

    async def notice(self, signals: Sequence[Signal]) -> None:
        """Store signals."""

    async def told(self, rows: Sequence[Told]) -> int:
        """Store what merchants' feeds state: as `told` of the page until its next answer, and as a
        signal of kind ``feed:origin``. Pages that are not known are added. A row that says what
        was told last leaves nothing. Returns how many rows left something."""

    async def ids(self, urls: Sequence[str]) -> Ints:
        """The page of each URL, or the one that it has become; -1 if it is not known, or no URL."""

    async def count(self, rows: Sequence[Count]) -> int:
        """Add what readers did, together or not at all. Returns how many rows were of pages that
        are known; the others leave nothing. A page that has moved counts as the one it became. An
        hour of a page never holds more than `MOST_CLICKS` clicks and `MOST_IMPRESSIONS`."""

    async def take(self, rows: Sequence[Count], mark: Mark | None = None) -> Counted:
        """As `count`, and the mark up to which a file was read is kept with it or not at all. Rows
        that add nothing leave no mark: whoever reads them again may have added their pages."""

    async def marks(self) -> list[Mark]:
        """How far files were read, as it was marked, each mark once."""

    async def counts(self, after: int = 0, *, limit: int = 250_000) -> Counts:
        """What was counted after the row with number `after`, in order."""

    async def ask(self, requests: Sequence[Request]) -> None:
        """Store what became of clicks that asked for a visit; a number that is there stays."""

    async def asked(self, after: int = 0) -> list[Request]:
        """Requests after the one with number `after`, in order."""

    async def alerts(self, *, past: bool = False) -> list[AlertState]:
        """Alerts that last, or with `past` all of them, oldest first."""

    async def sound(self, alerts: Sequence[Alert]) -> None:
        """Raise and end alerts that no visit brings; one that lasts takes the newer words."""

    async def gauge(self, tick: Gauge, sample: Sample) -> None:
        """Keep what the estimate of freshness needs of a tick, in place of what was kept of it."""

    async def gauged(self, start: int, end: int) -> tuple[list[Gauge], Findings]:
        """Of the ticks that began from µs `start` up to `end`: their sums, and those visits of
        their samples that were made, ordered by visit."""

    async def empanel(self, members: Sequence[Member]) -> None:
        """Let these pages be the panel, in place of those before."""

    async def panel(self) -> list[Member]:
        """The panel, ordered by page, without pages that were forgotten."""

    async def sightings(self) -> list[Sighting]:
        """All visits to pages of the panel while they belonged to it, and the last answered one
        before, by page and time."""

    async def value(self, page: int) -> Value | None:
        """The value that the last answered visit left."""

    async def find(self, query: Query) -> list[PageState]:
        """Pages that fit, in order; their values are cut to 200 characters."""

    async def search(self, words: str, limit: int = 20) -> list[Hit]:
        """Pages with a value whose title, brand, category, merchant, numbers or URL have all of the
        words, best first; the last word may be the beginning of one. Pages that are gone, paused,
        moved or unlisted are left out, and sources. Any text may be asked for."""

    async def edit(self, query: Query, edit: Edit) -> int:
        """Edit all pages that fit (limit and order do not count). Returns how many."""

    async def forget(self, query: Query) -> int:
        """Delete all pages that fit with everything known of them. Returns how many. A page that
        had become one of them is itself again."""

    async def charge(self, costs: Sequence[tuple[Scope, float]]) -> None:
        """Let every page without a cost of its own cost what the first scope that it is in says,
        else 1. Cheap to repeat: only new and edited pages are looked at."""

    async def fitting(self, pages: Ints, scopes: Sequence[Scope]) -> Ints:
        """The place of the first scope that each page is in; -1 = none, or the page is not
        there."""

    async def changes(self, after: int, *, limit: int = 1000) -> list[Change]:
        """New values stored after the change with number `after`, in order."""

    async def last_change(self) -> int:
        """The number of the newest change; 0 if there is none."""

    async def done(self, reader: str, seq: int | None = None) -> int:
        """How far a named reader of changes has come; first sets it if `seq` is given."""

    async def page(self, url: str) -> PageState:
        """One page; raises UnknownPage."""

    async def content(self, page: int) -> tuple[bytes, str] | None:
        """Latest content kept, with its content type."""

    async def summary(self) -> Summary:
        """Counts for `status`."""

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        """Rows of "pages", "visits", "values", "signals", "links", "demand" or "requests" in order
        of time, streamed; of one page if given. Columns are those of the exchange format. Times are
        µs. A plain iterator: exports run in a process of their own."""

    def facts(self, pages: Ints) -> dict[str, list[str | None]]:
        """Column by column, row by row: `host`, and of the fields of the page's value brand,
        category, title and so on, as `scan` has them. Of a page that is not there: an empty host,
        and nothing else. Plain, as `scan` is."""

    def history(self) -> Iterator[Outcomes]:
        """The outcomes of all visits in order of time, chunk by chunk. Plain, as `scan` is."""

    async def backup(self, path: Path) -> None:
        """Copy the store while it is in use."""

    async def prune(self, before: int) -> int:
        """Delete observations, signals, counts and gauges older than µs `before`; values and page
        stay. Returns how many observations went."""

    async def close(self) -> None: ...
