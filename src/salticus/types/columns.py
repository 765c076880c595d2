"""Columns: all pages at once. Times are ``datetime64[us]`` (UTC, NaT = never)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from salticus.types.arrays import (
    NEVER,
    Bools,
    Codes,
    Columns,
    Floats,
    Instant,
    Ints,
    Times,
    cut,
    days_between,
    instant,
)
from salticus.types.prices import priced
from salticus.types.prospects import Prospects
from salticus.types.rows import Observation
from salticus.types.survival import Survival, aged
from salticus.types.words import ANSWERED, CHANGED, PURPOSE, STATUS, UNCHANGED, UNKNOWN, Status

_NAT = np.iinfo(np.int64).min
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Tick:
    """One planning step, the half-open interval [start, end) of world time."""

    number: int
    start: datetime
    end: datetime

    @property
    def days(self) -> float:
        return (self.end - self.start).total_seconds() / 86_400


@dataclass(frozen=True, repr=False)  # all its columns in print would take longer than a tick
class Pages:
    """All pages as columns, ordered by id.

    `last_visit` is when a page was last visited, however that ended, `last_answer` when it last
    gave a usable answer (ok or not_modified); NaT = never. A copy is as old as its last answer.
    `kind` is the place in `KINDS`, -1 = another, or unknown when the page was read; `rule` the
    number of the settings' rule that the page is under, -1 = none.

    `tick` is the coming one; `host` indexes `capacity`, the visits that each host can take in it.
    `demand` and `impressions` are per day, `cost` in visits, `max_interval` in days (inf = none).
    `merchant` and `category` are numbers, -1 = unknown. `interval` is fixed by the user, in days;
    NaN where the policy decides. For `min_interval` days after a visit (0 = none) policies and
    exploration leave a page alone. Pages that are not `open` may not be visited in this tick.
    `found` is True for pages that sources brought; nowhere if it is not given. `prospects` are what
    sources and found pages promise, None if nobody looks for new pages.
    """

    tick: Tick
    ids: Ints
    host: Ints
    kind: Codes
    rule: Ints
    merchant: Ints
    category: Ints | Codes
    added: Times
    last_visit: Times
    last_answer: Times
    demand: Floats
    impressions: Floats
    cost: Floats
    max_interval: Floats
    interval: Floats
    min_interval: Floats
    open: Bools
    capacity: Floats
    survival: Survival | None = None
    found: Bools = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    prospects: Prospects | None = None

    def __post_init__(self) -> None:
        if not len(self.found):
            object.__setattr__(self, "found", np.zeros(len(self.ids), dtype=np.bool_))

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def columns(cls) -> list[str]:
        """The names of those that have a row a page."""
        whole = ("tick", "capacity", "survival", "prospects")
        return [f.name for f in fields(cls) if f.name not in whole]

    def rows(self, ids: Ints) -> Ints:
        """Row of each id; every id must be present."""
        return np.searchsorted(self.ids, ids)

    def take(self, rows: Ints | Bools) -> Pages:
        """The given rows; host numbers and capacities stay as they are."""
        kept = np.flatnonzero(rows) if rows.dtype == np.bool_ else cast(Ints, rows)
        per_page = {name: getattr(self, name) for name in self.columns()}
        once = {id(column): column for column in per_page.values()}  # a host may be a merchant, too
        done = {key: cut(column, kept) for key, column in once.items()}
        columns: dict[str, Any] = {name: done[id(column)] for name, column in per_page.items()}
        curves = None if self.survival is None else self.survival.take(kept)
        prospects = None if self.prospects is None else self.prospects.take(kept)
        return replace(self, **columns, survival=curves, prospects=prospects)

    def answered(self, at: Times) -> Pages:
        """These pages, last visited at those times, and answering then."""
        return replace(self, last_visit=at, last_answer=at)

    @cached_property
    def stale(self) -> Floats:
        """The probability that each copy is out of date when the tick starts, for all who ask."""
        return self.outdated(instant(self.tick.start))

    def outdated(self, at: Times | Instant, rows: Ints | None = None) -> Floats:
        """The probability that each copy is out of date at a time, one for all or one for each row;
        of the given rows, or of all.

        1 − S(days since the last answer); 1 where there was none. NaN without curves.
        """
        last = self.last_answer if rows is None else self.last_answer[rows]
        never = np.isnat(last)
        if self.survival is None:
            return np.where(never, 1.0, np.nan)
        curve, ages = aged(self.survival if rows is None else self.survival.take(rows), last, at)
        stale = np.subtract(1.0, curve.unchanged(ages))
        stale[never] = 1.0
        return np.clip(stale, 0.0, 1.0, out=stale)

    def unanswered_since(self, rows: Ints | slice = _ALL) -> Times:
        """The last answer; of pages that were visited and never answered, when they were added."""
        answer = self.last_answer[rows]
        silent = np.isnat(answer) & ~np.isnat(self.last_visit[rows])
        return np.where(silent, self.added[rows], answer) if silent.any() else answer

    def answering(self, at: Instant, rows: Ints | slice = _ALL) -> Floats:
        """The chance that a visit at that time is answered: 1, unless the last one failed.

        After failures it is (w/τ)², with w days since the last visit and τ since the last answer: a
        page that has been silent for long is tried again after long. V(τ)(w/τ)² is V(w) at most, as
        V(τ)/τ² never rises: so no silent page is worth more than one like it that answers.
        """
        since, visit = self.unanswered_since(rows), self.last_visit[rows]
        chance = np.ones(len(since))
        failed = np.flatnonzero(visit > since)
        waited = np.maximum(days_between(visit[failed], at), 0.0)
        silent = days_between(since[failed], at)
        chance[failed] = np.minimum(waited / np.maximum(silent, 1e-9), 1.0) ** 2
        return chance


@dataclass(frozen=True, slots=True)
class Draw:
    """The rows that were chosen for this tick, with the probability of each choice.

    `due` is when each visit should be made, NaT = at any time of the tick; empty: of all of them.
    `reserve` is a share of the tick's visits to be set aside for urgent ones that may come.
    `expected` is what a spacing was given; empty if there was none.
    """

    rows: Ints
    propensity: Floats
    due: Times = field(default_factory=lambda: np.empty(0, dtype="M8[us]"))
    reserve: float = 0.0
    expected: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def sure(cls, rows: Ints) -> Draw:
        """Rows that were chosen for certain."""
        return cls(rows, np.ones(len(rows)))


@dataclass(frozen=True, slots=True)
class Grant:
    """Visits that a tick may spend: the k-th to start may not do so before `release[k]`. One that
    costs more counts as so many, and waits for the last of them.

    `per_tick` is what later ticks of this length may count on. `taken` are the rows to which visits
    of this grant have gone already. `balance` and `until` are what the ledger has once the
    grant is given.
    """

    release: Times
    per_tick: float
    taken: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    balance: float = 0.0
    until: Instant = NEVER

    @property
    def visits(self) -> int:
        return len(self.release)

    def left(self, pages: Pages) -> int:
        """Visits that nobody has taken yet."""
        return self.visits - int(pages.cost[self.taken].sum())

    def less(self, share: float, number: int) -> tuple[Grant, Times]:
        """The grant of tick `number` without a share of its visits, and when each of those may
        start.

        They lie evenly among the others, so that some may start early in the tick. What is less
        than a visit counts on to the next tick: n ticks of v visits yield ⌊n·v·share⌋.
        """
        if not share:
            return self, self.release[:0]
        before = int(number * self.per_tick + 1e-9)
        owed = before * Fraction(share).limit_denominator(1_000_000) % 1  # exact for any number
        turn = np.floor(float(owed) + np.arange(1, self.visits + 1) * share + 1e-9)
        apart = np.diff(turn, prepend=0.0) > 0
        return replace(self, release=self.release[~apart]), self.release[apart]


@dataclass(frozen=True, slots=True)
class Plan(Columns):
    """The visits of one tick, ordered by due time. No visit starts before it is due.

    `chance` is the probability, as foretold, that the page will be found changed since its last
    visit when this one is due; NaN if there was none, or nobody foretold it.
    """

    visit: Ints
    page: Ints
    due: Times
    purpose: Codes
    propensity: Floats
    tick: Tick
    chance: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        _untold(self, "chance")

    def without(self, visits: Ints) -> Plan:
        """This plan less the given visit ids."""
        return self.take(~np.isin(self.visit, visits))


@dataclass(frozen=True, slots=True)
class Outcomes(Columns):
    """What a batch of visits taught, one row a visit.

    `made` is False for a visit that was dropped before any request: it is refunded and teaches
    nothing. `since` is when the page was last answered before this visit, `age_s` the age of the
    last change if the server told (NaN otherwise), `changed` CHANGED, UNCHANGED or UNKNOWN.
    `chance` is the plan's. `price` and `stock` (1 or 0) are what a new value tells, NaN = unknown.
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
    chance: Floats = field(default_factory=lambda: np.empty(0))
    price: Floats = field(default_factory=lambda: np.empty(0))
    stock: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        _untold(self, "chance", "price", "stock")

    @property
    def answered(self) -> Bools:
        """Which of the visits were made and brought a usable answer."""
        return self.made & _USABLE[self.status]

    @classmethod
    def known(cls, *, page: Ints, at: Times | Instant, **columns: Any) -> Outcomes:
        """Outcomes of which only some columns are known, each a column or one value for all.

        Of the others: the visits were made, without a number (-1), answered, for the policy with
        certainty; whether there was a change, since when, and the age are not known.

        >>> told = Outcomes.known(page=np.array([3, 5]), at=NEVER, status=Status.GONE)
        >>> told.page.tolist(), told.status.tolist(), told.changed.tolist()
        ([3, 5], [2, 2], [-1, -1])
        """
        given = _BLANK | {"page": page, "at": at} | columns
        if unknown := given.keys() - {f.name for f in fields(cls)}:
            raise TypeError(f"outcomes have no column {min(unknown)}")
        n = len(page)
        return cls(**{name: _column(name, value, n) for name, value in given.items()})

    @classmethod
    def dropped(cls, plan: Plan, at: Instant) -> Outcomes:
        """The outcome of visits that were planned but never made."""
        drawn = {"purpose": plan.purpose, "propensity": plan.propensity, "chance": plan.chance}
        made = {"visit": plan.visit, "made": False, "status": Status.BUSY}
        return cls.known(page=plan.page, at=at, **made, **drawn)

    @classmethod
    def of(cls, observations: Sequence[Observation]) -> Outcomes:
        """Columns of stored observations."""
        changed = {True: CHANGED, False: UNCHANGED, None: UNKNOWN}
        told = priced([o.value.text if o.value else None for o in observations])
        return cls.known(
            **dict(zip(("price", "stock"), told, strict=True)),
            visit=[o.visit for o in observations],
            page=np.array([o.page for o in observations], dtype=np.int64),
            at=_times(o.at for o in observations),
            status=[STATUS[o.status] for o in observations],
            changed=[changed[o.changed] for o in observations],
            since=_times(o.since for o in observations),
            age_s=[o.age_s for o in observations],
            purpose=[PURPOSE[o.purpose] for o in observations],
            propensity=[o.propensity for o in observations],
            chance=[o.chance for o in observations],
        )


