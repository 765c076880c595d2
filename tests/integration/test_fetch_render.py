"""Pages that are rendered: what the fetcher gives to a renderer, and what it takes from it."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Server, reply
from salticus.clock import SystemClock, wall_time
from salticus.config import Config, Rule
from salticus.fetch.base import Answer, Ask
from salticus.fetch.http import HttpEngine
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Fetched, Status, Target

Headers = dict[str, str]
SHELL = reply(b"<html>shell</html>", Content_Type="text/html", ETag='"1"', Last_Modified="x")
Rendering = Callable[[Answer, str | None, Ask], Awaitable[Answer]]


class Fake:
    """A renderer that does what it is told."""

    def __init__(self, rendering: Rendering) -> None:
        self.rendering = rendering
        self.closed = False

    async def render(self, page: Answer, wait: str | None, ask: Ask) -> Answer:
        return await self.rendering(page, wait, ask)

    async def close(self) -> None:
        self.closed = True


async def shown(page: Answer, wait: str | None, ask: Ask) -> Answer:
    return msgspec.structs.replace(page, body=b"<html>shown</html>")


def rendered(config: Config, **more: object) -> Config:
    rules = (Rule("*/js*", render=True, wait=".price", **more), Rule("*/plain*"))  # type: ignore[arg-type]
    return msgspec.structs.replace(config, pages=rules)


def with_fetcher(
    main: Callable[[PoliteFetcher, Server], Awaitable[None]],
    rendering: Rendering = shown,
    config: Config | None = None,
    *,
    none: bool = False,
) -> None:
    async def outer() -> None:
        async with Server({"/js": SHELL, "/plain": SHELL}) as server:
            made, clock = rendered(config or settings(timeout=60.0)), SystemClock()
            renderer = Fake(rendering)
            engine = HttpEngine(made.fetch, clock)
            fetcher = PoliteFetcher(engine, made, clock, None if none else renderer)
            try:
                await asyncio.wait_for(main(fetcher, server), timeout=600)
            finally:
                await fetcher.close()
            assert renderer.closed is not none

    asyncio.run(outer())


def ruled(fetcher: PoliteFetcher, server: Server) -> Target:
    return fetcher.config.ruled(server.target("/js"))


async def visit(fetcher: PoliteFetcher, server: Server, path: str, **more: object) -> Fetched:
    target = msgspec.structs.replace(server.target(path), **more)  # type: ignore[arg-type]
    fetched = await fetcher.fetch(fetcher.config.ruled(target))
    assert fetched is not None
    return fetched


def test_what_is_shown_is_the_body_and_only_where_the_rule_says_so() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        fetched = await visit(fetcher, server, "/js")
        assert (fetched.status, fetched.body) == (Status.OK, b"<html>shown</html>")
        assert fetched.etag is fetched.last_modified is None, "they are the shell's"
        plain = await visit(fetcher, server, "/plain")
        assert (plain.body, plain.etag) == (b"<html>shell</html>", '"1"')

    with_fetcher(main)


def test_the_renderer_is_told_what_to_wait_for() -> None:
    told: list[tuple[str, str | None]] = []

    async def rendering(page: Answer, wait: str | None, ask: Ask) -> Answer:
        told.append((page.url, wait))
        return page

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        await visit(fetcher, server, "/js")
        assert told == [(server.url("/js"), ".price")]

    with_fetcher(main, rendering)


def test_rendered_pages_are_asked_for_without_conditions() -> None:
    seen: list[Headers] = []

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
            seen.append(headers)
            return SHELL

        server.routes |= {"/js": route, "/plain": route}
        for path in ("/js", "/plain"):
            await visit(fetcher, server, path, etag='"1"', last_modified="x")
        assert ["if-none-match" in headers for headers in seen] == [False, True]

    with_fetcher(main)


def test_errors_and_failures_are_not_rendered() -> None:
    async def never(page: Answer, wait: str | None, ask: Ask) -> Answer:
        raise AssertionError(page)

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        ends = {
            reply(b"x", status="404 None"): Status.GONE,
            reply(b"x", status="403 No"): Status.BLOCKED,
            reply(b"x", Content_Encoding="lzma"): Status.BROKEN,
            reply(b"{}", Content_Type="application/json"): Status.OK,
        }
        for answer, status in ends.items():
            server.routes["/js"] = answer
            assert (await visit(fetcher, server, "/js")).status is status

    with_fetcher(main, never)


def test_a_page_that_cannot_be_rendered_says_why() -> None:
    async def broken(page: Answer, wait: str | None, ask: Ask) -> Answer:
        return Answer(page.url, Status.BROKEN, page.answered_at, 200, fault="the browser is gone")

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        fetched = await visit(fetcher, server, "/js")
        assert (fetched.status, fetched.fault) == (Status.BROKEN, "the browser is gone")
        assert fetched.moved is None

    with_fetcher(main, broken)


def test_without_a_browser_a_page_that_needs_one_is_not_read() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        fetched = await visit(fetcher, server, "/js")
        assert fetched.status is Status.BROKEN
        assert "there is no browser" in (fetched.fault or "")
        assert (await visit(fetcher, server, "/plain")).status is Status.OK

    with_fetcher(main, none=True)


def test_what_a_page_asks_for_is_asked_politely() -> None:
    answers: dict[str, Answer | None] = {}

    async def rendering(page: Answer, wait: str | None, ask: Ask) -> Answer:
        base = page.url.removesuffix("/js")
        urls = {
            "script": f"{base}/a.js",
            "no": f"{base}/no/x",
            "moved": f"{base}/moved",
            "broken": f"{base}/broken",
            "private": "http://10.0.0.1/",
            "data": "data:text/plain,x",
            "wild": "http://[",
        }
        for name, url in urls.items():
            answers[name] = await ask(url)
        return page

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes |= {
            "/robots.txt": reply(b"User-agent: *\nDisallow: /no\n"),
            "/a.js": reply(b"script"),
            "/moved": reply(status="302 Found", Location="/a.js"),
            "/broken": reply(status="500 Oops"),
        }
        await visit(fetcher, server, "/js")
        paths = [path for path, _ in server.arrivals]
        assert paths == ["/robots.txt", "/js", "/a.js", "/moved", "/broken"], "no retries either"
        gaps = [b - a for a, b in zip(server.times(), server.times()[1:], strict=False)]
        assert min(gaps) >= 0.029, "each takes its turn"
        found = {name: answer and (answer.status, answer.code) for name, answer in answers.items()}
        assert found == {
            "script": (Status.OK, 200),
            "no": (Status.DISALLOWED, 0),
            "moved": (Status.OK, 302),
            "broken": (Status.OK, 500),
            "private": (Status.UNSAFE, 0),
            "data": None,
            "wild": None,
        }

    with_fetcher(main, rendering, settings(delay=0.03, retries=2, timeout=60.0))


def test_the_turn_is_free_while_a_page_is_rendered_and_the_time_counts() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        done = asyncio.Event()

        async def slow(page: Answer, wait: str | None, ask: Ask) -> Answer:
            await done.wait()
            return page

        fetcher.renderer = fake = Fake(slow)
        task = asyncio.create_task(visit(fetcher, server, "/js"))
        await server.asked("/js")
        start = wall_time()
        assert (await visit(fetcher, server, "/plain")).status is Status.OK
        waited = wall_time() - start
        done.set()
        assert (await task).elapsed_s >= waited / 2
        assert not fake.closed

    async def outer(fetcher: PoliteFetcher, server: Server) -> None:
        kept = fetcher.renderer
        await main(fetcher, server)
        fetcher.renderer = kept

    with_fetcher(outer)


def test_a_page_may_ask_beyond_the_tick_that_it_began_in() -> None:
    found: list[Answer | None] = []
    before = wall_time() + 2.0  # room for it to begin, on a busy machine too

    async def rendering(page: Answer, wait: str | None, ask: Ask) -> Answer:
        await asyncio.sleep(before - wall_time())
        found.append(await ask(f"{page.url}/more"))
        return page

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        await visit(fetcher, server, "/plain")  # robots.txt is known then
        server.routes["/js/more"] = reply(b"more")
        fetched = await fetcher.fetch(ruled(fetcher, server), before)
        assert fetched is not None
        assert [answer and answer.body for answer in found] == [b"more"]

    with_fetcher(main, rendering, settings(delay=0.15))


def test_a_page_that_is_being_rendered_when_the_crawl_ends_was_not_visited() -> None:
    """Its scripts get no answers any more; that must not look like a fault of the page."""

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        async def rendering(page: Answer, wait: str | None, ask: Ask) -> Answer:
            fetcher.stop()
            assert await ask(f"{page.url}/more") is None
            return msgspec.structs.replace(page, status=Status.BROKEN, fault="no .price")

        fetcher.renderer.rendering = rendering  # type: ignore[union-attr]
        assert await fetcher.fetch(ruled(fetcher, server)) is None

    with_fetcher(main)


def test_a_page_cannot_look_where_only_we_are_let_in() -> None:
    """A script could read what another host answers to our password, and carry it out."""
    found: list[Answer | None] = []

    async def outer(fetcher: PoliteFetcher, server: Server) -> None:
        async with Server({"/secret": reply(b"secret")}) as inside:

            async def rendering(page: Answer, wait: str | None, ask: Ask) -> Answer:
                found.append(await ask(inside.url("/secret")))
                return page

            fetcher.renderer.rendering = rendering  # type: ignore[union-attr]
            await visit(fetcher, server, "/js")
            assert found == [None]
            assert not inside.arrivals

    async def nothing(page: Answer, wait: str | None, ask: Ask) -> Answer:
        return page

    with_fetcher(outer, nothing)
