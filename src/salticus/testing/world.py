"""A world for tests of the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np

from salticus.types import NEVER, Ints, Outcomes, Pages, Plan, Tick, Times
from salticus.types.coins import coins


class StillWorld:
    """A world whose pages never change and always answer, at the moment they are due.

    A share `drop` of the visits, by a hash of the visit, is dropped. `times` and `rows` tell what
    was visited when.
    """

    def __init__(self, pages: Pages, *, drop: float = 0.0) -> None:
        self._pages = pages.answered(pages.last_visit.copy())
        self.drop = drop
        self.rows: list[Ints] = []
        self._times: list[Times] = []

    @property
    def times(self) -> Times:
        """When every visit was made."""
        return np.concatenate([np.empty(0, dtype="M8[us]"), *self._times])

    def times_of(self, row: int) -> Times:
        """When the page in that row was visited."""
        rows = np.concatenate([np.empty(0, dtype=np.int64), *self.rows])
        return np.asarray(self.times[rows == row])

    async def pages(self, tick: Tick) -> Pages:
        return replace(self._pages, tick=tick)

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        rows = self._pages.rows(plan.page)
        made = coins(0, plan.visit, 0) >= self.drop
        yield replace(
            Outcomes.dropped(plan, NEVER),
            at=plan.due,
            made=made,
            status=np.zeros(len(plan), dtype=np.int8),
            changed=np.zeros(len(plan), dtype=np.int8),
            since=self._pages.last_answer[rows],
        )
        self._pages.last_visit[rows[made]] = plan.due[made]
        self.rows.append(rows[made])
        self._times.append(plan.due[made])

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        nothing: list[Outcomes] = []
        for outcomes in nothing:
            yield outcomes
