"""The desk stays open for everyone, whatever some of its callers do."""

from __future__ import annotations

import asyncio
import gzip
import io
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from salticus.clock import run_fast
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.loop import Loop
from salticus.crawl.opening import stored
from salticus.types import NewPage, Observation, Record, Tick, Value
from salticus.web.desk import desk as companion

PAGES = [f"https://shop.example/{number}" for number in range(9)]
PATIENCE_S = 30  # far more than anything takes, far less than aiohttp's own 60 s
Headers = dict[str, str]
RUNNERS = pytest.mark.parametrize("run", [run_fast, asyncio.run], ids=["fast", "plain"])
Runner = Callable[[Coroutine[Any, Any, None]], None]


def settings(folder: Path, **desk: Any) -> Config:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        address = f"127.0.0.1:{sock.getsockname()[1]}"
    fetch = {"contact": "t@example.org"}
    desk = {"listen": address, **desk}
    return parse({"store": str(folder / "s.db"), "budget": "100%", "fetch": fetch, "desk": desk})


@asynccontextmanager
async def desk(config: Config) -> AsyncIterator[Loop]:
    """The desk of a crawl that makes no visits."""
    async with stored(config) as store:
        await store.add([NewPage(url) for url in PAGES], at=0)
    async with crawler(config, companions=(companion,)) as loop:
        yield loop


async def ask(
    config: Config, path: str, body: Any = None, headers: Headers | None = None
) -> tuple[int, Any]:
    """What the desk answers: the status, and the JSON if there is any."""
    packed = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
    data = None if packed is None else io.BytesIO(packed)
    async with aiohttp.ClientSession() as session:
        url, method = f"http://{config.desk.listen}{path}", "GET" if data is None else "POST"
        asked = session.request(method, url, data=data, headers=headers, allow_redirects=False)
        async with asked as answer:
            text = await answer.read()
            return answer.status, msgspec.json.decode(text) if text.startswith(b"{") else text


@asynccontextmanager
async def connected(config: Config, *sent: bytes) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Connections that have sent something and wait; what comes back can be read."""
    host, _, port = str(config.desk.listen).rpartition(":")
    held = []
    try:
        for each in sent:
            held.append(await asyncio.open_connection(host, int(port)))
            held[-1][1].write(each)
        yield [reader for reader, _ in held]
    finally:
        for _, writer in held:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What came before the desk closed the connection."""
    with suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    return b""


HALF = b"POST /clicks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n[{"


@RUNNERS
@pytest.mark.parametrize("sent", [b"", HALF[:20], HALF], ids=["nothing", "headers", "body"])
def test_a_request_half_sent_does_not_delay_the_end(
    tmp_path: Path, run: Runner, sent: bytes
) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        async with AsyncExitStack() as held:
            async with desk(config):
                (reader,) = await held.enter_async_context(connected(config, sent))
                assert (await ask(config, "/push", []))[0] == 200, "so it has arrived"
                end = asyncio.get_running_loop().time()
            assert asyncio.get_running_loop().time() - end < PATIENCE_S
            assert await ended(reader) == b""

    run(main())


@RUNNERS
def test_idle_connections_shut_nobody_out(tmp_path: Path, run: Runner) -> None:
    """The oldest ones are closed for those that come; whoever is new is answered."""

    async def main() -> None:
        config = settings(tmp_path)
        sent = [b"", HALF[:30], HALF] * 140
        async with desk(config), connected(config, *sent) as held:
            for each in held[:100]:
                assert await ended(each) == b""
            assert (await ask(config, "/push", PAGES))[0] == 200

    run(main())


