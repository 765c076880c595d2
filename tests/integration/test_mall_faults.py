"""Every fault as a real client meets it."""

from __future__ import annotations

import asyncio
import socket
import time
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import uvloop

from salticus.clock import VirtualClock, wall_time
from salticus.lab.worlds.mall.audit import AccessEntry, audit
from salticus.lab.worlds.mall.faults import Fault
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import generate

START = datetime(2026, 1, 1, tzinfo=UTC)
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param  # type: ignore[no-any-return]


def mall_with(*faults: Fault, shops: int = 1, seed: int = 0) -> Mall:
    stock = generate(shops=shops, offers=20 * shops)
    return Mall(stock, VirtualClock(START), faults=faults, seed=seed, page_size=68_000)


@asynccontextmanager
async def opened(mall: Mall, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    await mall.start()
    try:
        async with aiohttp.ClientSession(**options) as session:
            yield session
    finally:
        await mall.stop()


async def over(entry: AccessEntry) -> float:
    """Wait until the request is over; how many seconds it took."""
    await true(lambda: entry.ended is not None)
    return (entry.ended or 0.0) - entry.arrived


async def true(condition: Callable[[], bool]) -> None:
    """Let others work until the condition holds, for two seconds at most."""
    async with asyncio.timeout(2):
        while not condition():  # noqa: ASYNC110 - the log has no event to wait on
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", ["404", "410", "500", "503"])
def test_statuses(kind: Any) -> None:
    async def main() -> None:
        mall = mall_with(Fault(kind, 1.0))
        async with opened(mall) as session, session.get(mall.urls[0]) as response:
            assert response.status == int(kind)
            assert "Retry-After" not in response.headers
        assert (mall.log[0].fault, mall.log[0].status, mall.log[0].value) == (kind, int(kind), None)

    asyncio.run(main())


@pytest.mark.parametrize("fault", [Fault("429", 1.0, retry=1), Fault("503", 1.0, retry=1)])
def test_a_shop_that_asks_for_patience_stays_closed_until_then(fault: Fault) -> None:
    async def main() -> None:
        mall = mall_with(
            Fault(fault.kind, 1.0, hosts="0", paths="/o/0", retry=fault.retry), shops=2
        )
        async with opened(mall) as session:

            async def status(url: str) -> tuple[int, str | None]:
                async with session.get(url) as response:
                    return response.status, response.headers.get("Retry-After")

            assert await status(mall.urls[0]) == (int(fault.kind), "1")
            assert await status(mall.urls[1]) == (200, None)  # the other shop is open
            assert await status(mall.urls[2]) == (429, "1")
            assert await status(f"http://{mall.hosts[0]}/robots.txt") == (429, "1")
            last = mall.log[-1]
            assert last.ended is not None
            await asyncio.sleep(max(0.0, last.ended + 1 - wall_time()))
            assert await status(mall.urls[2]) == (200, None)
        assert [entry.fault for entry in mall.log] == [fault.kind, None, "early", "early", None]
        assert [entry.retry_after for entry in mall.log] == [1, None, 1, 1, None]
        assert audit(mall.log, delay=0.0).counts == {"early": 2}

    asyncio.run(main())


def test_a_slow_body_comes_whole_but_late(run: Run) -> None:
    async def main() -> None:
        mall = mall_with(Fault("slow", 1.0, seconds=4.0))
        async with opened(mall) as session:
            began = time.monotonic()
            async with session.get(mall.urls[0]) as response:
                assert time.monotonic() - began < 4.0, "the head comes at once"
                assert len(await response.read()) == 68_000
            assert time.monotonic() - began >= 4.0
        assert (await over(mall.log[0])) >= 4.0
        assert (mall.log[0].fault, mall.log[0].status) == ("slow", 200)
        assert mall.log[0].value == mall.stock.value(0, START)

    run(main())


@pytest.mark.parametrize("kind", ["hang", "slow", "huge"])
def test_a_client_that_leaves_ends_the_entry(kind: Any, run: Run) -> None:
    async def main() -> None:
        mall = mall_with(Fault(kind, 1.0, seconds=60.0, size=10**12))
        async with opened(mall, timeout=aiohttp.ClientTimeout(total=1.0)) as session:
            with pytest.raises(TimeoutError):
                await drain(session, mall.urls[0])
            assert 0.5 < await over(mall.log[0]) < 60
        assert mall.log[0].value is None
        assert mall.log[0].status == (0 if kind == "hang" else 200)

    run(main())


async def drain(session: aiohttp.ClientSession, url: str) -> None:
    async with session.get(url) as response:
        async for _ in response.content.iter_chunked(1 << 16):
            pass


def test_a_client_that_left_does_not_overlap_its_next_request(run: Run) -> None:
    """Both happen while the mall looks elsewhere: it learns of them in the same breath."""

    async def main() -> None:
        mall = mall_with(Fault("hang", 1.0, paths="/o/0"))
        async with opened(mall):
            with connect(mall.urls[1]) as kept:
                for round in range(1, 21):
                    with connect(mall.urls[0]) as leaving:
                        leaving.send(plain(mall.urls[0]))
                        await true(lambda r=round: len(mall.log) == 2 * r - 1)
                    kept.send(plain(mall.urls[1]))
                    await true(lambda r=round: len(mall.log) == 2 * r)
        found = audit(mall.log, delay=0.0)
        assert found.clean, str(found)
        assert found.requests == 40

    run(main())


def connect(url: str) -> socket.socket:
    """A connection whose every step is done when the call returns."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port))


def plain(url: str) -> bytes:
    parts = urlsplit(url)
    return f"HEAD {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()


async def raw(url: str) -> bytes:
    """All bytes that come for a plain request, to the end of the connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(plain(url).replace(b"HEAD", b"GET"))
        return await reader.read()
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def test_a_truncated_body_ends_before_its_length(run: Run) -> None:
    async def main() -> None:
        mall = mall_with(Fault("truncated", 1.0))
        async with opened(mall) as session:
            head, _, body = (await raw(mall.urls[0])).partition(b"\r\n\r\n")
            assert b"Content-Length: 68000" in head
            assert len(body) == 34_000
            async with session.get(mall.urls[0]) as response:
                with pytest.raises(aiohttp.ClientPayloadError):
                    await response.read()
        assert [entry.value for entry in mall.log] == [None, None]
        assert all(entry.ended is not None for entry in mall.log)

    run(main())


def test_a_reset_breaks_the_connection_in_mid_body(run: Run) -> None:
    async def main() -> None:
        mall = mall_with(Fault("reset", 1.0))
        async with opened(mall) as session:
            with pytest.raises(ConnectionResetError):
                await raw(mall.urls[0])
            with pytest.raises(aiohttp.ClientError):
                async with session.get(mall.urls[0]) as response:
                    await response.read()
        assert [entry.fault for entry in mall.log] == ["reset", "reset"]
        assert [entry.value for entry in mall.log] == [None, None]

    run(main())


def test_a_huge_page_goes_on_as_long_as_it_is_read() -> None:
    async def main() -> None:
        mall = mall_with(Fault("huge", 1.0, size=3_000_000))
        async with opened(mall) as session, session.get(mall.urls[0]) as response:
            assert len(await response.read()) == 3_000_000

    asyncio.run(main())


def test_a_bomb_is_small_until_it_is_inflated() -> None:
    async def main() -> None:
        mall = mall_with(Fault("bomb", 1.0, size=100_000_000))
        async with (
            opened(mall, auto_decompress=False) as session,
            session.get(mall.urls[0]) as response,
        ):
            assert response.headers["Content-Encoding"] == "gzip"
            packed = await response.read()
        assert len(packed) < 200_000
        opener = zlib.decompressobj(31)
        total = len(opener.decompress(packed, 1 << 20))
        while opener.unconsumed_tail:
            total += len(opener.decompress(opener.unconsumed_tail, 1 << 20))
        assert total == 100_000_000
        assert opener.eof

    asyncio.run(main())


def test_redirects_lead_to_another_page() -> None:
    async def main() -> None:
        mall = mall_with(
            Fault("redirect", 1.0, paths="/o/0"),
            Fault("redirect", 1.0, paths="/o/2", to="shop"),
            shops=2,
        )
        async with opened(mall) as session:
            async with session.get(mall.urls[0]) as near:
                assert near.status == 200
            async with session.get(mall.urls[2]) as far:
                assert far.status == 200
        assert [r.status for r in (*near.history, *far.history)] == [302, 302]
        assert near.url.port == near.history[0].url.port
        assert far.url.port != far.history[0].url.port
        assert str(near.url) in set(mall.urls) - {mall.urls[0]}
        assert str(far.url) in mall.urls
        assert [entry.value is None for entry in mall.log] == [True, False, True, False]

    asyncio.run(main())


def test_a_redirect_may_never_arrive() -> None:
    async def main() -> None:
        mall = mall_with(Fault("redirect", 1.0, to="loop"))
        async with opened(mall) as session:
            with pytest.raises(aiohttp.TooManyRedirects):
                await session.get(mall.urls[0])

    asyncio.run(main())


def test_a_redirect_may_lead_where_nobody_should_go() -> None:
    async def main() -> None:
        mall = mall_with(Fault("redirect", 1.0, to="private"))
        async with opened(mall) as session, session.get(mall.urls[3]) as response:
            assert response.url.path == "/private/3"
        assert audit(mall.log, delay=0.0).counts == {"disallowed": 1}

    asyncio.run(main())


def test_the_same_seed_meets_the_same_faults() -> None:
    async def statuses(seed: int) -> list[int]:
        mall = mall_with(Fault("500", 0.3), Fault("404", 0.3), seed=seed)
        found = []
        async with opened(mall) as session:
            for url in mall.urls * 3:
                async with session.get(url) as response:
                    found.append(response.status)
        return found

    async def main() -> None:
        first = await statuses(1)
        assert first == await statuses(1)
        assert first != await statuses(2)
        assert set(first) == {200, 404, 500}

    asyncio.run(main())


def test_a_mall_stops_at_once_while_requests_hang(run: Run) -> None:
    async def main() -> None:
        mall = mall_with(Fault("hang", 1.0), shops=3)
        async with opened(mall) as session:
            waiting = [asyncio.create_task(session.get(url).__aenter__()) for url in mall.urls[:9]]
            await true(lambda: len(mall.log) == 9)
            began = time.monotonic()
            await mall.stop()
            assert time.monotonic() - began < 60
            answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(answer, aiohttp.ClientError) for answer in answers)
        assert all(entry.ended is not None for entry in mall.log)

    run(main())
