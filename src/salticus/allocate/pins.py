"""Pages pinned to an interval by the user: visited when it ends, whatever the policy thinks."""

from __future__ import annotations

import numpy as np

from salticus.allocate.capacity import fitting
from salticus.types import Draw, Grant, Pages, Purpose, Tick, instant
from salticus.types.state import later


class Pins:
    """Visits the pinned pages that fall due in the tick.

    A page never visited is due at once. If hosts or visits do not suffice for all, those that have
    been due longest come first, and the others in a later tick: politeness > budget > maximum
    interval > pins.

    >>> from dataclasses import replace
    >>> from salticus.testing import a_grant, a_tick, blank_pages
    >>> pages = replace(blank_pages(3), interval=np.array([0.5, np.nan, 7.0]))
    >>> Pins().draw(pages, a_grant(9, taken=np.array([2])), a_tick()).rows
    array([0])
    """

    purpose = Purpose.LIMIT

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        pinned = pages.open & ~np.isnan(pages.interval)
        pinned[grant.taken] = False
        rows = np.flatnonzero(pinned)
        due = later(pages.last_visit[rows], pages.interval[rows])
        rows, due = rows[(now := ~(due >= instant(tick.end)))], due[now]
        rows = rows[np.lexsort((pages.ids[rows], due, ~np.isnat(due)))]
        return Draw.sure(fitting(pages, rows, grant.visits, grant.taken))
