"""Every way to a private address is refused. Only loopback servers are ever connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from aiohttp.abc import AbstractResolver
from proxies import Names

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Server, reply
from salticus.clock import SystemClock
from salticus.config import Config, Host
from salticus.fetch import address
from salticus.fetch.address import ThreadsResolver
from salticus.fetch.http import HttpEngine
from salticus.fetch.identity import Identities
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Fetched, Status

PAGE = reply(b"<html>secret</html>", Content_Type="text/html")
NOWHERE = settings(allow=(), timeout=60.0)

LITERALS = [
    "127.0.0.1",
    "127.1.2.3",
    "10.0.0.1",
    "172.31.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.127.255.254",
    "192.0.0.8",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "0.0.0.0",
    "0.1.2.3",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7F000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "0x7f.1",
    "0x7f.0.0.0x1",
    "0x",
    "127.1",
    "127.0.1",
    "0",
    "1.0x",
    "127.0.0.1.",
    "127.0.0.1..",
    "127.1.",
    "0x7f000001.",
    "00000177.1",
    "4294967297",
    "127.0.0.257",
    "256.256.256.256",
    "99999999999999999999",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "loc%61lhost",
    "127.0.0.1%00.example.org",
    "%e2%91%a0",
    "１２７．０．０．１",
    "127。0。0。1",
    "127｡0｡0｡1",
    "①②⑦.⓪.⓪.①",
    "²130706433",
    "0ｘ7f.1",
]
IN_BRACKETS = [
    "::1",
    "0:0:0:0:0:0:0:1",
    "::",
    "::127.0.0.1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::FFFF:7F00:0001",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:0a00:0001::1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "2001:470::5efe:7f00:1",
    "2001:470::200:5efe:10.0.0.1",
    "fe80::1",
    "fe80::1%eth0",
    "fe80::1%25eth0",
    "2606:4700::1111%eth0",
    "fc00::1",
    "fd12:3456:789a::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "100::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "4000::1",
]
NAMES = ["localhost", "LOCALHOST", "localhost.", "a.localhost", "www.b.Localhost."]


def table(**names: list[list[str]]) -> Names:
    """A resolver; in names an underscore stands for a dot."""
    return Names({name.replace("_", "."): answers for name, answers in names.items()})


Main = Callable[[HttpEngine, Server], Awaitable[None]]


def with_engine(
    main: Main, config: Config = NOWHERE, resolver: AbstractResolver | None = None
) -> list[str]:
    """Run a test with an engine and a server; what was asked of the server."""

    async def outer() -> list[str]:
        async with Server({"/": PAGE, "/p": PAGE}) as server:
            identities = Identities(config)
            engine = HttpEngine(
                config.fetch, SystemClock(), resolver=resolver, identities=identities
            )
            try:
                await asyncio.wait_for(main(engine, server), timeout=600)
            finally:
                await engine.close()
            return [path for path, _ in server.arrivals]

    return asyncio.run(outer())


async def refused(engine: HttpEngine, url: str) -> None:
    answer = await engine.get(url, {})
    assert answer.status is Status.UNSAFE, f"{url}: {answer.status.label}, {answer.fault}"
    assert "off limits" in (answer.fault or ""), answer.fault
    assert answer.body == b""


@pytest.fixture
def loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 stands for the public web, so that it can be reached; 127.0.0.66 stays private."""
    monkeypatch.setattr(address, "off_limits", lambda text: text != "127.0.0.1")


# ------------------------------------------------------------------------------- in the URL itself


def test_no_spelling_of_an_address_is_asked() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        for host in [*LITERALS, *(f"[{one}]" for one in IN_BRACKETS)]:
            for scheme in ("http", "https"):
                await refused(engine, f"{scheme}://{host}:{server.port}/")

    names = table()
    assert with_engine(main, resolver=names) == []
    assert not [name for name in names.asked if name.isascii()], "no literal reaches a resolver"


def test_no_spelling_of_an_address_is_asked_by_way_of_the_system_resolver() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        for host in [*LITERALS, *(f"[{one}]" for one in IN_BRACKETS)]:
            await refused(engine, f"http://{host}:{server.port}/")

    assert with_engine(main) == []


def test_local_names_are_refused_without_being_looked_up() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        for host in NAMES:
            await refused(engine, f"http://{host}:{server.port}/")

    names = table()
    assert with_engine(main, resolver=names) == []
    assert names.asked == []


def test_userinfo_does_not_hide_the_host() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        there = f"127.0.0.1:{server.port}"
        for before in ("example.org", "example.org:80", "example.org%2f", "8.8.8.8", "a:b%40c"):
            await refused(engine, f"http://{before}@{there}/")
        for url in (f"http://example.org\\@{there}/", f"http://{there}\\@example.org/"):
            answer = await engine.get(url, {})
            assert answer.status in (Status.UNSAFE, Status.NETWORK), f"{url}: {answer.fault}"

    assert with_engine(main, resolver=table()) == []


# ------------------------------------------------------------------------------ behind a name


