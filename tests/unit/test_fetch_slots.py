"""Waiting in line."""

import asyncio
import math
from collections.abc import Awaitable, Callable

from salticus.fetch.hosts import Slots


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def outer() -> None:
        await asyncio.wait_for(main(), timeout=600)

    asyncio.run(outer())


def test_first_come_first_served() -> None:
    async def main() -> None:
        slots, served = Slots(1), []

        async def one(name: int) -> None:
            assert await slots.wait(math.inf, 0.0)
            served.append(name)
            await asyncio.sleep(0)
            slots.give()

        await asyncio.gather(*map(one, range(5)))
        assert served == [0, 1, 2, 3, 4]
        assert slots.active == 0

    run(main)


def test_nobody_overtakes_the_queue() -> None:
    async def main() -> None:
        slots = Slots(1)
        assert slots.take()
        waiter = asyncio.create_task(slots.wait(math.inf, 0.0))
        await asyncio.sleep(0)
        slots.give()
        assert not slots.take()
        assert await waiter

    run(main)


def test_waiting_ends_at_its_time() -> None:
    async def main() -> None:
        slots = Slots(1)
        assert slots.take()
        assert not await slots.wait(100.02, 100.0)
        assert not slots.queue
        slots.give()
        assert slots.take()

    run(main)


def test_those_who_would_be_too_late_are_sent_away() -> None:
    async def main() -> None:
        slots = Slots(1)
        assert slots.take()
        soon, late = (asyncio.create_task(slots.wait(before, 0.0)) for before in (10.0, 30.0))
        await asyncio.sleep(0)
        slots.expire(20.0)
        assert not await soon
        slots.give()
        assert await late

    run(main)


def test_cancelled_waiters_keep_no_slot() -> None:
    async def main() -> None:
        slots = Slots(1)
        assert slots.take()
        waiting = asyncio.create_task(slots.wait(math.inf, 0.0))
        handed = asyncio.create_task(slots.wait(math.inf, 0.0))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        slots.give()  # to `handed`, which is cancelled before it can know
        handed.cancel()
        await asyncio.gather(waiting, handed, return_exceptions=True)
        assert waiting.cancelled()
        assert handed.cancelled()
        assert slots.active == 0
        assert slots.take()

    run(main)


def test_more_room_lets_waiters_in() -> None:
    async def main() -> None:
        slots = Slots(1)
        assert slots.take()
        waiting = [asyncio.create_task(slots.wait(math.inf, 0.0)) for _ in range(3)]
        await asyncio.sleep(0)
        slots.resize(3)
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [True, True, False]
        waiting[2].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(main)
