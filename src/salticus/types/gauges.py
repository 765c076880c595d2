"""What is kept of every tick, so that freshness can be estimated: sums over all pages, a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from salticus.types.arrays import Columns, Floats, Ints


class Gauge(msgspec.Struct, frozen=True):
    """What the predictor thought of all pages at the start of a tick, `at` (µs), of so many days.

    `stale` is the sum of the chances that a copy is out of date, `stale_demand` the same weighted
    by demand; `coins` and `coin_demand` are the pages, and their demand, that exploration could
    draw in this tick. `visits` is what all visits planned cost.
    """

    at: int
    days: float
    pages: int
    demand: float
    stale: float
    stale_demand: float
    coins: int
    coin_demand: float
    visits: float


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


class Member(msgspec.Struct, frozen=True):
    """A page of the panel: visited every `every` days from `since` until `until` (µs, None = until
    it is ended). `stratum` says how it was drawn; it stands for `weight` pages."""

    page: int
    stratum: str
    weight: float
    every: float
    since: int
    until: int | None = None


class Sighting(msgspec.Struct, frozen=True):
    """What a visit to a page of the panel saw; `digest` is None if it was not answered."""

    page: int
    at: int
    purpose: str
    digest: str | None
