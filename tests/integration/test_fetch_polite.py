"""Visits against a real server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from gzip import compress

import msgspec
from msgspec.structs import replace

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Route, Server, hang, reply, reset
from salticus.clock import SystemClock, wall_time
from salticus.config import Config, Host, Span
from salticus.fetch.http import HttpEngine
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Fetched, HostState, Status, Target

Headers = dict[str, str]
PAGE = reply(b"<html>page</html>", Content_Type="text/html")
ROOM_S = 2.0  # for two requests to begin, on a busy machine too


def with_fetcher(
    main: Callable[[PoliteFetcher, Server], Awaitable[None]], config: Config | None = None
) -> None:
    async def outer() -> None:
        async with Server({"/p": PAGE}) as server:
            fetcher = fetcher_of(config or settings())
            try:
                await asyncio.wait_for(main(fetcher, server), timeout=600)
            finally:
                await fetcher.close()

    asyncio.run(outer())


def fetcher_of(config: Config) -> PoliteFetcher:
    clock = SystemClock()
    return PoliteFetcher(HttpEngine(config.fetch, clock), config, clock)


async def visit(fetcher: PoliteFetcher, target: Target, before: float | None = None) -> Fetched:
    fetched = await fetcher.fetch(target, *([] if before is None else [before]))
    assert fetched is not None
    return fetched


def paths(server: Server) -> list[str]:
    return [path for path, _ in server.arrivals]


def late(before: float, answer: bytes) -> Route:
    """A route that answers when a time has passed."""

    async def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
        await asyncio.sleep(before - wall_time())
        return answer

    return route


def several(*answers: bytes) -> Callable[[Headers, asyncio.StreamWriter], bytes]:
    """A route that gives one answer after the other, the last one for ever."""
    left = list(answers)
    return lambda headers, writer: left.pop(0) if len(left) > 1 else left[0]


def test_a_visit_tells_what_came_when() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        start = SystemClock().now().timestamp() * 1e6
        fetched = await visit(fetcher, server.target("/p"))
        assert fetched.status is Status.OK
        assert fetched.body == b"<html>page</html>"
        assert fetched.content_type == "text/html"
        assert start <= fetched.at <= SystemClock().now().timestamp() * 1e6
        assert fetched.fault is None

    with_fetcher(main)


def test_elapsed_time_is_that_of_the_exchange_alone() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        fetched = await visit(fetcher, server.target("/p"))
        assert 0 < fetched.elapsed_s < 0.15

    with_fetcher(main, settings(delay=0.15))


def test_world_time_may_run_faster() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        origin = datetime(2000, 1, 1, tzinfo=UTC)
        fetcher.clock = SystemClock(speed=1.0, world_origin=origin, wall_origin=SystemClock().now())
        fetched = await visit(fetcher, server.target("/p"))
        assert 0 <= fetched.at / 1e6 - origin.timestamp() < 10

    with_fetcher(main)


def test_statuses() -> None:
    expected = {
        "204 No Content": Status.OK,
        "404 Not Found": Status.GONE,
        "410 Gone": Status.GONE,
        "401 Who": Status.BLOCKED,
        "403 No": Status.BLOCKED,
        "407 Proxy": Status.BLOCKED,
        "451 Law": Status.BLOCKED,
        "418 Teapot": Status.HTTP,
        "304 Not Modified": Status.HTTP,  # nobody asked for it
        "300 Many": Status.HTTP,
    }

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        for line, status in expected.items():
            server.routes["/s"] = reply(status=line)
            fetched = await visit(fetcher, server.target("/s"))
            assert (fetched.status, fetched.code) == (status, int(line[:3]))
            told = f"the server answered {line[:3]}"
            assert fetched.fault is None or fetched.fault.startswith(told)

    with_fetcher(main)


def test_conditions_go_to_the_first_hop_only() -> None:
    seen: list[Headers] = []

    def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
        seen.append(headers)
        return reply(status="302 Found", Location="/q") if len(seen) == 1 else PAGE

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes |= {"/r": route, "/q": route}
        date = "Thu, 01 Jan 2026 00:00:00 GMT"
        target = msgspec.structs.replace(server.target("/r", '"1"'), last_modified=date)
        fetched = await visit(fetcher, target)
        assert fetched.url == server.url("/q")
        assert seen[0]["if-none-match"] == '"1"'
        assert seen[0]["if-modified-since"] == date.lower()
        assert "if-none-match" not in seen[1]
        assert "if-modified-since" not in seen[1]

    with_fetcher(main)


def test_failures_are_tried_again_and_then_reported() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/once"] = several(reply(status="500 Oops"), PAGE)
        assert (await visit(fetcher, server.target("/once"))).status is Status.OK
        server.routes["/always"] = reply(status="500 Oops")
        fetched = await visit(fetcher, server.target("/always"))
        assert (fetched.status, fetched.code) == (Status.HTTP, 500)
        assert paths(server).count("/always") == 2

    with_fetcher(main, settings(retries=1))


def test_broken_connections_are_tried_again_in_their_turn() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/reset"] = reset
        fetched = await visit(fetcher, server.target("/reset"))
        assert fetched.status is Status.NETWORK
        first, second = server.times("/reset")
        assert second - first >= 0.049

    with_fetcher(main, settings(delay=0.05, retries=1))


def test_time_outs_are_not_tried_again() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/hang"] = hang
        assert (await visit(fetcher, server.target("/hang"))).status is Status.TIMEOUT
        assert paths(server).count("/hang") == 1

    with_fetcher(main, settings(retries=2))


def test_retries_end_when_time_is_up_with_the_last_failure() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        before = wall_time() + ROOM_S
        server.routes["/always"] = late(before, reply(status="500 Oops"))
        fetched = await visit(fetcher, server.target("/always"), before)
        assert fetched.status is Status.HTTP
        assert paths(server) == ["/robots.txt", "/always"]

    with_fetcher(main, settings(delay=0.1, retries=5))


def test_a_busy_host_ends_the_visit_and_is_left_alone_as_long_as_it_asked() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/busy"] = several(reply(status="503 Wait", Retry_After="1"), PAGE)
        fetched = await visit(fetcher, server.target("/busy"))
        assert (fetched.status, fetched.code) == (Status.BUSY, 503)
        assert fetcher.host(server.target("/busy").host).next_at >= wall_time() + 0.9
        assert (await visit(fetcher, server.target("/busy"))).status is Status.OK
        first, second = server.times("/busy")
        assert second - first >= 0.999

    with_fetcher(main, settings(retries=2))


def test_a_pause_is_heeded_by_those_who_wait_for_one_of_the_seats_that_all_hosts_share() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        busy, over = asyncio.Event(), asyncio.Event()

        def after(event: asyncio.Event, answer: bytes) -> Route:
            async def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
                await event.wait()
                return answer

            return route

        server.routes["/busy"] = after(busy, reply(status="429 Wait", Retry_After="3600"))
        async with Server({"/slow": after(over, PAGE)}) as other:
            await visit(fetcher, server.target("/p"))
            begun = [
                asyncio.create_task(fetcher.fetch(target))
                for target in (server.target("/busy"), other.target("/slow"))
            ]
            await server.asked("/busy")
            await other.asked("/slow")
            late = asyncio.create_task(fetcher.fetch(server.target("/late"), wall_time() + 1800))
            await asyncio.sleep(0)  # it has its turn, and waits for a seat
            busy.set()
            assert await late is None
            over.set()
            await asyncio.gather(*begun)
        assert "/late" not in paths(server)

    base = settings(per_host=2, timeout=60.0)
    with_fetcher(main, replace(base, fetch=replace(base.fetch, concurrency=2)))


def test_redirects_are_counted_and_circles_found() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        for i in range(9):
            server.routes[f"/{i}"] = reply(status="302 Found", Location=f"/{i + 1}")
        server.routes["/9"] = PAGE
        assert (await visit(fetcher, server.target("/4"))).status is Status.OK
        fetched = await visit(fetcher, server.target("/3"))
        assert (fetched.status, fetched.fault) == (Status.REDIRECTS, "more than 5 redirects")
        server.routes["/a"] = reply(status="302 Found", Location="/b#x")
        server.routes["/b"] = reply(status="302 Found", Location="/a")
        fetched = await visit(fetcher, server.target("/a"))
        assert fetched.status is Status.REDIRECTS
        assert "circle" in (fetched.fault or "")

    with_fetcher(main)


def test_a_redirect_obeys_the_other_hosts_robots_and_turns() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        async with Server({"/robots.txt": reply(b"User-agent: *\nDisallow: /no\n")}) as other:
            other.routes |= {"/yes": PAGE, "/no": PAGE}
            for name in ("yes", "no"):
                location = other.url(f"/{name}")
                server.routes[f"/{name}"] = reply(status="301 Moved", Location=location)
            yes = await visit(fetcher, server.target("/yes"))
            assert (yes.status, yes.url) == (Status.OK, other.url("/yes"))
            no = await visit(fetcher, server.target("/no"))
            assert no.status is Status.DISALLOWED
            assert paths(other) == ["/robots.txt", "/yes"]
            robots, page = other.times()
            assert page - robots >= 0.049

    with_fetcher(main, settings(delay=0.05))


def test_a_redirect_that_must_wait_too_long_ends_as_busy() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        before = wall_time() + ROOM_S
        server.routes["/r"] = late(before, reply(status="302 Found", Location="/p"))
        fetched = await visit(fetcher, server.target("/r"), before)
        assert fetched.status is Status.BUSY
        assert "/p" not in paths(server)

    with_fetcher(main, settings(delay=0.1))


def test_robots_is_asked_once_for_many_visits() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/robots.txt"] = reply(b"User-agent: *\nDisallow: /x\n")
        await asyncio.gather(*(visit(fetcher, server.target("/p")) for _ in range(20)))
        assert paths(server).count("/robots.txt") == 1
        assert paths(server)[0] == "/robots.txt"

    with_fetcher(main, settings(per_host=4))


def test_robots_is_asked_by_the_next_visit_if_the_first_is_cancelled() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/robots.txt"] = hang
        first = asyncio.create_task(fetcher.fetch(server.target("/p")))
        second = asyncio.create_task(fetcher.fetch(server.target("/p")))
        await server.asked("/robots.txt")
        server.routes["/robots.txt"] = reply(status="404 None")
        first.cancel()
        fetched = await second
        assert fetched is not None
        assert fetched.status is Status.OK
        assert paths(server) == ["/robots.txt", "/robots.txt", "/p"]

    with_fetcher(main)


def test_robots_may_be_elsewhere_five_redirects_away() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        async with Server({"/rules": reply(b"User-agent: *\nDisallow: /p\n")}) as other:
            for i in range(4):
                other.routes[f"/{i}"] = reply(status="302 Found", Location=f"/{i + 1}")
            other.routes["/4"] = reply(status="302 Found", Location="/rules")
            server.routes["/robots.txt"] = reply(status="301 Moved", Location=other.url("/1"))
            assert (await visit(fetcher, server.target("/p"))).status is Status.DISALLOWED
            again = fetcher_of(settings())
            server.routes["/robots.txt"] = reply(status="301 Moved", Location=other.url("/0"))
            assert (await visit(again, server.target("/p"))).status is Status.OK
            assert paths(other)[-1] == "/4", "the sixth redirect is not followed"
            await again.close()

    with_fetcher(main)


def test_robots_out_of_reach_closes_the_host_without_asking_again() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/robots.txt"] = reset
        for _ in range(3):
            fetched = await visit(fetcher, server.target("/p"))
            assert fetched.status is Status.NETWORK
            assert "could not be reached" in (fetched.fault or "")
        assert paths(server) == ["/robots.txt"]
        assert fetcher.host(server.host).robots_code == 0

    with_fetcher(main)


def test_known_robots_is_not_asked_for_and_stale_rules_hold() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        rules, now = "User-agent: *\nDisallow: /p\n", wall_time()
        state = HostState(server.host, robots=rules, robots_code=200, robots_until=now + 60)
        fetcher.restore([state])
        assert (await visit(fetcher, server.target("/p"))).status is Status.DISALLOWED
        assert not server.arrivals
        server.routes |= {"/robots.txt": reply(status="500 Oops"), "/q": PAGE}
        stale = fetcher_of(settings())
        stale.restore([msgspec.structs.replace(state, robots_until=now - 60)])
        assert (await visit(stale, server.target("/p"))).status is Status.DISALLOWED
        assert (await visit(stale, server.target("/q"))).status is Status.OK
        assert paths(server) == ["/robots.txt", "/q"]
        await stale.close()

    with_fetcher(main)


def test_crawl_delay_slows_the_host_down() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/robots.txt"] = reply(b"User-agent: *\nCrawl-delay: 0.1\n")
        assert fetcher.concurrency(server.host) == 4
        await asyncio.gather(*(visit(fetcher, server.target("/p")) for _ in range(3)))
        times = server.times()
        assert min(b - a for a, b in zip(times, times[1:], strict=False)) >= 0.099
        assert fetcher.concurrency(server.host) == 1

    with_fetcher(main, settings(per_host=4))


def test_patterns_set_delay_and_concurrency() -> None:
    config = msgspec.structs.replace(
        settings(), hosts=(Host("*.org", Span(seconds=3)), Host("a.net", None, 7))
    )

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        now = wall_time()
        assert fetcher.concurrency("x.org") == 1
        assert fetcher.concurrency("a.net") == 7
        assert 9 <= fetcher.capacity("x.org", now + 3, 30) <= 10
        assert fetcher.capacity("a.net", now, 30) == float("inf")

    with_fetcher(main, config)


def test_all_hosts_share_the_global_concurrency() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        running, most = 0, 0

        async def slow(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return PAGE

        async with Server({"/s": slow}) as b, Server({"/s": slow}) as c:
            server.routes["/s"] = slow
            targets = [one.target("/s") for one in (server, b, c)] * 4
            await asyncio.gather(*(visit(fetcher, target) for target in targets))
        assert most == 2

    config = settings(per_host=4)
    fetch = msgspec.structs.replace(config.fetch, concurrency=2)
    with_fetcher(main, msgspec.structs.replace(config, fetch=fetch))


def test_waiting_for_a_seat_ends_in_time_and_frees_the_turn() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        async with Server({"/hang": hang}) as other:
            await visit(fetcher, server.target("/p"))
            task = asyncio.create_task(visit(fetcher, other.target("/hang")))
            await other.asked("/hang")
            assert await fetcher.fetch(server.target("/p"), wall_time() + 0.05) is None
            assert not task.done(), "the seat was still taken"
            await task
            assert (await visit(fetcher, server.target("/p"))).status is Status.OK

    fetch = msgspec.structs.replace(settings(timeout=10.0).fetch, concurrency=1)
    with_fetcher(main, Config(fetch=fetch))


def test_a_visit_that_comes_too_late_is_not_made() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        assert await fetcher.fetch(server.target("/p"), wall_time() - 1) is None
        assert not server.arrivals
        await visit(fetcher, server.target("/p"))
        assert await fetcher.fetch(server.target("/p"), wall_time() - 1) is None
        assert paths(server) == ["/robots.txt", "/p"]

    with_fetcher(main)


def test_cancellation_frees_the_turn_wherever_it_strikes() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes |= {"/hang": hang}
        await visit(fetcher, server.target("/p"))
        for steps in range(12):
            tasks = [asyncio.create_task(fetcher.fetch(server.target("/hang"))) for _ in range(3)]
            for _ in range(steps):
                await asyncio.sleep(0.002)
            for task in tasks:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in found)
        assert (await visit(fetcher, server.target("/p"))).status is Status.OK
        times = server.times()
        assert min(b - a for a, b in zip(times, times[1:], strict=False)) >= 0.009

    with_fetcher(main, settings(delay=0.01))


def test_a_new_process_waits_the_delay_before_its_first_request() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        start = time.monotonic()
        fetcher.restore([HostState(server.host, next_at=wall_time() - 100)])
        await visit(fetcher, server.target("/p"))
        assert server.times()[0] - start >= 0.099

    with_fetcher(main, settings(delay=0.1))


def test_pauses_survive_a_restart() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/busy"] = reply(status="503 Wait", Retry_After="60")
        assert (await visit(fetcher, server.target("/busy"))).status is Status.BUSY
        again = fetcher_of(settings())
        again.restore([fetcher.host(server.host)])
        assert await again.fetch(server.target("/p"), wall_time() + 50) is None
        assert again.host(server.host).strikes == 1
        assert again.capacity(server.host, wall_time(), 50) == 0.0
        await again.close()

    with_fetcher(main)


def test_a_visit_under_way_ends_after_stop_but_is_not_tried_again() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
            fetcher.stop()
            return reply(status="500 Oops")

        server.routes["/p"] = route
        fetched = await visit(fetcher, server.target("/p"))
        assert fetched.status is Status.HTTP
        assert paths(server) == ["/robots.txt", "/p"]

    with_fetcher(main, settings(retries=3))


def test_an_unsafe_host_is_unsafe_before_anything_is_asked() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        fetched = await visit(fetcher, server.target("/p"))
        assert fetched.status is Status.UNSAFE
        assert fetched.fault == "127.0.0.1 is off limits: no public address"
        assert not server.arrivals
        assert fetcher.host(server.host).robots_code is None

    with_fetcher(main, settings(allow=()))


# ------------------------------------------------------------------------------- hostile robots


def test_of_ten_megabytes_of_robots_only_the_start_is_read_and_counts() -> None:
    sent = 0

    async def flood(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
        writer.write(b"User-agent: *\nDisallow: /p\n")
        for _ in range(1000):
            writer.write(b"# nothing\n" * 1000)
            await writer.drain()
            sent += 10_000
        return b""

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes |= {"/robots.txt": flood, "/q": PAGE}
        assert (await visit(fetcher, server.target("/p"))).status is Status.DISALLOWED
        assert (await visit(fetcher, server.target("/q"))).status is Status.OK
        assert len(fetcher.host(server.host).robots or "") <= 512_000
        assert sent < 9_000_000, "the rest is not waited for"

    config = settings()
    fetch = msgspec.structs.replace(config.fetch, timeout=Span(seconds=60))
    with_fetcher(main, msgspec.structs.replace(config, fetch=fetch))


def test_a_robots_bomb_costs_no_more_than_its_start() -> None:
    rules = b"User-agent: *\nDisallow: /x\n" + b"#\n" * 10_000_000

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        packed = reply(compress(rules, 1), Content_Encoding="gzip")
        server.routes |= {"/robots.txt": packed, "/x": PAGE}
        assert (await visit(fetcher, server.target("/x"))).status is Status.DISALLOWED
        assert (await visit(fetcher, server.target("/p"))).status is Status.OK

    with_fetcher(main)


def test_robots_that_is_no_text_allows_all() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/robots.txt"] = reply(bytes(range(256)) * 100, Content_Type="image/png")
        assert (await visit(fetcher, server.target("/p"))).status is Status.OK

    with_fetcher(main)


# ------------------------------------------------------------------------------- moved for good


def test_a_page_that_moved_to_another_host_for_good_says_where() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        async with Server({"/new": PAGE}) as other:
            server.routes["/old"] = reply(status="301 Moved", Location="/older")
            server.routes["/older"] = reply(status="308 Moved", Location=other.url("/new#top"))
            fetched = await visit(fetcher, server.target("/old"))
            assert (fetched.status, fetched.moved) == (Status.OK, other.url("/new"))
            assert fetched.url == fetched.moved
            server.routes["/older"] = reply(status="302 Found", Location=other.url("/new"))
            assert (await visit(fetcher, server.target("/old"))).moved is None
            server.routes["/older"] = reply(status="301 Moved", Location=other.url("/none"))
            gone = await visit(fetcher, server.target("/old"))
            assert (gone.status, gone.moved) == (Status.GONE, None)

    with_fetcher(main)