@pytest.mark.parametrize(
    "found",
    [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fe80::1%2",
        "fc00::1",
        "2001:470::5efe:7f00:1",
    ],
)
def test_a_name_that_leads_to_a_private_address_is_refused(found: str) -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        await refused(engine, f"http://evil.test:{server.port}/")
        await refused(engine, f"https://evil.test:{server.port}/")

    assert with_engine(main, resolver=table(evil_test=[[found]])) == []


def test_a_name_with_no_address_at_all_is_refused() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        await refused(engine, f"http://empty.test:{server.port}/")

    assert with_engine(main, resolver=table(empty_test=[[]])) == []


@pytest.mark.usefixtures("loopback_is_public")
def test_of_several_addresses_only_public_ones_are_used() -> None:
    """The private one comes first and would answer: a server listens there too."""

    async def main(engine: HttpEngine, server: Server) -> None:
        peers: list[str] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peers.append("private")
            writer.close()

        private = await asyncio.start_server(serve, "127.0.0.66", server.port)
        async with private:
            for _ in range(3):
                answer = await engine.get(f"http://mixed.test:{server.port}/", {})
                assert answer.status is Status.OK, answer.fault
        assert peers == []

    mixed = table(mixed_test=[["127.0.0.66", "127.0.0.1", "127.0.0.66"]])
    assert with_engine(main, resolver=mixed) == ["/"] * 3


@pytest.mark.usefixtures("loopback_is_public")
def test_a_name_is_judged_where_it_is_connected_to() -> None:
    """One lookup serves both: a second one that answers differently is never made."""

    async def main(engine: HttpEngine, server: Server) -> None:
        answer = await engine.get(f"http://rebind.test:{server.port}/", {})
        assert answer.status is Status.OK
        assert names.asked == ["rebind.test"], "the judged address is the one connected to"

    names = table(rebind_test=[["127.0.0.1"], ["127.0.0.66"]])
    assert with_engine(main, resolver=names) == ["/"]


@pytest.mark.usefixtures("loopback_is_public")
def test_a_name_that_moves_to_a_private_address_is_judged_again() -> None:
    async def main(engine: HttpEngine, server: Server) -> None:
        answer = await engine.get(f"http://rebind.test:{server.port}/", {})
        assert answer.status is Status.OK
        await engine.close()  # forgets addresses, as time would
        await refused(engine, f"http://rebind.test:{server.port}/")

    names = table(rebind_test=[["127.0.0.1"], ["127.0.0.66"]])
    assert with_engine(main, resolver=names) == ["/"]


def test_the_system_resolver_is_judged_too() -> None:
    """The whole path: our threads, the judgement, the connector."""

    def lookup(host: str, port: int, **_: object) -> list[object]:
        six = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", port, 0, 2))
        four = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
        return [six, four]

    async def main(engine: HttpEngine, server: Server) -> None:
        await refused(engine, f"http://evil.test:{server.port}/")

    assert with_engine(main, resolver=ThreadsResolver(2, lookup)) == []


# --------------------------------------------------------------------------------- by redirect


def visits(config: Config, resolver: AbstractResolver, *locations: str) -> list[Fetched]:
    """Visit a page that redirects to each location in turn, `{port}` filled in.

    The page is on an allowed host, the locations lead to another server on the same machine.
    """

    async def outer() -> list[Fetched]:
        async with Server() as server, Server({"/": PAGE, "/p": PAGE}) as private:
            found = []
            for told in locations:
                url = told.format(port=private.port).encode()
                server.routes["/r"] = reply(status="302 Found", Location="?").replace(b"?", url)
                found.append(await visit(config, resolver, server, "/r"))
            assert private.arrivals == [], "nothing may arrive there"
            return found

    return asyncio.run(outer())


async def visit(config: Config, resolver: AbstractResolver, server: Server, path: str) -> Fetched:
    allow = (*config.fetch.allow_private, server.host)
    fetch = msgspec.structs.replace(config.fetch, allow_private=allow)
    clock = SystemClock()
    engine = HttpEngine(fetch, clock, resolver=resolver)
    fetcher = PoliteFetcher(engine, msgspec.structs.replace(config, fetch=fetch), clock)
    try:
        fetched = await asyncio.wait_for(fetcher.fetch(server.target(path)), timeout=600)
    finally:
        await fetcher.close()
    assert fetched is not None
    return fetched


def test_no_redirect_leads_to_a_private_address() -> None:
    ways = [
        "http://127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f.1:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:7f00:1]:{port}/",
        "http://evil.test:{port}/",
        "//evil.test:{port}/p",
        "http://example.org@127.0.0.1:{port}/",
        "http://１２７.0.0.1:{port}/",
        "http://127.0.0.1.:{port}/",
        "https://127.0.0.1:{port}/",
    ]
    names = table(evil_test=[["127.0.0.1"]])
    for way, fetched in zip(ways, visits(NOWHERE, names, *ways), strict=True):
        assert fetched.status is Status.UNSAFE, f"{way}: {fetched.status.label}, {fetched.fault}"
        assert "after a redirect to http" in (fetched.fault or ""), fetched.fault
        assert fetched.moved is None


