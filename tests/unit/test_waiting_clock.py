"""The clock of malls waits for the crawler: however slow the machine, no time is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from salticus.checks.clock import check_clock
from salticus.clock import WaitingClock

WORLD = datetime(2026, 1, 1, tzinfo=UTC)
WALL = datetime(2026, 8, 1, tzinfo=UTC)
SPEED = 3600.0
TURN = timedelta(seconds=0.01 * SPEED)  # world time that passes at most in a turn of the loop

Clocks = Callable[[], WaitingClock]


@pytest.fixture
def clocks(tmp_path: Path) -> Clocks:
    """Clocks on one file, as processes have them."""
    return lambda: WaitingClock(
        tmp_path / "clock", speed=SPEED, world_origin=WORLD, wall_origin=WALL
    )


def keep_busy(wall_s: float) -> None:
    end = time.monotonic() + wall_s
    while time.monotonic() < end:
        pass


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main(), 600)

    asyncio.run(bounded())


def test_it_obeys_the_laws_of_clocks(clocks: Clocks) -> None:
    asyncio.run(check_clock(clocks()))


def test_no_time_passes_while_nobody_waits(clocks: Clocks) -> None:
    clock = clocks()
    keep_busy(0.03)
    assert clock.now() == WORLD
    assert clock.wall() == WALL.timestamp()


def test_a_long_turn_counts_no_more_than_a_short_one(clocks: Clocks) -> None:
    async def main() -> None:
        clock = clocks()
        waiting = asyncio.create_task(clock.until(WORLD + timedelta(days=999)))
        await asyncio.sleep(0)  # it waits, and time begins
        before = clock.now()
        keep_busy(0.2)
        assert WORLD < clock.now() <= before + TURN
        waiting.cancel()

    run(main)


def test_no_time_passes_while_paused_though_others_wait(clocks: Clocks) -> None:
    async def main() -> None:
        clock = clocks()
        waiting = asyncio.create_task(clock.until(WORLD + timedelta(days=999)))
        await asyncio.sleep(0)
        with clock.paused():
            paused = clock.now()
            await asyncio.sleep(0.03)
            assert clock.now() == paused
        await clock.until(paused + TURN)
        waiting.cancel()

    run(main)


def test_all_who_read_the_file_see_one_time(clocks: Clocks) -> None:
    async def main() -> None:
        crawler, mall = clocks(), clocks()
        waiting = asyncio.create_task(crawler.until(WORLD + 3 * TURN))
        while not waiting.done():
            before = mall.now()
            now = crawler.now()
            assert before <= now == mall.now()
            assert crawler.wall() == mall.wall()
            await asyncio.sleep(0)
        assert mall.now() >= WORLD + 3 * TURN
        assert clocks().now() == crawler.now(), "and so does whoever comes later"

    run(main)


def test_wall_time_never_passes_faster_than_the_machines(clocks: Clocks) -> None:
    async def main() -> None:
        clock, began = clocks(), time.monotonic()
        await clock.until(WORLD + 5 * TURN)
        passed = clock.wall() - WALL.timestamp()
        assert passed <= time.monotonic() - began
        assert passed == pytest.approx((clock.now() - WORLD).total_seconds() / SPEED, abs=1e-5)

    run(main)