@dataclass(frozen=True, slots=True)
class Counts(Columns):
    """Clicks and impressions, one row a page and hour. `at` is the hour's start, `last` the number
    of the last row, to ask for later ones."""

    page: Ints
    at: Times
    clicks: Ints
    impressions: Ints
    last: int


@dataclass(frozen=True, slots=True)
class Sample(Columns):
    """The visits of a tick that explore: `stale` is the chance that the copy is out of date at the
    start of the tick, 1 where there is none; `demand` is the page's then."""

    visit: Ints
    stale: Floats
    demand: Floats


@dataclass(frozen=True, slots=True)
class Findings(Columns):
    """Visits that explored and were made, with what they found.

    `found` is 1 if the copy was out of date when the visit came, 0 if not, NaN if the visit failed.
    `chance` and `stale` are what was foretold for then, and for the start of the tick `at` (µs).
    """

    page: Ints
    at: Ints
    propensity: Floats
    chance: Floats
    stale: Floats
    demand: Floats
    found: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[float | None, ...]]) -> Findings:
        """From rows in the order of the columns; None becomes NaN."""
        page, at, *rest = np.array(rows, dtype=np.float64).reshape(-1, 7).T
        return cls(page.astype(np.int64), at.astype(np.int64), *rest)


_USABLE: Bools = np.array([status in ANSWERED for status in Status])
_BLANK: dict[str, Any] = {
    "visit": -1, "made": True, "status": Status.OK, "changed": UNKNOWN, "since": NEVER,
    "purpose": 0, "propensity": 1.0,
}  # fmt: skip
_BLANK |= dict.fromkeys(("age_s", "chance", "price", "stock"), np.nan)
_TYPES: dict[str, Any] = {"visit": np.int64, "page": np.int64, "made": np.bool_}
_TYPES |= {"at": "M8[us]", "since": "M8[us]"}
_TYPES |= dict.fromkeys(("status", "changed", "purpose"), np.int8)


def _column(name: str, value: Any, n: int) -> NDArray[Any]:
    """A column of outcomes from itself, or from the one value of all its rows."""
    column: NDArray[Any] = np.asarray(value, dtype=_TYPES.get(name, np.float64))
    return np.full(n, column) if column.ndim == 0 else column


def _untold(visits: Plan | Outcomes, *names: str) -> None:
    """Have a number for every visit also where nobody told one."""
    for name in names:
        if not len(getattr(visits, name)):
            object.__setattr__(visits, name, np.full(len(visits.visit), np.nan))


def _times(micros: Iterable[int | None]) -> Times:
    return np.array([_NAT if m is None else m for m in micros], dtype=np.int64).view("M8[us]")
