"""Identities against real servers and proxies: each host gets its own, and no other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from proxies import Names, Proxy

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Server, reply
from salticus.clock import SystemClock
from salticus.config import Config, Host
from salticus.fetch.http import HttpEngine
from salticus.fetch.identity import Identities
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Fetched, Status

Headers = dict[str, str]
PAGE = reply(b"<html>page</html>", Content_Type="text/html")


def note(seen: list[Headers], answer: bytes = PAGE) -> Callable[..., bytes]:
    """A route that notes the headers it was asked with."""

    def route(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
        seen.append(headers)
        return answer

    return route


def with_fetcher(
    hosts: Callable[[Server], tuple[Host, ...]],
    main: Callable[[PoliteFetcher, Server], Awaitable[None]],
) -> None:
    async def outer() -> None:
        async with Server({"/p": PAGE}) as server:
            config = msgspec.structs.replace(settings(timeout=60.0), hosts=hosts(server))
            fetcher = fetcher_of(config)
            try:
                await asyncio.wait_for(main(fetcher, server), timeout=600)
            finally:
                await fetcher.close()

    asyncio.run(outer())


def engine_of(config: Config) -> HttpEngine:
    identities = Identities(config)
    return HttpEngine(config.fetch, SystemClock(), identities=identities, resolver=Names())


def fetcher_of(config: Config) -> PoliteFetcher:
    return PoliteFetcher(engine_of(config), config, SystemClock())


async def visit(fetcher: PoliteFetcher, server: Server, path: str) -> Fetched:
    fetched = await fetcher.fetch(server.target(path))
    assert fetched is not None
    return fetched


def full(server: Server, **more: object) -> tuple[Host, ...]:
    given = {"headers": {"X-Key": "hush-1"}, "cookies": {"c": "hush-2"}, "auth": "me:hush-3"}
    return (Host(server.host, **{**given, **more}),)  # type: ignore[arg-type]


def test_a_host_gets_its_headers_cookies_and_password_robots_included() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        seen: list[Headers] = []
        server.routes |= {"/p": note(seen), "/robots.txt": note(seen, reply(status="404 None"))}
        assert (await visit(fetcher, server, "/p")).status is Status.OK
        assert len(seen) == 2
        for headers in seen:
            assert headers["x-key"] == "hush-1"
            assert headers["cookie"] == "c=hush-2"
            assert headers["authorization"].startswith("basic ")
            assert headers["user-agent"].startswith("salticus/")

    with_fetcher(full, main)


def test_a_redirect_takes_nothing_along_to_another_host() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        seen: list[Headers] = []
        back: list[Headers] = []
        async with Server({"/there": note(seen)}) as other:
            away = reply(status="302 F", Location=other.url("/there"), Set_Cookie="kept=hush-4")
            server.routes |= {"/r": away, "/back": note(back)}
            assert (await visit(fetcher, server, "/r")).status is Status.OK
            other.routes["/there"] = note(
                seen, reply(status="302 F", Location=server.url("/back"), Set_Cookie="other=1")
            )
            assert (await visit(fetcher, server, "/r")).url == server.url("/back")
        assert len(seen) == 2
        for headers in seen:
            assert not {"x-key", "cookie", "authorization"} & set(headers)
        assert set(back[0]["cookie"].split("; ")) == {"c=hush-2", "kept=hush-4"}

    with_fetcher(lambda server: full(server, keep_cookies=True), main)


def test_a_password_of_the_settings_outweighs_one_in_the_url() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        seen: list[Headers] = []
        server.routes["/p"] = note(seen)
        url = server.url("/p").replace("://", "://you:pw@")
        target = msgspec.structs.replace(server.target("/p"), url=url)
        fetched = await fetcher.fetch(target)
        assert fetched is not None
        assert fetched.status is Status.OK
        assert seen[0]["authorization"] == "basic bwu6ahvzac0z"

    with_fetcher(full, main)


def test_nothing_secret_is_logged_or_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        bad = (
            b"",
            reply(status="401 Who"),
            b"nonsense\r\n\r\n",
            reply(status="302 F", Location="["),
        )
        for answer in bad:
            server.routes["/p"] = lambda headers, writer, answer=answer: answer
            fetched = await visit(fetcher, server, "/p")
            assert fetched.status is not Status.OK
            assert "hush" not in repr(fetched)

    with_fetcher(full, main)
    assert "hush" not in caplog.text


# ------------------------------------------------------------------------------- kept cookies


def test_what_a_host_sets_is_sent_back_to_it_alone() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        seen: list[Headers] = []
        others: list[Headers] = []
        server.routes |= {
            "/p": note(seen, reply(b"x", Set_Cookie="id=1; Path=/; HttpOnly")),
            "/away": note(seen, reply(b"x", Set_Cookie="id=; Max-Age=0")),
        }
        async with Server({"/q": note(others)}) as other:
            await visit(fetcher, server, "/p")
            await visit(fetcher, other, "/q")
            await visit(fetcher, server, "/p")
            await visit(fetcher, server, "/away")
            await visit(fetcher, server, "/p")
        sent = [headers.get("cookie") for headers in seen]
        assert sent == [None, "id=1", "id=1", None], "what expires is forgotten"
        assert "cookie" not in others[0]

    with_fetcher(lambda server: (Host("*", keep_cookies=True),), main)


def test_without_keep_cookies_nothing_is_sent_back() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        seen: list[Headers] = []
        server.routes["/p"] = note(seen, reply(b"x", Set_Cookie="id=1"))
        for _ in range(2):
            await visit(fetcher, server, "/p")
        assert ["cookie" in headers for headers in seen] == [False, False]

    with_fetcher(lambda server: (Host("*", headers={"X": "1"}),), main)


def test_a_cookie_wall_is_passed_with_kept_cookies_and_explained_without() -> None:
    def wall(headers: Headers, writer: asyncio.StreamWriter) -> bytes:
        if "seen=1" in headers.get("cookie", ""):
            return PAGE
        return reply(status="301 Again", Location="/wall", Set_Cookie="seen=1")

    async def passes(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/wall"] = wall
        fetched = await visit(fetcher, server, "/wall")
        assert fetched.status is Status.OK
        assert fetched.moved is None, "a page does not move to itself"

    async def fails(fetcher: PoliteFetcher, server: Server) -> None:
        server.routes["/wall"] = wall
        fetched = await visit(fetcher, server, "/wall")
        assert fetched.status is Status.REDIRECTS
        assert "keep_cookies may help" in (fetched.fault or "")

    with_fetcher(lambda server: (Host("*", keep_cookies=True),), passes)
    with_fetcher(lambda server: (), fails)


def test_hostile_cookies_are_bounded() -> None:
    async def main(fetcher: PoliteFetcher, server: Server) -> None:
        seen: list[Headers] = []
        flood = b"".join(b"Set-Cookie: c%d=%s\r\n" % (i, b"x" * 3000) for i in range(100))
        odd = b"Set-Cookie: \xff\xfe\x01=;;;==\r\nSet-Cookie: =\r\nSet-Cookie: a=b\x00c\r\n"
        page = PAGE.replace(b"Content-Type", flood + odd.replace(b"\x00", b"").replace(b"\x01", b"")
                            + b"Content-Type")  # fmt: skip
        page = page.replace(b"Content-Type", b"Set-Cookie: latin=\xfc\r\nContent-Type")
        server.routes["/p"] = note(seen, page)
        for _ in range(4):
            assert (await visit(fetcher, server, "/p")).status is Status.OK
        assert all(len(headers.get("cookie", "")) < 20_000 for headers in seen)

    with_fetcher(lambda server: (Host("*", keep_cookies=True),), main)


def test_a_cookie_file_lies_beside_the_settings(tmp_path: Path) -> None:
    line = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tabc\n"
    (tmp_path / "c.txt").write_text("# Netscape HTTP Cookie File\n" + line)

    async def main() -> None:
        seen: list[Headers] = []
        async with Server({"/p": note(seen)}) as server:
            hosts = (Host("127.0.0.1", cookie_file="c.txt"),)
            config = msgspec.structs.replace(
                settings(timeout=60.0), hosts=hosts, folder=str(tmp_path)
            )
            fetcher = fetcher_of(config)
            await visit(fetcher, server, "/p")
            await fetcher.close()
        assert seen[0]["cookie"] == "session=abc"

    asyncio.run(main())


# -------------------------------------------------------------------------------------- proxies


def through(proxy: Proxy, user: str = "", **more: object) -> Config:
    host = Host("*", proxy=f"http://{user}127.0.0.1:{proxy.port}", **more)  # type: ignore[arg-type]
    config = settings(allow=("shop.test",), timeout=60.0)
    return msgspec.structs.replace(config, hosts=(host,))


def test_a_plain_page_is_asked_of_the_proxy() -> None:
    async def main() -> None:
        async with Proxy(PAGE) as proxy:
            config = through(proxy, "me:hush@", headers={"X-Key": "1"})
            engine = engine_of(config)
            for _ in range(2):
                answer = await engine.get("http://shop.test/p?q=1", {})
                assert (answer.status, answer.code) == (Status.OK, 200), answer.fault
            await engine.close()
        head = proxy.heads[0]
        assert head.startswith("GET http://shop.test/p?q=1 HTTP/1.1\r\nHost: shop.test\r\n")
        assert "Proxy-Authorization: Basic bWU6aHVzaA==" in head
        assert "X-Key: 1" in head

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (reply(status="407 Who"), Status.BLOCKED, "the proxy answered 407: it wants a user"),
        (reply(status="403 No"), Status.BLOCKED, "the proxy answered 403: it does not let us"),
        (reply(status="502 Bad"), Status.NETWORK, "the proxy answered 502"),
        (b"nonsense\r\n\r\n", Status.NETWORK, "the answer is not valid HTTP"),
    ],
)
def test_a_proxy_that_makes_no_tunnel_is_named(answer: bytes, status: Status, words: str) -> None:
    async def main() -> None:
        async with Proxy(answer) as proxy:
            config = through(proxy, "me:hush@", headers={"X-Key": "hush"})
            engine = engine_of(config)
            found = await engine.get("https://shop.test/p", {})
            assert (found.status, (found.fault or "")[: len(words)]) == (status, words), found.fault
            assert "hush" not in repr(found)
            await engine.close()
        head = proxy.heads[0]
        assert head.startswith("CONNECT shop.test:443 HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic bWU6aHVzaA==" in head
        assert "X-Key" not in head, "the proxy is not told what is for the host"

    asyncio.run(main())


def test_a_proxy_that_is_not_there_is_named_without_its_password() -> None:
    async def main() -> None:
        async with Proxy() as proxy:
            config = through(proxy, "me:hush@")
        engine = engine_of(config)
        for scheme in ("http", "https"):
            answer = await engine.get(f"{scheme}://shop.test/p", {})
            assert answer.status is Status.NETWORK
            assert (answer.fault or "").startswith("cannot connect to the proxy 127.0.0.1: ")
            assert "hush" not in repr(answer)
        await engine.close()

    asyncio.run(main())


def test_a_proxy_that_says_nothing_is_waited_for_no_longer_than_any_host() -> None:
    async def main() -> None:
        async with Proxy() as proxy:
            config = through(proxy)
            fetch = settings(allow=("shop.test",)).fetch
            engine = engine_of(msgspec.structs.replace(config, fetch=fetch))
            for scheme in ("http", "https"):
                answer = await asyncio.wait_for(engine.get(f"{scheme}://shop.test/p", {}), 600)
                assert answer.status is Status.TIMEOUT, answer.fault
            await engine.close()

    asyncio.run(main())


def test_the_page_of_a_blocking_proxy_ends_as_blocked_at_robots_already() -> None:
    async def main() -> None:
        async with Proxy(reply(status="407 Who")) as proxy:
            config = through(proxy)
            fetcher = fetcher_of(config)
            target = Server().target("/p")
            target = msgspec.structs.replace(target, url="https://shop.test/p", host="shop.test")
            fetched = await fetcher.fetch(target)
            assert fetched is not None
            assert fetched.status is Status.BLOCKED
            assert "the proxy answered 407" in (fetched.fault or "")
            await fetcher.close()

    asyncio.run(main())
