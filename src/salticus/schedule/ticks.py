"""Ticks: one planning step after another, on the clock part, until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import numpy as np

from salticus.clock import Clock, until_or
from salticus.types import Tick
from salticus.types.state import State

FOREVER = datetime.max.replace(tzinfo=UTC)


class Ticks:
    """Consecutive ticks of one length; the last one is cut at the end of the run.

    A tick that took too long is not made up for: the next starts at once. Numbers go on after a
    restart, because coins are hashes of them.
    """

    def __init__(self, clock: Clock, length: timedelta) -> None:
        self.clock = clock
        self.length = length
        self.number_ = 0
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Let the present tick be the last."""
        self._stopped.set()

    async def until(self, end: datetime = FOREVER) -> AsyncIterator[Tick]:
        """Ticks from now to `end`; returns early once stopped."""
        start = self.clock.now()
        while start < end and not self._stopped.is_set():
            last = end if end - start < self.length else start + self.length
            tick = Tick(self.number_, start, last)
            self.number_ += 1
            yield tick
            await until_or(self.clock, tick.end, self._stopped)
            start = max(tick.end, self.clock.now())

    def state(self) -> State:
        return {"number": np.array(self.number_)}

    def restore(self, state: State) -> None:
        self.number_ = int(state["number"])
