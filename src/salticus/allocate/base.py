"""The contract of allocation: where the next visits buy the most."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from salticus.errors import InputError
from salticus.types import Floats, Ints, Outcomes, Pages


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
    asked again in the same tick, or about some of the pages only, changes nothing.

    A policy that may leave visits unspent, as a cron job does, says so with a class attribute
    ``spends = False``; what it expects then sums to `visits` at most. One that must be drawn by a
    certain spacing, as a bandit that judges its arms by their visits, names it: ``spacing =
    "coin"``; ``predictor = "rhythm"`` names the predictor of live crawls that choose none. A
    constructor that takes `seed` is given the crawl's.

    A policy that visits by a visit price may have ``frozen()``: the policy that goes on at the
    price of its last plan. Forecasts (`salticus why`) use it; without it they ask the policy.

    A policy may also have ``expected_by_host(pages, room)``: what it expects of each host's pages
    if it had just ``room[host]`` visits to spend on them, for all hosts of the pages in one call.
    Without it, it is asked about one full host after another.
    """

    def expected(self, pages: Pages, visits: float) -> Floats: ...

    def learn(self, outcomes: Outcomes) -> None: ...
