"""Visits within a host's hours, on a clock that runs a hundred thousand times too fast."""

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from salticus.checks.fetch import settings
from salticus.clock import SystemClock
from salticus.config import Config, Host, Hours
from salticus.fetch.base import Answer
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Status, Target

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
NIGHT = Hours.parse("22:00-06:00")
SPEED = 300_000.0  # a day in 0.29 s
SLACK = timedelta(hours=2)  # 24 ms on the wall, between the decision and its note
TARGET = Target(page=1, url="http://shop.test/p", host="shop.test")


class Noting:
    """An engine that answers at once, and notes in which world second it was asked for what."""

    def __init__(self, clock: SystemClock) -> None:
        self.clock = clock
        self.asked: list[tuple[str, datetime]] = []
        self.slow, self.go_on = asyncio.Event(), asyncio.Event()

    async def get(self, url: str, headers: Mapping[str, str], *, most: int | None = None) -> Answer:
        self.asked.append((url, self.clock.now()))
        if "slow" in url:
            self.slow.set()
            await self.go_on.wait()
        code = 404 if url.endswith("robots.txt") else 200
        return Answer(url, Status.OK, self.clock.wall(), code=code)

    async def close(self) -> None:
        pass


def config(delay: float = 0.0, concurrency: int = 256) -> Config:
    made = settings(delay=delay)
    fetch = msgspec.structs.replace(made.fetch, concurrency=concurrency)
    return msgspec.structs.replace(made, hosts=(Host("shop.test", hours=NIGHT),), fetch=fetch)


def fast(speed: float = SPEED) -> SystemClock:
    return SystemClock(speed=speed, world_origin=NOON, wall_origin=SystemClock().now())


def test_nothing_is_asked_outside_of_the_hours_robots_included() -> None:
    async def main() -> None:
        clock = fast()
        engine = Noting(clock)
        fetcher = PoliteFetcher(engine, config(delay=0.02), clock)
        found = await asyncio.gather(*(fetcher.fetch(TARGET) for _ in range(12)))
        assert all(fetched is not None for fetched in found), "those who wait are woken"
        assert engine.asked[0][0] == "http://shop.test/robots.txt"
        for url, at in engine.asked:
            assert NIGHT.holds(at) or NIGHT.holds(at - SLACK), f"{url} at {at}"
        nights = {(at - timedelta(hours=7)).date() for _, at in engine.asked}
        assert len(nights) > 1, "what does not fit waits for the next night"

    asyncio.run(main())


def test_a_visit_that_would_come_too_late_is_not_made() -> None:
    async def main() -> None:
        clock = fast(speed=1.0)
        engine = Noting(clock)
        fetcher = PoliteFetcher(engine, config(), clock)
        now = clock.wall()
        assert await asyncio.wait_for(fetcher.fetch(TARGET, now + 9 * 3600), timeout=600) is None
        other = Target(page=2, url="http://open.test/p", host="open.test")
        assert await fetcher.fetch(other, now + 60) is not None
        assert "http://shop.test/p" not in [url for url, _ in engine.asked]
        assert fetcher.capacity("shop.test", now, 9 * 3600) == 0.0
        assert fetcher.capacity("shop.test", now, 11 * 3600) == math.inf
        assert fetcher.capacity("open.test", now, 60) == math.inf

    asyncio.run(main())


def test_capacity_of_a_host_never_met_counts_its_hours_too() -> None:
    clock = fast(speed=1.0)
    fetcher = PoliteFetcher(Noting(clock), config(delay=10.0), clock)
    now = clock.wall()
    assert fetcher.capacity("shop.test", now, 11 * 3600) == pytest.approx(360.0, abs=1)


def test_stop_wakes_those_who_wait_for_the_opening() -> None:
    async def main() -> None:
        clock = fast(speed=1.0)
        fetcher = PoliteFetcher(Noting(clock), config(), clock)
        waiting = [asyncio.create_task(fetcher.fetch(TARGET)) for _ in range(3)]
        await asyncio.sleep(0)
        fetcher.stop()
        assert await asyncio.wait_for(asyncio.gather(*waiting), timeout=600) == [None] * 3

    asyncio.run(main())


def test_a_request_that_waited_for_a_seat_until_closing_waits_for_the_opening() -> None:
    async def main() -> None:
        clock = fast()
        engine = Noting(clock)
        fetcher = PoliteFetcher(engine, config(concurrency=1), clock)
        assert await fetcher.fetch(TARGET) is not None  # in the first night
        slow = Target(page=2, url="http://open.test/slow", host="open.test")
        holding = asyncio.create_task(fetcher.fetch(slow))
        await engine.slow.wait()
        await clock.until(NIGHT.opening(clock.now()))
        waiting = asyncio.create_task(fetcher.fetch(TARGET))
        await clock.until(NIGHT.closing(clock.now()) + 2 * SLACK)
        engine.go_on.set()
        assert await asyncio.wait_for(waiting, timeout=600) is not None
        await holding
        at = engine.asked[-1][1]
        assert NIGHT.holds(at) or NIGHT.holds(at - SLACK)

    asyncio.run(main())
