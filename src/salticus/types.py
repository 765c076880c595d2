"""The nouns: what the stages hand to one another.

Rows at the edge (a `Target` is fetched, an `Observation` is stored), columns in the mathematics
(`Pages`, `Plan`, `Outcomes`). Times are aware UTC datetimes in rows and ``datetime64[us]`` (UTC,
NaT = never) in columns; spans in columns are floats in days; rates are per day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Protocol, Self, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.int8]
Times = NDArray[np.datetime64]
Instant = np.datetime64

DAY = np.timedelta64(86_400_000_000, "us")
NEVER = np.datetime64("NaT", "us")
_NAT = np.iinfo(np.int64).min


def instant(when: datetime) -> Instant:
    """The column form of an aware time.

    >>> instant(datetime(2026, 1, 2, 3, tzinfo=UTC))
    np.datetime64('2026-01-02T03:00:00.000000')
    """
    return np.datetime64(when.astimezone(UTC).replace(tzinfo=None), "us")


def moment(when: Instant) -> datetime:
    """The row form of a column time; the inverse of `instant`."""
    naive: datetime = when.astype("datetime64[us]").item()
    return naive.replace(tzinfo=UTC)


def days_between(start: Times | Instant, end: Times | Instant) -> Floats:
    """Days from `start` to `end`; NaN where either is unknown."""
    return np.asarray((end - start) / DAY, dtype=np.float64)


class Purpose(IntEnum):
    """Why a visit is made. Only EXPLORE visits carry a propensity that may serve as a weight."""

    POLICY = 0
    EXPLORE = 1
    PANEL = 2
    INSTA = 3
    LIMIT = 4
    MANUAL = 5

    @property
    def label(self) -> str:
        return self.name.lower()


class Status(IntEnum):
    """How a visit ended. Only OK and NOT_MODIFIED say anything about change."""

    OK = 0
    NOT_MODIFIED = 1
    GONE = 2  # 404, 410
    LOST = 3  # the page answers but no longer has the value it had
    DISALLOWED = 4  # by robots.txt, or robots.txt could not be reached
    UNSAFE = 5  # the address is private, loopback, link-local or otherwise off limits
    BUSY = 6  # 429 or 503: the host asked for patience
    TIMEOUT = 7
    TOO_LARGE = 8
    REDIRECTS = 9  # too many, circular, or to nowhere
    NETWORK = 10  # name, connection, TLS or protocol failed
    HTTP = 11  # any other status code
    BROKEN = 12  # the body could not be decoded or read

    @property
    def label(self) -> str:
        return self.name.lower()


ANSWERED = frozenset({Status.OK, Status.NOT_MODIFIED})

CHANGED, UNCHANGED, UNKNOWN = 1, 0, -1


# ---------------------------------------------------------------------------------------- columns


class Survival(Protocol):
    """Probability that a page is unchanged `ages` days after its last visit, for all pages.

    Laws: `unchanged` starts at 1, never rises, stays in [0, 1]; `integral` is its integral from 0.
    Together they give the worth of a visit, V(τ) = μ[∫₀^τ S − τS(τ)].
    """

    def unchanged(self, ages: Floats) -> Floats: ...

    def integral(self, ages: Floats) -> Floats: ...

    def take(self, rows: Ints | Bools) -> Survival: ...


class Columns:
    """Arrays of one length that are cut and joined together."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(next(iter(self._arrays().values())))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        every = {f.name: getattr(self, f.name) for f in fields(cast(Any, self))}
        return {name: column for name, column in every.items() if isinstance(column, np.ndarray)}

    def take(self, rows: Ints | Bools) -> Self:
        """The given rows, in the given order."""
        cut = {name: column[rows] for name, column in self._arrays().items()}
        return cast(Self, replace(cast(Any, self), **cut))

    def join(self, other: Self) -> Self:
        """These rows, then the other's; what is not a column is the other's."""
        mine = self._arrays()
        joined = {name: np.concatenate([mine[name], c]) for name, c in other._arrays().items()}
        return cast(Self, replace(cast(Any, other), **joined))


@dataclass(frozen=True, slots=True)
class Tick:
    """One planning step, the half-open interval [start, end) of world time."""

    number: int
    start: datetime
    end: datetime

    @property
    def days(self) -> float:
        return (self.end - self.start).total_seconds() / 86_400


@dataclass(frozen=True, slots=True)
class Pages:
    """All pages as columns, ordered by id.

    `tick` is the coming one; `host` indexes `capacity`, the visits that each host can take in it.
    `demand` and `impressions` are per day, `cost` in visits, `max_interval` in days (inf = none).
    """

    tick: Tick
    ids: Ints
    host: Ints
    added: Times
    last_visit: Times
    demand: Floats
    impressions: Floats
    cost: Floats
    max_interval: Floats
    capacity: Floats
    survival: Survival | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, ids: Ints) -> Ints:
        """Row of each id; every id must be present."""
        return np.searchsorted(self.ids, ids)

    def take(self, rows: Ints | Bools) -> Pages:
        """The given rows; host numbers and capacities stay as they are."""
        whole = ("tick", "capacity", "survival")
        per_page = (f.name for f in fields(self) if f.name not in whole)
        cut = {name: getattr(self, name)[rows] for name in per_page}
        return replace(self, **cut, survival=self.survival and self.survival.take(rows))


@dataclass(frozen=True, slots=True)
class Draw:
    """The rows that a spacing chose for this tick, with the probability of each choice."""

    rows: Ints
    propensity: Floats