@RUNNERS
@pytest.mark.parametrize("sent", [b"", HALF[:30], HALF], ids=["nothing", "headers", "body"])
def test_whoever_sends_too_slowly_is_let_go(
    tmp_path: Path, run: Runner, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("HEADERS_S", "BODY_S"):
        monkeypatch.setattr(f"salticus.web.guard.{limit}", 0.2, raising=False)

    async def main() -> None:
        config = settings(tmp_path)
        async with desk(config), connected(config, sent) as (held,):
            answer = await ended(held)
            assert answer[:12] == (b"HTTP/1.1 408" if sent == HALF else b"")

    run(main())


PACKED = gzip.compress(msgspec.json.encode(PAGES))
BROKEN = {
    "no gzip": (b"garbage", "gzip"),
    "cut": (PACKED[:-9], "gzip"),
    "damaged": (PACKED[:30] + b"\xff\xff" + PACKED[32:], "gzip"),
    "no zstd": (b"garbage", "zstd"),
    "no encoding": (b"[]", "rot13"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_that_cannot_be_unpacked_is_the_callers_mistake(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        body, encoding = BROKEN[name]
        async with desk(config):
            status, told = await ask(config, "/push", body, {"Content-Encoding": encoding})
            assert status == 400
            assert "body" in told["error"]
            assert await ask(config, "/push", PACKED, {"Content-Encoding": "gzip"}) == (
                200,
                {"known": 9},
            )

    with caplog.at_level(logging.ERROR):
        run_fast(main())
    assert not caplog.records, "no traceback in the log either"


FOREIGN: list[Headers] = [
    {"Host": "evil.example"},
    {"Host": "evil.example:8470"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "8.8.8.8"},
    {"Host": ""},
    {"Host": "evil.example@127.0.0.1"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": "null"},
    {"Origin": "file://"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_what_is_meant_for_others_or_sent_by_them_is_refused(
    tmp_path: Path, headers: Headers
) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        async with desk(config):
            status, told = await ask(config, "/push", PAGES, headers)
            assert (status, "desk.allowed_hosts" in told["error"]) == (403, True)
            status, _ = await ask(config, "/search?q=tea", headers=headers)
            assert status == 403
            assert await pushes(config) == []

    run_fast(main())


def test_the_desk_knows_its_names_and_those_that_are_given(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path, allowed_hosts=["Desk.example"])
        listen = str(config.desk.listen)
        own: list[Headers] = [
            {"Host": "localhost"},
            {"Host": "LOCALHOST.:99"},
            {"Origin": f"http://{listen}"},
            {"Host": "desk.example"},
            {"Host": "desk.example", "Origin": "https://desk.example"},
            {"Origin": "https://desk.example:8443"},
        ]
        async with desk(config):
            for headers in own:
                assert (await ask(config, "/push", PAGES, headers))[0] == 200, headers

    run_fast(main())


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_an_address_that_others_can_reach_is_warned_of(
    tmp_path: Path, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        port = str(settings(tmp_path).desk.listen).rpartition(":")[2]
        config = settings(tmp_path, listen=f"{host}:{port}")
        async with desk(config):
            assert (await ask(config, "/push", PAGES, {"Host": f"127.0.0.1:{port}"}))[0] == 200

    run_fast(main())
    assert ("without a password" in caplog.text) == (host == "0.0.0.0")


def test_only_a_click_of_this_hour_brings_a_visit(tmp_path: Path) -> None:
    """Older ones are demand; those of times that cannot be are refused."""

    async def main() -> None:
        config = settings(tmp_path, insta="50%", share="100%")
        async with desk(config) as loop:
            now = datetime.now(UTC)
            await loop.plan(Tick(1, now, now + timedelta(hours=2)))
            for when in ("1600-01-01", "0001-01-01T00:00:00+14:00"):
                status, told = await ask(config, "/clicks", [{"url": PAGES[0], "at": when}])
                assert (status, "before 1970" in told["error"]) == (400, True)
            for ago, asked in ((timedelta(days=90), 0), (timedelta(hours=2), 0), (timedelta(), 1)):
                row = {"url": PAGES[0], "at": (now - ago).isoformat()}
                status, told = await ask(config, "/clicks", [row])
                assert (status, told["taken"], told["asked"]) == (200, 1, asked)
        async with stored(config) as store:
            assert sum(row["clicks"] for row in store.scan("demand")) == 3

    run_fast(main())


def test_a_notice_repeated_is_one_signal(tmp_path: Path) -> None:
    """However it is spelt, and in however many requests; until the page was read again."""

    async def main() -> None:
        config = settings(tmp_path)
        async with desk(config):
            for urls in ([PAGES[0]] * 100_000, [PAGES[0].upper()[:20] + "/0"], PAGES[:2]):
                assert await ask(config, "/push", urls) == (200, {"known": len(urls)})
            assert await pushes(config) == [1, 2]
            await read(config, PAGES[0])
            await ask(config, "/push", PAGES[:2])
            assert await pushes(config) == [1, 2, 1]

    run_fast(main())


async def pushes(config: Config) -> list[int]:
    async with stored(config) as store:
        return [row["page_id"] for row in store.scan("signals") if row["kind"] == "push"]


async def read(config: Config, url: str) -> None:
    """A visit reads the page now."""
    async with stored(config) as store:
        page = (await store.page(url)).page
        now = int(datetime.now(UTC).timestamp() * 1e6)
        seen = Observation(1, page, now, "policy", 1.0, "ok", digest="x", value=Value("page", "x"))
        await store.record([Record(seen)])


@pytest.mark.parametrize(
    "spelling",
    [
        "HTTPS://SHOP.example:443/3#%0d%0aSet-Cookie",
        "https://shop.example/./x/../3#javascript:",
        " https://shop.example/3 ",
    ],
)
def test_readers_are_sent_to_the_url_that_is_stored(tmp_path: Path, spelling: str) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        async with desk(config), aiohttp.ClientSession() as session:
            url = f"http://{config.desk.listen}/go"
            there = session.get(url, params={"url": spelling}, allow_redirects=False)
            async with there as answer:
                assert (answer.status, answer.headers["Location"]) == (302, PAGES[3])

    run_fast(main())


def test_a_body_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        bomb = gzip.compress(bytes(50_000_000))
        async with desk(config):
            assert (await ask(config, "/push", bomb, {"Content-Encoding": "gzip"}))[0] == 413

    run_fast(main())
