"""The system clock while the machine's clock is set."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.checks.clock import check_clock
from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Server, reply
from salticus.clock import SystemClock
from salticus.fetch.http import HttpEngine
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Status

Step = Callable[[float], None]
Main = Callable[[PoliteFetcher, Server, Step], Awaitable[None]]

HOUR = 3600.0
PATIENCE_S = 600.0  # less than any step, and more than a busy machine takes


@contextmanager
def adjustable() -> Iterator[Step]:
    """The machine's clock can be set: by so many seconds, forward or back."""
    real, ahead = time.time, 0.0

    def step(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + ahead)
        yield step


@given(steps=st.lists(st.floats(-1e6, 1e6)), speed=st.sampled_from([0.5, 1.0, 8640.0]))
def test_no_setting_of_the_clock_is_seen(steps: list[float], speed: float) -> None:
    origin = datetime.now(UTC)
    with adjustable() as step:
        clock = SystemClock(speed=speed, world_origin=origin, wall_origin=origin)
        times, walls = [clock.now()], [clock.wall()]
        for seconds in steps:
            step(seconds)
            times.append(clock.now())
            walls.append(clock.wall())
            walls.append(SystemClock().wall())
    assert times == sorted(times), "law: world time never goes back"
    assert walls == sorted(walls), "law: nor does wall time, for all clocks of a process"
    assert walls[-1] - walls[0] < PATIENCE_S, "law: only what passed has passed"


def test_it_tells_the_time() -> None:
    """In a new process: the machine's clock may have been set since this one began."""
    told = "import time as t; from salticus.clock import wall_time as ours"
    told += "; print(t.time(), ours(), t.time())"
    ended = subprocess.run([sys.executable, "-c", told], capture_output=True, check=True)
    before, now, after = map(float, ended.stdout.split())
    assert before - 1e-3 <= now <= after + 1e-3


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_the_laws_hold_while_the_clock_is_set(seconds: float) -> None:
    async def main() -> None:
        with adjustable() as step:
            clock = SystemClock()
            waiting = asyncio.create_task(clock.until(clock.now() + timedelta(milliseconds=5)))
            await asyncio.sleep(0)
            step(seconds)
            await asyncio.wait_for(waiting, 20)
            await check_clock(clock)

    asyncio.run(main())


def test_an_hour_forward_does_not_cut_a_retry_after_short() -> None:
    async def main(fetcher: PoliteFetcher, server: Server, step: Step) -> None:
        server.routes["/busy"] = reply(status="429 Slow down", Retry_After="1800")
        busy = await fetcher.fetch(server.target("/busy"))
        assert busy is not None
        assert busy.status is Status.BUSY
        step(HOUR)
        before = fetcher.clock.wall() + PATIENCE_S
        assert await fetcher.fetch(server.target("/p"), before) is None
        assert not server.times("/p")

    with_fetcher(main)


def test_an_hour_back_does_not_keep_a_host_waiting() -> None:
    async def main(fetcher: PoliteFetcher, server: Server, step: Step) -> None:
        await fetcher.fetch(server.target("/p"))
        step(-HOUR)
        before = fetcher.clock.wall() + PATIENCE_S
        fetched = await fetcher.fetch(server.target("/p"), before)
        assert fetched is not None
        assert fetched.status is Status.OK

    with_fetcher(main)


def with_fetcher(main: Main) -> None:
    async def outer() -> None:
        async with Server({"/p": reply(b"page")}) as server:
            config, clock = settings(delay=0.01, timeout=60.0), SystemClock()
            fetcher = PoliteFetcher(HttpEngine(config.fetch, clock), config, clock)
            try:
                with adjustable() as step:
                    await main(fetcher, server, step)
            finally:
                await fetcher.close()

    asyncio.run(outer())