@dataclass(frozen=True, slots=True)
class Plan(Columns):
    """The visits of one tick, ordered by due time. No visit starts before it is due."""

    visit: Ints
    page: Ints
    due: Times
    purpose: Codes
    propensity: Floats
    tick: Tick

    def without(self, visits: Ints) -> Plan:
        """This plan less the given visit ids."""
        return self.take(~np.isin(self.visit, visits))


@dataclass(frozen=True, slots=True)
class Outcomes(Columns):
    """What a batch of visits taught, one row a visit.

    `made` is False for a visit that was dropped before any request: it is refunded and teaches
    nothing. `since` is when the page was last answered before this visit, `age_s` the age of the
    last change if the server told (NaN otherwise), `changed` CHANGED, UNCHANGED or UNKNOWN.
    """

    visit: Ints
    page: Ints
    at: Times
    made: Bools
    status: Codes
    changed: Codes
    since: Times
    age_s: Floats
    purpose: Codes
    propensity: Floats

    @classmethod
    def dropped(cls, plan: Plan, at: Instant) -> Outcomes:
        """The outcome of visits that were planned but never made."""
        n = len(plan)
        return cls(
            visit=plan.visit,
            page=plan.page,
            at=np.full(n, at),
            made=np.zeros(n, dtype=np.bool_),
            status=np.full(n, Status.BUSY, dtype=np.int8),
            changed=np.full(n, UNKNOWN, dtype=np.int8),
            since=np.full(n, NEVER),
            age_s=np.full(n, np.nan),
            purpose=plan.purpose,
            propensity=plan.propensity,
        )

    @classmethod
    def of(cls, observations: Sequence[Observation]) -> Outcomes:
        """Columns of stored observations."""
        changed = {True: CHANGED, False: UNCHANGED, None: UNKNOWN}
        return cls(
            visit=np.array([o.visit for o in observations], dtype=np.int64),
            page=np.array([o.page for o in observations], dtype=np.int64),
            at=_times(o.at for o in observations),
            made=np.ones(len(observations), dtype=np.bool_),
            status=np.array([STATUS[o.status] for o in observations], dtype=np.int8),
            changed=np.array([changed[o.changed] for o in observations], dtype=np.int8),
            since=_times(o.since for o in observations),
            age_s=np.array(
                [np.nan if o.age_s is None else o.age_s for o in observations], dtype=np.float64
            ),
            purpose=np.array([PURPOSE[o.purpose] for o in observations], dtype=np.int8),
            propensity=np.array([o.propensity for o in observations], dtype=np.float64),
        )


def _times(micros: Iterable[int | None]) -> Times:
    return np.array([_NAT if m is None else m for m in micros], dtype=np.int64).view("M8[us]")


STATUS = {s.label: s for s in Status}
PURPOSE = {p.label: p for p in Purpose}


# ------------------------------------------------------------------------------------------- rows


class Target(msgspec.Struct, frozen=True):
    """What is needed to visit a page and to judge what comes back.

    `digest` and `seen` (µs) describe the last answer that had a value; both None before it.
    """

    page: int
    url: str
    host: str
    kind: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    digest: str | None = None
    seen: int | None = None


class Fetched(msgspec.Struct):
    """What came back from one visit, redirects and retries included.

    `status` is OK for any 2xx, and `fault` says in words what went wrong otherwise. `at` is the
    world time (µs) of the answer. `code` is the last HTTP status, 0 if there was none.
    """

    url: str
    status: Status
    at: int
    code: int = 0
    body: bytes = b""
    content_type: str = ""
    charset: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    fault: str | None = None
    elapsed_s: float = 0.0


class Value(msgspec.Struct, frozen=True):
    """The meaningful content of a page.

    `text` is canonical: two pages with the same text have the same value. `fields` holds the parts
    for people and exports (price, currency, availability, title, …); it never decides a change.
    """

    kind: str
    text: str
    fields: dict[str, str] = {}


class Observation(msgspec.Struct):
    """What a visit taught us; the row that is stored, once, for ever.

    Times are µs since 1970 UTC (world time). `changed` is None when nothing can be said: a first
    answer, a failure, a lost value. `value` is set only when it is new.
    """

    visit: int
    page: int
    at: int
    purpose: str
    propensity: float
    status: str
    code: int = 0
    changed: bool | None = None
    since: int | None = None
    age_s: float | None = None
    digest: str | None = None
    value: Value | None = None
    etag: str | None = None
    last_modified: str | None = None
    fault: str | None = None
    size: int = 0
    elapsed_s: float = 0.0


class HostState(msgspec.Struct):
    """What must be remembered of a host across restarts. Times are wall seconds since 1970."""

    host: str
    next_at: float = 0.0
    strikes: int = 0
    robots: str | None = None
    robots_code: int | None = None
    robots_until: float = 0.0


class NewPage(msgspec.Struct, frozen=True):
    """A page to add. Everything but the URL may be unknown."""

    url: str
    kind: str | None = None
    tags: tuple[str, ...] = ()
    max_interval: float | None = None  # days
    demand: float | None = None  # clicks a day


class Signal(msgspec.Struct, frozen=True):
    """News about a page that did not cost a visit. `at` in µs."""

    page: int
    at: int
    kind: str
    value: str | None = None


class Record(msgspec.Struct):
    """What one visit leaves in the store; all of it is committed together or not at all."""

    observation: Observation
    hosts: tuple[HostState, ...] = ()
    content: bytes | None = None
    content_type: str = ""