def test_no_redirect_leads_out_of_the_web() -> None:
    ways = ["file:///etc/passwd", "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/", "data:x"]
    ways += ["http://127.0.0.1:{port}\\@example.org/", "http://%31%32%37.0.0.1:{port}/"]
    for way, fetched in zip(ways, visits(NOWHERE, table(), *ways), strict=True):
        expected = {Status.REDIRECTS, Status.UNSAFE}
        assert fetched.status in expected, f"{way}: {fetched.status.label}, {fetched.fault}"


def test_robots_that_redirects_to_a_private_address_closes_its_host() -> None:
    async def main() -> None:
        async with Server({"/p": PAGE}) as server, Server({"/": PAGE}) as private:
            server.routes["/robots.txt"] = reply(status="301 M", Location=private.url("/"))
            fetched = await visit(NOWHERE, table(), server, "/p")
            assert fetched.status is Status.NETWORK
            assert "off limits" in (fetched.fault or "")
            assert "after a redirect" in (fetched.fault or "")
            assert [path for path, _ in server.arrivals] == ["/robots.txt"]
            assert private.arrivals == []

    asyncio.run(main())


# ---------------------------------------------------------------------------------- by a proxy


def proxied(server: Server) -> Config:
    hosts = (Host("*", proxy=f"http://127.0.0.1:{server.port}"),)
    return msgspec.structs.replace(NOWHERE, hosts=hosts)


def test_a_proxy_is_asked_for_no_private_target() -> None:
    async def main() -> None:
        async with Server() as proxy:
            config = proxied(proxy)
            names = table(
                evil_test=[["127.0.0.1"]],
                mixed_test=[["8.8.8.8", "127.0.0.1"]],
                fine_test=[["8.8.8.8"]],
            )
            clock, identities = SystemClock(), Identities(config)
            engine = HttpEngine(config.fetch, clock, resolver=names, identities=identities)
            try:
                for host in (
                    "127.0.0.1",
                    "2130706433",
                    "0x7f.1",
                    "[::1]",
                    "evil.test",
                    "mixed.test",
                ):
                    for scheme in ("http", "https"):
                        await refused(engine, f"{scheme}://{host}:1/")
                await refused(engine, f"http://127.0.0.1:{proxy.port}/")
                assert proxy.arrivals == []
                url = "http://fine.test/p"
                proxy.routes[url] = PAGE
                assert (await engine.get(url, {})).status is Status.OK
                url = "http://unknown.test/p"  # not known here: the proxy may know it
                proxy.routes[url] = PAGE
                assert (await engine.get(url, {})).status is Status.OK
            finally:
                await engine.close()

    asyncio.run(main())


# --------------------------------------------------------------------------------- allowed hosts


def test_allowed_hosts_are_reached_with_the_given_port_only() -> None:
    async def main() -> None:
        async with Server({"/": PAGE}) as one, Server({"/": PAGE}) as two:
            names = table(shop_test=[["127.0.0.1"]], a_inside_test=[["127.0.0.1"]])
            fetch = settings(
                allow=(f"127.0.0.1:{one.port}", f"shop.test:{one.port}", "*.inside.test"),
                timeout=60.0,
            ).fetch
            engine = HttpEngine(fetch, SystemClock(), resolver=names)
            try:
                for host in ("127.0.0.1", "shop.test", "a.inside.test"):
                    answer = await engine.get(f"http://{host}:{one.port}/", {})
                    assert answer.status is Status.OK, f"{host}: {answer.fault}"
                for host in ("127.0.0.1", "shop.test", "localhost", "2130706433", "127.1"):
                    answer = await engine.get(f"http://{host}:{two.port}/", {})
                    assert answer.status in (Status.UNSAFE, Status.NETWORK), host
                    assert answer.code == 0
                for host in ("2130706433", "127.1", "127.0.0.1."):
                    await refused(engine, f"http://{host}:{one.port}/")
                assert (await engine.get(f"http://a.inside.test:{two.port}/", {})).code == 200
            finally:
                await engine.close()
            assert len(one.arrivals) == 3
            assert len(two.arrivals) == 1

    asyncio.run(main())


def test_an_allowed_ipv6_address_is_written_in_brackets_with_its_port() -> None:
    limits = address.Limits(("[::1]:8000", "fd00::7"))
    assert limits.refusal("::1", 8000) is None
    assert limits.refusal("::1", 8001) is not None
    assert limits.refusal("fd00::7", 1) is None
    assert limits.refusal("fd00::8", 1) is not None


def test_an_allowed_host_does_not_open_others_by_redirect() -> None:
    ways = ["http://127.0.0.1:{port}/", "http://localhost:{port}/"]
    for fetched in visits(NOWHERE, table(localhost=[["127.0.0.1"]]), *ways):
        assert fetched.status is Status.UNSAFE
