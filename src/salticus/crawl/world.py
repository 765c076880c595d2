"""The contract of a world: what is visited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, runtime_checkable

import numpy as np

from salticus.types import Floats, Instant, Ints, Outcomes, Pages, Plan, Tick

Costs = Callable[[Ints], Awaitable[Floats]]
"""What a visit to each of these pages costs."""

Asks = Callable[[Ints, Floats, Instant], Awaitable[None]]
"""Asks for visits to pages found just now, each worth so many clicks; so whoever runs the loop."""


class World(Protocol):
    """The live web, a replayed log, a synthetic market.

    Laws: every visit of a plan has exactly one outcome, made or dropped, in this or a later batch;
    no visit is made before it is due nor started after its tick's end; `finish` leaves none open;
    an outcome is yielded only once it is safe (stored).
    """

    async def pages(self, tick: Tick) -> Pages:
        """All pages as of the start of `tick`, with what each host can take during it."""

    def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        """Make the visits; yield outcomes as they come, earlier plans' late ones included."""

    def stop(self) -> None:
        """Start no more visits: `visit` ends soon."""

    def finish(self) -> AsyncIterator[Outcomes]:
        """Let visits in flight end and drop the rest."""


@runtime_checkable
class UrgentWorld(Protocol):
    """A world in which visits can begin at any moment, before all others of their hosts."""

    async def urge(self, plan: Plan) -> None:
        """Begin visits now; their outcomes come with the rest."""

    async def costs(self, pages: Ints) -> Floats:
        """What a visit to each of these pages costs."""


def costs_of(world: World) -> Costs:
    """Says what a visit to each of some pages costs: 1 in a world where no visit is urgent."""
    return world.costs if isinstance(world, UrgentWorld) else _one_each


async def _one_each(pages: Ints) -> Floats:
    return np.ones(len(pages))
