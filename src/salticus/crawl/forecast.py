"""The live web as it is foreseen: nothing is fetched, and visits bring no news."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import numpy as np

from salticus.crawl.census import Census
from salticus.types import NEVER, Outcomes, Pages, Plan, Status, Tick


class Foreseen:
    """A world in which every visit is made when it is due and answered, and teaches nothing else.

    `room` tells what a host can take in a tick. The census is the world's own: what is foreseen is
    written into its columns, never into the store.
    """

    def __init__(self, census: Census, room: Callable[[str, Tick], float]) -> None:
        self.census = census
        self.room = room

    async def pages(self, tick: Tick) -> Pages:
        return self.census.pages(tick, lambda host: self.room(host, tick))

    def everyone(self, tick: Tick) -> Pages:
        """The columns of all pages, also of those that rest."""
        return self.census.everyone(tick, lambda host: self.room(host, tick))

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        outcomes = without_news(plan)
        answer = np.full(len(plan), Status.OK, dtype=np.int8)
        self.census.learn(replace(outcomes, status=answer))
        yield outcomes

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        nothing: list[Outcomes] = []
        for outcomes in nothing:
            yield outcomes


def without_news(plan: Plan) -> Outcomes:
    """The visits of a plan, made, with nothing known of what they found."""
    made = np.ones(len(plan), dtype=np.bool_)
    return replace(Outcomes.dropped(plan, NEVER), at=plan.due, made=made)
