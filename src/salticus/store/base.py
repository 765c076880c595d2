"""The contracts of the store, by who asks: nothing observed is ever lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from salticus.config import Caps, Scope
from salticus.store.nouns import (
    AlertState,
    Edit,
    Health,
    History,
    Hit,
    Loaded,
    PageState,
    Query,
    Stamp,
    Summary,
)
from salticus.types import (
    Alert,
    Bools,
    Change,
    Codes,
    Count,
    Counted,
    Counts,
    Find,
    Findings,
    Floats,
    FoundPages,
    Gauge,
    HostState,
    Ints,
    Looks,
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


class PageStore(Protocol):
    """Pages: what is set for them, their present state, and columns of all of them."""

    caps: Caps  # what sources name is taken up within them; the rest is an alert "flood"

    async def add(self, pages: Sequence[NewPage], *, at: int) -> int:
        """Add pages (µs `at`); known ones get the settings that are given, and are revived unless
        they are only `found`. Returns how many are new."""

    async def table(self, after: int = -1) -> PageTable:
        """Pages added or edited after a revision; all by default."""

    async def counts(self, after: int = 0, *, limit: int = 250_000) -> Counts:
        """What was counted after the row with number `after`, in order."""

    async def targets(self, pages: Ints) -> list[Target]:
        """What is needed to visit these pages, in the order given, without those that are gone."""

    async def fitting(self, pages: Ints, scopes: Sequence[Scope]) -> Ints:
        """The place of the first scope that each page is in; -1 = none, or no such page."""

    async def charge(self, costs: Sequence[tuple[Scope, float]]) -> None:
        """Let every page without a cost of its own cost what the first scope that it is in says,
        else 1. Cheap to repeat: only new and edited pages are looked at."""

    async def page(self, url: str) -> PageState:
        """One page; raises UnknownPage."""

    async def find(self, query: Query) -> list[PageState]:
        """Pages that fit, in order; their values are cut to 200 characters."""

    async def edit(self, query: Query, edit: Edit) -> int:
        """Edit all pages that fit (limit and order do not count). Returns how many."""

    async def forget(self, query: Query) -> int:
        """Delete all pages that fit with everything known of them. Returns how many. A page that
        had become one of them is itself again."""

    async def summary(self) -> Summary:
        """Counts for `status`."""


class VisitStore(Protocol):
    """Visits, append-only, and what they taught: written once, read in order of time.

    Laws: what `record` was given is there after it returns, once, also after kill -9; the records
    of one call are committed together or not at all; a visit id is stored once (a second record of
    the same visit is ignored); reads return what was given, in order.
    """

    async def record(self, records: Sequence[Record]) -> None:
        """Store visits in one transaction: observation, new state of page and host, content; then
        what they say of other pages. Visits to forgotten pages are ignored."""

    async def load(
        self, pages: Iterable[Sequence[NewPage]], history: History, *, at: int, most: int
    ) -> Loaded:
        """Add pages (µs `at`) and at most `most` visits made elsewhere, all of it or nothing.

        `history` is told the ids of the pages in the order in which they came. A visit whose page
        has one at that time already is passed over. The numbers of the others are negative: those
        above 0 are the planner's. A page that was visited later keeps the state that this left."""

    def scan(self, table: str, page: int | None = None) -> Iterator[dict[str, Any]]:
        """Rows of "pages", "visits", "values", "signals", "links", "demand" or "requests" in order
        of time, streamed; of one page if given. Columns are those of the exchange format. Times are
        µs. A plain iterator: exports run in a process of their own."""

    def history(self) -> Iterator[Outcomes]:
        """The outcomes of all visits in order of time, chunk by chunk. Plain, as `scan` is."""

    def facts(self, pages: Ints) -> dict[str, list[str | None]]:
        """Column by column, row by row: `host`, and of the fields of the page's value brand,
        category, title and so on, as `scan` has them. Of a page that is not there: an empty host,
        and nothing else. Plain, as `scan` is."""

    async def prune(self, before: int) -> int:
        """Delete observations, signals, counts and gauges older than µs `before`; values and page
        stay. Returns how many observations went."""


