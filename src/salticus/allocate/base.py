"""The contract of allocation: where the next visits buy the most."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol, runtime_checkable

import numpy as np

from salticus.errors import InputError
from salticus.types import Bools, Draw, Floats, Grant, Ints, Outcomes, Pages, Purpose, Tick, Times


def known(name: str, column: Floats, ids: Ints) -> Floats:
    """The column, unless a number is missing: InputError then names it and the page.

    >>> known("demand", np.array([1.0, np.nan]), np.array([4, 7]))
    Traceback (most recent call last):
    salticus.errors.InputError: demand of page 7 is not a number; all pages must have one
    """
    bad = np.flatnonzero(np.isnan(column))
    if len(bad):
        raise InputError(f"{name} of page {ids[bad[0]]} is not a number; all pages must have one")
    return column


class Policy(Protocol):
    """Columns of all pages and visits to spend → expected visits per page in the coming tick.

    Laws: each in [0, 1]; they sum to `visits`, or to the number of pages if that is less; a
    permutation of the pages permutes the answer; pages that are alike get alike; never NaN; to be
    asked changes nothing, however often and of whichever tick. A constructor that takes `seed` is
    given the crawl's.

    What a policy may be able to do beside that are the protocols below.
    """

    def expected(self, pages: Pages, visits: float) -> Floats: ...

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing, for those who inherit this: the pages and the predictor know enough."""


@runtime_checkable
class Thrifty(Protocol):
    """A policy that says whether it spends all visits; one that may leave some unspent, as a cron
    job does, has ``spends = False``. What it expects then sums to `visits` at most."""

    spends: bool


@runtime_checkable
class Spaced(Protocol):
    """A policy that must be drawn by a certain spacing, as a bandit that judges its arms by their
    visits: ``spacing = "coin"``."""

    spacing: str


@runtime_checkable
class Informed(Protocol):
    """A policy that names the predictor of crawls that choose none: ``predictor = "rhythm"``."""

    predictor: str


@runtime_checkable
class Stepwise(Protocol):
    """A policy that goes from tick to tick, as a bandit does that judges its last arm.

    `begin` is told once a tick, before it is asked, what all pages are; `adopt` that what it was
    asked last is what is done. Both may change the policy, and nothing but they and `learn` does.
    """

    def begin(self, pages: Pages) -> None: ...

    def adopt(self) -> None: ...


@runtime_checkable
class ByHost(Protocol):
    """A policy that can say what it expects of each host's pages if it had just ``room[host]``
    visits to spend on them, for all hosts of the pages in one call. Without it, it is asked about
    one full host after another."""

    def expected_by_host(self, pages: Pages, room: Floats) -> Floats: ...


@runtime_checkable
class Paced(Protocol):
    """A policy that plans for longer than a tick: it is told before it is asked how many visits a
    tick it may count on."""

    def pace(self, per_tick: float) -> None: ...


@runtime_checkable
class Patient(Protocol):
    """A policy that leaves visits for later where new pages, which do not come evenly, are to be
    found: they are kept for it as long as its `patience`."""

    patience: timedelta


@runtime_checkable
class Admits(Protocol):
    """A policy by which a found page is visited only if it is worth `price_` clicks."""

    price_: float


@runtime_checkable
class Priced(Protocol):
    """A policy that visits by a visit price: that of its last plan, in demand-weighted fresh days
    per visit of cost; NaN before any. `worth` is V of every page per visit of cost, and V without
    demand; `reached` says which pages are worth a visit at the price."""

    price_: float

    def worth(self, pages: Pages) -> tuple[Floats, Floats]: ...

    def reached(self, worth: Floats, alone: Floats) -> Bools: ...


class Proposer(Protocol):
    """Proposes visits: maximum intervals, pins, exploration, the panel, clicks, the policy.

    The crawl asks its proposers in order of precedence. Each sees the pages with what their hosts
    can still take, and the grant with the rows that others have `taken`; it draws rows for its
    `purpose`, whose visits the budget pays for if the purpose is charged.

    Laws: no row twice, and only pages that are open; together with the rows taken no more than the
    grant covers and the hosts can take; to be asked changes nothing; only an `Urgent` one sets
    visits aside. A constructor that takes `seed` is given the crawl's.
    """

    @property
    def purpose(self) -> Purpose: ...

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw: ...


@runtime_checkable
class Urgent(Protocol):
    """A proposer whose visits cannot wait for a plan. It reserves a share of each tick's visits in
    its draw, and is given them as a purse: when each may start, in order."""

    def open(self, pages: Pages, purse: Times) -> None: ...


@runtime_checkable
class Keeps(Protocol):
    """A proposer that must know what was made of its draw."""

    def keep(self, pages: Pages, draw: Draw) -> None: ...
