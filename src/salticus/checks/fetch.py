"""Laws that every engine and every fetcher obeys."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TypeVar
from zoneinfo import ZoneInfo

import brotli
import msgspec
import zstandard

from salticus.checks.fetch_server import (
    BODY,
    LIMIT,
    MISCHIEF,
    PACKED,
    TIMEOUT_S,
    Route,
    Server,
    dripping,
    reply,
)
from salticus.clock import Clock, SystemClock, wall_time
from salticus.config import Config, Fetch, Host, Hours, Size, Span
from salticus.fetch.base import Engine, Fetcher
from salticus.types import Fetched, HostState, Status, Target

Make = Callable[[Config, Clock], Fetcher]
C = TypeVar("C", Fetch, Config)
T = TypeVar("T", Engine, Fetcher)

_ROUTES: dict[str, Route] = {path: route for path, (route, _) in MISCHIEF.items()}
_HONEST: dict[str, Route] = {
    "/plain": reply(BODY, Content_Type="text/html; charset=Latin-1", ETag='"1"'),
    "/gzip": reply(PACKED, Content_Encoding="gzip"),
    "/deflate": reply(zlib.compress(BODY), Content_Encoding="deflate"),
    "/br": reply(brotli.compress(BODY), Content_Encoding="br"),
    "/zstd": reply(zstandard.compress(BODY), Content_Encoding="zstd"),
}

_PATIENCE_S = 20.0  # for what should happen at once, on a machine that is busy
_VISITS = {  # where a visit ends otherwise than its exchange
    **dict.fromkeys(("/circle", "/nowhere", "/mail"), {Status.REDIRECTS}),
    **dict.fromkeys(("/teapot", "/error"), {Status.HTTP}),
}


def settings(
    *,
    delay: float = 0.0,
    per_host: int = 1,
    retries: int = 0,
    allow: tuple[str, ...] | None = None,
    timeout: float = TIMEOUT_S,
) -> Config:
    """Small limits, and leave to visit 127.0.0.1 unless `allow` says otherwise."""
    fetch = Fetch(
        delay=Span(seconds=delay),
        per_host=per_host,
        retries=retries,
        timeout=Span(seconds=timeout),
        max_size=Size(LIMIT),
        allow_private=("127.0.0.1",) if allow is None else allow,
    )
    return Config(fetch=fetch)


_patient = partial(settings, timeout=_PATIENCE_S)  # where nothing is to time out


@asynccontextmanager
async def _made(make: Callable[[C, Clock], T], config: C) -> AsyncIterator[T]:
    """A part on the clock of the system, closed in the end."""
    made = make(config, SystemClock())
    try:
        yield made
    finally:
        await made.close()


# ------------------------------------------------------------------------------------------ engines


async def check_engine(make: Callable[[Fetch, Clock], Engine]) -> None:
    """Run all laws of `Engine` on engines made by `make`, in about five seconds."""
    async with Server({**_HONEST, **_ROUTES}) as server:
        async with _made(make, _patient().fetch) as engine:
            await _reads(engine, server)
        async with _made(make, settings().fetch) as engine:
            for path, (_, expected) in MISCHIEF.items():
                await _survives(engine, server, path, expected)
        await _stays_out(make, server)
    await _hurries(make)


async def _reads(engine: Engine, server: Server) -> None:
    for path in _HONEST:
        start = wall_time()
        answer = await engine.get(server.url(path), {})
        assert (answer.status, answer.code) == (Status.OK, 200), f"law: {path} is answered"
        assert answer.body == BODY, f"law: the body is whole and decompressed ({path})"
        assert start <= answer.answered_at <= wall_time(), "law: `answered_at` is wall time"
    part = await engine.get(server.url("/plain"), {}, most=10)
    assert (part.status, part.body) == (Status.OK, BODY[:10]), "law: `most` cuts a longer body"
    plain = await engine.get(server.url("/plain"), {})
    assert (plain.etag, plain.charset) == ('"1"', "latin-1"), "law: headers are kept"


async def _survives(engine: Engine, server: Server, path: str, expected: set[Status]) -> None:
    before = len(server.arrivals)
    answer = await engine.get(server.url(path), {})
    shown = f"{path}: {answer.status.label}, {answer.fault}"
    assert answer.status in expected, f"law: the status names the failure ({shown})"
    fine = answer.status is Status.OK
    assert (answer.fault is None) == fine, f"law: faults have words ({shown})"
    assert len(answer.body) <= LIMIT, f"law: never more than the limit ({shown})"
    asked = [p for p, _ in server.arrivals[before:]]
    assert asked == [path], f"law: one request, no redirect followed, no repeat ({shown}: {asked})"
    for text in (answer.etag, answer.fault):
        assert text is None or text.encode("utf-8"), "law: text is text"


async def _stays_out(make: Callable[[Fetch, Clock], Engine], server: Server) -> None:
    """No spelling of a private address is connected to."""
    before = len(server.arrivals)
    names = ("127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433")
    async with _made(make, settings(allow=()).fetch) as engine:
        for name in (*names, "0x7f.1", "017700000001", "127.1"):
            answer = await engine.get(f"http://{name}:{server.port}/plain", {})
            assert answer.status is Status.UNSAFE, f"law: {name} is off limits, not {answer.fault}"
            assert answer.fault, "law: faults have words"
    assert len(server.arrivals) == before, "law: nothing is asked of an address off limits"


async def _hurries(make: Callable[[Fetch, Clock], Engine]) -> None:
    """An answer that may pause its host is told at once, whatever becomes of its body."""
    routes = {
        "/429": dripping("429 Slow down", Retry_After="30"),
        "/503": dripping("503 Wait"),
        "/404": dripping("404 Not Found", Retry_After="30"),
    }
    patient = settings(timeout=4 * _PATIENCE_S).fetch
    async with Server(routes) as server, _made(make, patient) as engine:
        for path in routes:
            asked = asyncio.create_task(engine.get(server.url(path), {}))
            await asyncio.wait({asked}, timeout=_PATIENCE_S)
            assert asked.done(), f"law: bodies of pauses are not waited for ({path})"
            answer = await asked
            told = (answer.status, answer.code)
            assert told == (Status.OK, int(path[1:])), f"law: it is an answer, not {told}"


# ----------------------------------------------------------------------------------------- fetchers


async def check_fetcher(make: Callable[[Config, Clock], Fetcher]) -> None:
    """Run all laws of `Fetcher` on fetchers made by `make`, in about ten seconds."""
    for law in [found for name, found in globals().items() if name.startswith("_law_")]:
        await law(make)


async def _visits(make: Make, config: Config, targets: Iterable[Target]) -> list[Fetched]:
    async with _made(make, config) as fetcher:
        found = await asyncio.gather(*(fetcher.fetch(target) for target in targets))
    assert all(found), "law: with time enough every turn comes"
    return [fetched for fetched in found if fetched is not None]


async def _law_never_raises(make: Make) -> None:
    async with Server({**_ROUTES}) as server:
        for path, (_, exchange) in MISCHIEF.items():
            (fetched,) = await _visits(make, settings(), [server.target(path)])
            expected, fine = _VISITS.get(path, exchange), fetched.status is Status.OK
            assert fetched.status in expected, f"law: {path} does not end as {fetched.status}"
            assert (fetched.fault is None) == fine, f"law: faults have words ({path})"
        away = f"http://localhost:{server.port}/plain"
        server.routes["/away"] = reply(status="302 Found", Location=away)
        (fetched,) = await _visits(make, settings(), [server.target("/away")])
        assert fetched.status is Status.UNSAFE, "law: no redirect leads to an address off limits"


async def _law_follows(make: Make) -> None:
    """Where a page has moved for good is told, if every redirect was permanent."""
    ways = {
        "/a": ("301 Moved", "/b"),
        "/b": ("308 Moved", "/end"),
        "/c": ("301 Moved", "/d"),
        "/d": ("302 Found", "/end"),
        "/e": ("307 Found", "/b"),
        "/f": ("301 Moved", "/gone"),
    }
    routes = {path: reply(status=line, Location=to) for path, (line, to) in ways.items()}
    async with Server({**routes, "/end": reply(BODY)}) as server:
        found = await _visits(make, _patient(), map(server.target, (*ways, "/end")))
        moved = [one.moved and one.moved.removeprefix(server.url("")) for one in found]
        expected = ["/end", "/end", None, None, None, None, None]
        assert moved == expected, f"law: `moved` after permanent redirects only, not {moved}"


async def _law_keeps_gaps(make: Make) -> None:
    delay = 0.05
    routes = {"/p": reply(BODY), "/r": reply(status="302 Found", Location="/p")}
    async with Server({**routes}) as server:
        targets = [server.target(path) for path in ("/p", "/r", "/p")]
        start = time.monotonic()
        await _visits(make, _patient(delay=delay, per_host=4), targets)
    waits = [at - start for at in server.times()]
    assert len(waits) == 5, "law: robots.txt and redirects take turns"
    early = [n for n, wait in enumerate(waits, 1) if wait < n * delay - 0.001]
    assert not early, f"law: requests start at least the delay apart ({waits})"  # may arrive late
    assert server.most == 1, "law: with a delay, one after the other"


async def _law_keeps_apart(make: Make) -> None:
    async def slow(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
        await asyncio.sleep(0.02)
        return reply(BODY)

    async with Server({"/p": slow}) as server:
        await _visits(make, _patient(per_host=3), [server.target("/p")] * 9)
    assert server.most <= 3, f"law: no more at once than the concurrency, not {server.most}"


async def _law_is_patient(make: Make) -> None:
    busy_host = Server({"/busy": reply(status="429 Slow down", Retry_After="30")})
    async with busy_host as server, _made(make, settings(retries=2)) as fetcher:
        busy = await fetcher.fetch(server.target("/busy"))
        assert busy is not None, "law: without a deadline every visit is made"
        assert busy.status is Status.BUSY, "law: 429 is BUSY"
        soon = wall_time() + 20
        assert await fetcher.fetch(server.target("/p"), soon) is None, "law: Retry-After holds"
        assert await fetcher.fetch(server.target("/p"), 0.0) is None, "law: too late is too late"
        assert fetcher.capacity(server.host, wall_time(), 20) == 0, "law: no capacity meanwhile"
        assert fetcher.capacity(server.host, wall_time(), 40) > 0, "law: capacity comes back"
        assert _next_at(fetcher, server) > wall_time() + 25, "law: the host remembers"
    assert len(server.times()) == 2, "law: a host that said Retry-After is left alone"


def _next_at(fetcher: Fetcher, server: Server) -> float:
    return {state.host: state for state in fetcher.news()}[server.host].next_at


async def _law_is_patient_at_once(make: Make) -> None:
    """A Retry-After counts from its headers, for requests to the host that wait meanwhile too."""
    release = asyncio.Event()

    async def slow(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
        await release.wait()
        return reply(BODY)

    routes = {"/429": dripping("429 Slow down", Retry_After="3600"), "/slow": slow}
    config = settings(per_host=2, timeout=4 * _PATIENCE_S)
    async with Server({**routes, "/p": reply(BODY)}) as server, _made(make, config) as fetcher:
        soon = wall_time() + 1800
        begun = [asyncio.create_task(fetcher.fetch(server.target(path))) for path in routes]
        await server.asked("/429")
        await server.asked("/slow")
        waiting = [asyncio.create_task(fetcher.fetch(server.target("/p"), soon)) for _ in range(9)]
        await asyncio.wait(begun[:1], timeout=_PATIENCE_S)
        assert begun[0].done(), "law: a 429 is heeded while its body drips"
        assert _next_at(fetcher, server) > soon, "law: it is told as news at once"
        release.set()
        assert await asyncio.gather(*waiting) == [None] * 9, "law: those who wait are sent away"
        await asyncio.gather(*begun)
    assert not server.times("/p"), "law: nothing is requested after the headers of a Retry-After"


async def _law_keeps_hours(make: Make) -> None:
    now = SystemClock().now()
    start, end = ((now + timedelta(hours=h)).time().replace(tzinfo=None) for h in (6, 7))
    closed = Host("*", hours=Hours(start, end, ZoneInfo("UTC")))
    config = msgspec.structs.replace(settings(delay=1.0), hosts=(closed,))
    async with Server({"/p": reply(BODY)}) as server, _made(make, config) as fetcher:
        visit = await fetcher.fetch(server.target("/p"), wall_time() + 3600)
        assert visit is None, "law: no visit outside of the hours"
        assert fetcher.capacity(server.host, wall_time(), 3600) == 0, "law: no capacity then"
        room = fetcher.capacity(server.host, wall_time(), 86_400)
        assert 3500 < room < 3700, f"law: the capacity is that of the hours, not {room}"
    assert not server.arrivals, "law: nothing is requested outside of the hours"


async def _law_heeds_robots(make: Make) -> None:
    rules = reply(b"User-agent: *\nDisallow: /private\n")
    async with Server({"/robots.txt": rules, "/p": reply(BODY)}) as server:
        paths = ("/private/1", "/p", "/private")
        found = await _visits(make, _patient(), map(server.target, paths))
        statuses = [fetched.status for fetched in found]
        expected = [Status.DISALLOWED, Status.OK, Status.DISALLOWED]
        assert statuses == expected, f"law: robots.txt decides, not {statuses}"
        asked = [path for path, _ in server.arrivals]
        assert asked == ["/robots.txt", "/p"], f"law: no disallowed path is requested ({asked})"
        server.routes["/robots.txt"] = reply(status="500 Oops")
        (fetched,) = await _visits(make, _patient(), [server.target("/p")])
        assert fetched.status is Status.HTTP, "law: without robots.txt the visit fails"
        assert len(server.times("/p")) == 1, "law: without robots.txt nothing is requested"


async def _law_heeds_unread_robots(make: Make) -> None:
    """A robots.txt that began well and cannot be read may forbid anything."""
    for path in ("/truncated", "/cut-chunk", "/bad-gzip", "/cut-gzip", "/unasked", "/stall"):
        async with Server({"/robots.txt": _ROUTES[path], "/p": reply(BODY)}) as server:
            (fetched,) = await _visits(make, settings(), [server.target("/p")])
            asked = [path for path, _ in server.arrivals]
            assert asked == ["/robots.txt"], f"law: rules unread allow nothing ({path}: {asked})"
            fine = (Status.OK, Status.DISALLOWED)
            assert fetched.status not in fine, "law: no rule forbids it, and the visit fails"


async def _law_remembers(make: Make) -> None:
    def conditional(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
        known = headers.get("if-none-match") == '"1"'
        return reply(status="304 Not Modified") if known else reply(BODY, ETag='"1"')

    async with Server({"/p": conditional}) as server:
        (first,) = await _visits(make, _patient(), [server.target("/p")])
        (again,) = await _visits(make, _patient(), [server.target("/p", first.etag)])
        assert again.status is Status.NOT_MODIFIED, "law: a conditional request is understood"
        async with _made(make, settings(delay=0.1)) as fetcher:
            fetcher.restore([HostState(server.host, next_at=wall_time() + 30)])
            made = await fetcher.fetch(server.target("/p"), wall_time() + 20)
            assert made is None, "law: what was remembered of a host holds"


async def _law_stops(make: Make) -> None:
    config = settings(delay=30.0)
    async with Server({"/p": reply(BODY)}) as server, _made(make, config) as fetcher:
        waiting = [asyncio.create_task(fetcher.fetch(server.target("/p"))) for _ in range(3)]
        await asyncio.sleep(0)
        fetcher.stop()
        found = await asyncio.wait_for(asyncio.gather(*waiting), timeout=60)
        assert found == [None] * 3, "law: after `stop` no visit begins"
        late = await asyncio.wait_for(fetcher.fetch(server.target("/p")), timeout=60)
        assert late is None, "law: nor any that comes later"
    assert not server.arrivals, "law: after `stop` nothing is requested"
