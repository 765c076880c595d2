"""The engine against a real server."""

import asyncio
import socket
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from gzip import compress

import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult

from salticus import __version__
from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Server, hang, reply
from salticus.clock import SystemClock
from salticus.config import Fetch, Size, Span
from salticus.fetch.address import Limits, SafeResolver
from salticus.fetch.base import Answer
from salticus.fetch.http import HttpEngine
from salticus.types import Status

FETCH = settings().fetch
LONG_S = 60.0  # what a busy machine never needs
Headers = dict[str, str]


def with_engine(
    main: Callable[[HttpEngine, Server], Awaitable[None]],
    fetch: Fetch = FETCH,
    resolver: AbstractResolver | None = None,
) -> None:
    async def outer() -> None:
        engine = HttpEngine(fetch, SystemClock(), resolver=resolver)
        async with Server() as server:
            try:
                await asyncio.wait_for(main(engine, server), timeout=600)
            finally:
                await engine.close()

    asyncio.run(outer())


class Fixed(AbstractResolver):
    """Answers with the given addresses in turn, the last one for ever."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
        ]

    async def close(self) -> None:
        pass


def test_it_says_who_it_is_and_takes_no_cookies() -> None:
    seen: list[Headers] = []

    def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
        seen.append(headers)
        return reply(b"x", Set_Cookie="a=1")

    async def main(engine: HttpEngine, server: Server) -> None:
        server.routes["/"] = route
        for _ in range(2):
            await engine.get(f"http://shop.test:{server.port}/", {"If-None-Match": '"1"'})
        agent = f"salticus/{__version__} (+ops@example.org)"
        assert [headers["user-agent"] for headers in seen] == [agent] * 2
        assert seen[1]["if-none-match"] == '"1"'
        assert seen[1]["accept-encoding"] == "gzip, deflate, br, zstd"
        assert "cookie" not in seen[1]

    fetch = Fetch(contact=" ops@example.org\n", allow_private=("shop.test",))
    with_engine(main, fetch, Fixed("127.0.0.1"))


def test_an_answer_carries_what_the_server_said() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        server.routes["/p"] = reply(
            b"hello",
            Content_Type='text/html; charset="UTF-8"',
            ETag='W/"7"',
            Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT",
            Retry_After="5",
        )
        answer = await engine.get(server.url("/p"), {})
        assert answer == Answer(
            url=server.url("/p"),
            status=Status.OK,
            answered_at=answer.answered_at,
            code=200,
            body=b"hello",
            content_type='text/html; charset="UTF-8"',
            charset="utf-8",
            etag='W/"7"',
            last_modified="Thu, 01 Jan 2026 00:00:00 GMT",
            retry_after="5",
        )

    with_engine(main)


def test_connections_are_used_again_after_pages_errors_and_redirects() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        peers = set()

        def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
            peers.add(writer.get_extra_info("peername"))
            return answers.pop()

        answers = [
            reply(b"x"),
            reply(status="304 Not Modified"),
            reply(b"no", status="404 Not Found"),
            reply(b"there", status="302 Found", Location="/q"),
            reply(b"x" * 5000),
        ]
        server.routes["/p"] = route
        while answers:
            await engine.get(server.url("/p"), {})
        assert len(peers) == 1

    with_engine(main)


def test_big_bodies_of_errors_and_redirects_are_not_read() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        for status in ("404 Not Found", "302 Found", "500 Oops"):
            server.routes["/p"] = reply(b"never all of it", status, Content_Length="90000")
            start = time.monotonic()
            answer = await engine.get(server.url("/p"), {})
            assert (answer.status, answer.code, answer.body) == (Status.OK, int(status[:3]), b"")
            assert time.monotonic() - start < LONG_S, "nobody waits for the rest"

    with_engine(main, msgspec.structs.replace(FETCH, timeout=Span(seconds=LONG_S)))


def test_an_error_whose_body_never_ends_is_still_that_error() -> None:
    async def stuck(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nabc")
        return await hang(headers, writer)

    async def main(engine: HttpEngine, server: Server) -> None:
        server.routes["/p"] = stuck
        answer = await engine.get(server.url("/p"), {})
        assert (answer.status, answer.code) == (Status.OK, 404)

    with_engine(main)


def test_a_bomb_costs_little_memory() -> None:
    bomb = reply(compress(bytes(50_000_000), 1), Content_Encoding="gzip")

    async def main(engine: HttpEngine, server: Server) -> None:
        server.routes["/bomb"] = bomb
        tracemalloc.start()
        try:
            answer = await engine.get(server.url("/bomb"), {})
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert answer.status is Status.TOO_LARGE
        assert peak < 5_000_000, f"{peak:,} bytes were held for a limit of a million"

    fetch = Fetch(max_size=Size(1_000_000), allow_private=("127.0.0.1",))
    with_engine(main, fetch)


def test_refusals_name_host_and_address() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        for name in ("localhost", "0x7f.1"):
            answer = await engine.get(f"http://{name}:{server.port}/", {})
            assert answer.status is Status.UNSAFE
            assert answer.fault in {
                "localhost is off limits: no public address",
                "0x7f.1 is off limits: no public address",
            }
        assert not server.arrivals

    with_engine(main)


def test_only_the_web_is_fetched() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        for url in (f"ftp://{server.host}/", "file:///etc/passwd", "/p", "", "http://", "http://["):
            answer = await engine.get(url, {})
            assert answer.status in {Status.UNSAFE, Status.NETWORK}
            assert answer.fault
        assert not server.arrivals

    with_engine(main)


def test_a_name_that_moves_to_a_private_address_is_refused() -> None:
    resolver = Fixed("8.8.8.8", "127.0.0.1")

    async def main(engine: HttpEngine, server: Server) -> None:
        (first,) = await SafeResolver(resolver, Limits()).resolve("evil.test", server.port)
        assert first["host"] == "8.8.8.8", "whoever looks before the connection is made is fooled"
        answer = await engine.get(f"http://evil.test:{server.port}/", {})
        assert answer.status is Status.UNSAFE
        assert answer.fault == "evil.test is at 127.0.0.1, which is off limits"
        assert not server.arrivals

    with_engine(main, resolver=resolver)


def test_a_refused_port_is_a_network_failure() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            answer = await engine.get(f"http://127.0.0.1:{free.getsockname()[1]}/", {})
        assert answer.status is Status.NETWORK
        assert answer.fault

    with_engine(main)


def test_cancellation_passes_through() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        server.routes["/hang"] = hang
        task = asyncio.create_task(engine.get(server.url("/hang"), {}))
        await server.asked("/hang")
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError)

    with_engine(main)