class ReaderStore(Protocol):
    """Readers and what they bring without a visit: searches, clicks, signals, feeds."""

    async def ids(self, urls: Sequence[str]) -> Ints:
        """The page of each URL, or the one that it has become; -1 if it is not known, or no URL."""

    async def search(self, words: str, limit: int = 20) -> list[Hit]:
        """Pages with a value whose title, brand, category, merchant, numbers or URL have all of the
        words, best first; the last word may be the beginning of one. Pages that are gone, paused,
        moved or unlisted are left out, and sources. Any text may be asked for."""

    async def count(self, rows: Sequence[Count]) -> int:
        """Add what readers did, together or not at all. Returns how many rows were of pages that
        are known; the others leave nothing. A page that has moved counts as the one it became. An
        hour of a page never holds more than `MOST_CLICKS` clicks and `MOST_IMPRESSIONS`."""

    async def take(self, rows: Sequence[Count], mark: Mark | None = None) -> Counted:
        """As `count`, and the mark up to which a file was read is kept with it or not at all. Rows
        that add nothing leave no mark: whoever reads them again may have added their pages."""

    async def marks(self) -> list[Mark]:
        """How far files were read, as it was marked, each mark once."""

    def past_counts(self, until: int) -> Iterator[Counts]:
        """What was counted up to the row with number `until`, in order of time, chunk by chunk.
        Plain, as `scan` is."""

    async def ask(self, requests: Sequence[Request]) -> None:
        """Store what became of clicks that asked for a visit; a number that is there stays."""

    async def notice(self, signals: Sequence[Signal]) -> None:
        """Store signals."""

    async def told(self, rows: Sequence[Told]) -> int:
        """Store what merchants' feeds state: as `told` of the page until its next answer, and as a
        signal of kind ``feed:origin``. Pages that are not known are added. A row that says what
        was told last leaves nothing. Returns how many rows left something."""


class ChangeStore(Protocol):
    """Values, contents, and their changes one by one, for readers who keep a cursor."""

    async def changes(self, after: int, *, limit: int = 1000) -> list[Change]:
        """New values stored after the change with number `after`, in order."""

    async def last_change(self) -> int:
        """The number of the newest change; 0 if there is none."""

    async def done(self, reader: str, seq: int | None = None) -> int:
        """How far a named reader of changes has come; first sets it if `seq` is given."""

    async def value(self, page: int) -> Value | None:
        """The value that the last answered visit left."""

    async def content(self, page: int) -> tuple[bytes, str] | None:
        """Latest content kept, with its content type."""


class SourceStore(Protocol):
    """What looks at sources saw, and the new pages among it. A look is an answered visit to a page
    of kind source; the links of the first are old. A page counts for the source that showed it
    first. Laws: looks and finds have numbers that grow and never come again; a find is stored
    together with its page."""

    async def looks(self, after: int = 0, *, limit: int = 100_000) -> Looks:
        """Looks after the one with number `after`, in order."""

    async def finds(self, after: int = 0, *, limit: int = 100_000) -> FoundPages:
        """New pages after the one with number `after`, in order."""

    async def standing(self, pages: Ints) -> Times:
        """When any source was last seen to show each page; NaT = never."""

    async def news(self, after: int, *, limit: int = 1000) -> list[Find]:
        """The same as `finds`, for people."""

    async def last_find(self) -> int:
        """The number of the newest find; 0 if there is none."""


class RunStore(Protocol):
    """What a crawl needs to go on where it was stopped, and to be the only one."""

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Be the only crawler on the store; StoreLocked if there is another. However the holder
        ends, its lock ends with it."""

    async def holder(self) -> str | None:
        """Who holds the lock, a number if it is a process of this machine; None if nobody does."""

    async def remember(self, state: Iterable[bytes]) -> None:
        """Replace the run state by these pieces, one after another; none of them is kept longer
        than need be, as all together may be as large as all the rest of a crawl."""

    async def recall(self) -> bytes | None:
        """The run state last remembered."""

    async def stamp(self) -> Stamp:
        """Numbers by which whoever keeps something of the store in memory sees that it is old."""

    async def outcomes(self, visits: Ints) -> Outcomes:
        """The outcomes of those of the given visits that are stored, ordered by visit."""

    async def outcomes_after(self, visit: int) -> Outcomes:
        """The outcomes of all stored visits with a higher number, ordered by visit."""

    async def asked(self, after: int = 0) -> list[Request]:
        """Requests after the one with number `after`, in order."""

    async def hosts(self) -> list[HostState]:
        """Every host's remembered state."""


class FreshnessStore(Protocol):
    """What estimates of freshness are made from, and the alerts that come of it and of hosts."""

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

    async def alerts(self, *, past: bool = False) -> list[AlertState]:
        """Alerts that last, or with `past` all of them, oldest first."""

    async def sound(self, alerts: Sequence[Alert]) -> None:
        """Raise and end alerts that no visit brings; one that lasts takes the newer words."""


class Store(
    PageStore,
    VisitStore,
    ReaderStore,
    ChangeStore,
    SourceStore,
    RunStore,
    FreshnessStore,
    Protocol,
):
    """All of it. Ask for one of the narrower contracts where that is enough."""

    @classmethod
    async def open(cls, place: str, *, keep_content: bool = True, create: bool = True) -> Self:
        """The store at `place`, which is what follows the colon of its URL, upgraded if it is old.

        Without `keep_content` no bodies are kept. StoreMissing if there is none and `create` is
        False; StoreError if it cannot be used."""

    async def health(self) -> Health:
        """How the store itself is. Reads all of it."""

    async def backup(self, path: Path) -> None:
        """Copy the store while it is in use."""

    async def close(self) -> None:
        """Let go of everything; nothing may be asked afterwards."""
