"""The journal: visits are committed in small batches, and only then told to anyone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from salticus.store.base import VisitStore
from salticus.types import Observation, Record

BATCH = 250  # one batch being committed and one being filled make at most 500 visits
WAIT_S, WAIT = 0.5, timedelta(minutes=10)


def patience(speed: float) -> float:
    """Wall seconds for which a record may wait for others, in a world of this speed: where time is
    accelerated, no world time that would matter to a plan.

    >>> patience(1.0), patience(6000.0)
    (0.5, 0.1)
    """
    return min(WAIT_S, WAIT.total_seconds() / speed)


class Journal:
    """Collects records and commits them, `BATCH` at a time or after `wait_s` seconds.

    Law: at most twice `BATCH` visits are uncommitted at any time; `committed` is called with
    observations after they are safe, in order.
    """

    def __init__(
        self,
        store: VisitStore,
        committed: Callable[[list[Observation] | BaseException], None],
        *,
        wait_s: float = WAIT_S,
    ) -> None:
        self.store = store
        self.wait_s = wait_s
        self.committed = committed
        self._waiting: list[Record] = []
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: asyncio.Task[None] | None = None

    async def write(self, record: Record, *, urgent: bool = False) -> None:
        """Add a record; waits while a full batch is ahead of it. `urgent` ones commit at once."""
        while len(self._waiting) >= BATCH:
            self._room.clear()
            await self._room.wait()
        self._waiting.append(record)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._run())
            self._writer.add_done_callback(_heard)
        if urgent or len(self._waiting) >= BATCH:
            self._wake.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.wait_s, self._wake.set)

    def hurry(self) -> None:
        """Commit what was written without waiting for more."""
        self._wake.set()

    async def flush(self) -> None:
        self.hurry()
        if self._writer is not None:
            await self._writer

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._wake.wait()
                await self._commit()
        except BaseException as error:
            self.committed(error)
            raise

    async def _commit(self) -> None:
        self._wake.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        self._room.set()
        await self.store.record(batch)
        self.committed([record.observation for record in batch])


def _heard(writer: asyncio.Task[None]) -> None:
    """Its error has been told to `committed`; asyncio would tell it again, as a traceback."""
    if not writer.cancelled():
        writer.exception()
