"""Waiting in line, with a time after which it is no longer worth it."""

from __future__ import annotations

import asyncio
import math


class Slots:
    """So many at once; who comes first is served first. Times are wall seconds.

    Laws: never more than `limit` slots are out; a waiter who is cancelled or gives up keeps none.
    """

    __slots__ = ("active", "limit", "queue")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.active = 0
        self.queue: dict[asyncio.Future[bool], float] = {}  # smaller than a deque, for idle hosts

    def take(self) -> bool:
        """Take a slot now, if one is free; then nobody waits for it."""
        if self.active >= self.limit:
            return False
        self.active += 1
        return True

    async def wait(self, before: float, now: float) -> bool:
        """Take a slot as soon as there is one; False if there is none before `before`."""
        if self.take():
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self.queue[future] = before
        timer = loop.call_later(before - now, _refuse, future) if before < math.inf else None
        try:
            return await future
        except asyncio.CancelledError:
            if not future.cancelled() and future.result():
                self.give()  # it was handed over in the moment of cancellation
            raise
        finally:
            self.queue.pop(future, None)
            if timer is not None:
                timer.cancel()

    def give(self) -> None:
        """Give a slot back."""
        self.active -= 1
        self._serve()

    def resize(self, limit: int) -> None:
        """Let more or fewer in from now on."""
        self.limit = limit
        self._serve()

    def expire(self, earliest: float) -> None:
        """Send away those for whom `earliest` would be too late."""
        for future, before in self.queue.items():
            if before <= earliest:
                _refuse(future)

    def _serve(self) -> None:
        while self.queue and self.active < self.limit:
            future = next(iter(self.queue))
            del self.queue[future]
            if not future.done():
                self.active += 1
                future.set_result(True)


def _refuse(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)
