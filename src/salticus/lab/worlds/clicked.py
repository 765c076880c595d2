"""A replayed log in which people click, and a click may bring a visit at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from salticus.lab.worlds.replay import Replay
from salticus.types import (
    Bools,
    Columns,
    Floats,
    Instant,
    Ints,
    Outcomes,
    Plan,
    Tick,
    Times,
    instant,
)
from salticus.types.state import rank_within

_NEXT = np.timedelta64(1, "us")

Asks = Callable[[Ints, Instant], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ClickStream(Columns):
    """Clicks in order of time: the `page`'s row, and the code of its `true` value at that time."""

    page: Ints
    at: Times
    true: Ints


class ClickedReplay(Replay):
    """A replay whose clicks come one by one, before the planned visits of their tick.

    `asks` is told the page and the time of each click, and may answer with visits (`urge`), which
    are made at once: they see the page as it is then. `stale_` says of each click whether it found
    a copy that was out of date. A page visited both at once and by the plan has its planned visit
    after the other. Hosts serve urgent visits first; planned ones for which a host has no time left
    are dropped.
    """

    def let_click(self, clicks: ClickStream, asks: Asks) -> None:
        """Let these clicks come; to be called before the first visit."""
        self.clicks = clicks
        self.asks = asks
        self.stale_: Bools = np.zeros(len(clicks), dtype=np.bool_)
        self._clicked = 0  # clicks that have come
        self._served = np.zeros(len(self._capacity))  # visits of each host in this tick
        self._news: list[Outcomes] = []

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        self._served[:] = 0.0
        async for outcomes in self._click(plan.tick):
            yield outcomes
        fits = self._fit(plan)
        async for outcomes in super().visit(plan.take(fits)):
            yield outcomes
        if not fits.all():
            yield Outcomes.dropped(plan.take(~fits), instant(plan.tick.end))

    async def urge(self, plan: Plan) -> None:
        """Make visits now; their outcomes come with the rest."""
        fits = self._fit(plan)
        made, now = plan.take(fits), plan.due[0]
        self._change(now + _NEXT)
        self._served += np.bincount(self._hosts(made), minlength=len(self._served))
        self._news += [self._outcomes(made), Outcomes.dropped(plan.take(~fits), now)]

    async def costs(self, pages: Ints) -> Floats:
        """What a visit to each of these pages costs."""
        return np.asarray(self.cost[self._rows(pages)])

    async def _click(self, tick: Tick) -> AsyncIterator[Outcomes]:
        """Let the clicks of a tick come; the outcomes of what they brought."""
        clicks = self.clicks
        first, last = np.searchsorted(clicks.at, [instant(tick.start), instant(tick.end)])
        for k in range(max(self._clicked, int(first)), int(last)):
            row = clicks.page[k : k + 1]
            self.stale_[k] = self.copies.held[row[0]] != clicks.true[k]
            await self.asks(self.truth.ids[row], clicks.at[k])
            news, self._news = self._news, []
            for outcomes in news:
                yield outcomes
        self._clicked = int(last)

    def _fit(self, plan: Plan) -> Bools:
        """The visits for which their hosts have time left in this tick."""
        host = self._hosts(plan)
        return np.asarray(rank_within(host) + self._served[host] < np.ceil(self._capacity)[host])

    def _hosts(self, plan: Plan) -> Ints:
        return self.truth.host[self._rows(plan.page)]
