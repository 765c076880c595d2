"""Offers and publishers in one world: pages whose values change, and sources that show new ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np

from salticus.crawl.world import Asks
from salticus.lab.worlds.links import LinkReplay
from salticus.lab.worlds.replay import Replay
from salticus.types import Floats, Instant, Ints, Outcomes, Pages, Plan, Prospects, Tick


class JointReplay:
    """A replay of offers beside a replay of links, for one crawl with one budget.

    Offers keep their ids; sources and the pages on them have those that follow (`first` is that of
    the first source). A visit of any kind costs what its own world says. Laws: without sources this
    is the replay of the offers; offers that nobody reads change nothing for the links.
    """

    def __init__(self, offers: Replay, links: LinkReplay) -> None:
        self.offers = offers
        self.links = links
        self.first = int(offers.truth.ids[-1]) + 1
        self.asks: Asks | None = None
        links.asks = self._ask

    def kinds(self, ids: Ints) -> Ints:
        """0 for offers, 1 for sources, 2 for pages found on them."""
        return (ids >= self.first) * 1 + (ids >= self.first + self.links.truth.sources) * 1

    # ------------------------------------------------------------------------------ the contract

    async def pages(self, tick: Tick) -> Pages:
        offers = await self.offers.pages(tick)
        if not self.links.truth.sources:
            return offers
        return joined(offers, await self.links.pages(tick), self.first)

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        mine = plan.page < self.first
        async for outcomes in self.offers.visit(plan.take(mine)):
            yield outcomes
        async for outcomes in self.links.visit(self._within(plan.take(~mine))):
            yield replace(outcomes, page=outcomes.page + self.first)

    async def urge(self, plan: Plan) -> None:
        """Visit found pages now; the outcomes come with the rest."""
        await self.links.urge(self._within(plan))

    async def costs(self, pages: Ints) -> Floats:
        return await self.links.costs(pages)

    def stop(self) -> None:
        """Nothing is in flight."""

    async def finish(self) -> AsyncIterator[Outcomes]:
        for outcomes in list[Outcomes]():
            yield outcomes

    # ----------------------------------------------------------------------------------- inside

    async def _ask(self, found: Ints, worth: Floats, now: Instant) -> None:
        if self.asks is not None:
            await self.asks(found + self.first, worth, now)

    def _within(self, plan: Plan) -> Plan:
        """A plan for sources and found pages, by the ids that these have among themselves."""
        return replace(plan, page=plan.page - self.first)


def joined(pages: Pages, new: Pages, first: int) -> Pages:
    """The columns of both; ids of `new`, which has the prospects, and its hosts are counted on."""
    assert new.prospects is not None
    prospects = _padded(new.prospects, len(pages))
    new = replace(new, ids=new.ids + first, host=new.host + len(pages.capacity))
    both = {name: (getattr(pages, name), getattr(new, name)) for name in Pages.columns()}
    columns: dict[str, Any] = {name: np.concatenate(pair) for name, pair in both.items()}
    capacity = np.concatenate([pages.capacity, new.capacity])
    return replace(pages, **columns, capacity=capacity, prospects=prospects)


def _padded(prospects: Prospects, more: int) -> Prospects:
    """The same with rows before them of pages that are neither sources nor new."""
    none, nothing = np.zeros(more), np.full(more, np.nan)
    blank = Prospects(
        rate=none,
        profit=none,
        decay=none,
        remaining=nothing,
        entries=none,
        span=none,
        usual=none,
        looks=none,
        row=np.full(more, -1),
        harvest=prospects.harvest,
    )
    return blank.join(prospects)
