"""Pages pinned to an interval by the user: visited when it ends, whatever the policy thinks."""

from __future__ import annotations

import numpy as np

from salticus.allocate.capacity import fitting
from salticus.types import Ints, Pages, Tick, instant
from salticus.types.state import later


def with_pins(pages: Pages, taken: Ints, visits: int, tick: Tick) -> Ints:
    """The rows `taken`, and after them the pinned pages that fall due in this tick.

    A page never visited is due at once. If hosts or visits do not suffice for all, those that have
    been due longest come first, and the others in a later tick: politeness > budget > maximum
    interval > pins.

    >>> from dataclasses import replace
    >>> from salticus.testing import a_tick, blank_pages
    >>> pages = replace(blank_pages(3), interval=np.array([0.5, np.nan, 7.0]))
    >>> with_pins(pages, np.array([2]), 9, a_tick())
    array([2, 0])
    """
    pinned = pages.open & ~np.isnan(pages.interval)
    pinned[taken] = False
    rows = np.flatnonzero(pinned)
    due = later(pages.last_visit[rows], pages.interval[rows])
    rows, due = rows[(now := ~(due >= instant(tick.end)))], due[now]
    rows = rows[np.lexsort((pages.ids[rows], due, ~np.isnat(due)))]
    return np.concatenate([taken, fitting(pages, rows, visits, taken)])
