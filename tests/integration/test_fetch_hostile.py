"""Servers that mean ill: each exchange ends soon, in a status and in words that name the fault."""

import asyncio

import msgspec
import pytest
from effort import within

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import (
    BODY,
    LIMIT,
    TIMEOUT_S,
    Route,
    Server,
    breaking_off,
    chatter,
    hang,
    reply,
    reset,
    then,
)
from salticus.clock import SystemClock, wall_time
from salticus.config import Span
from salticus.fetch.base import Answer
from salticus.fetch.http import HttpEngine
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Fetched, Status

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MOVED = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "


async def drip(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
    """A whole answer, but slower than anyone waits."""
    for byte in OK + b"X: " + b"y" * 1000:
        writer.write(bytes([byte]))
        await asyncio.sleep(TIMEOUT_S / 30)
    return b""


async def endless_header(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
    writer.write(OK + b"X: ")
    for _ in range(1000):
        writer.write(b"x" * 10_000)
        await writer.drain()
    return b""


async def tiny_chunks(headers: dict[str, str], writer: asyncio.StreamWriter) -> bytes:
    writer.write(CHUNKED)
    for _ in range(1000):
        writer.write(b"1\r\nx\r\n" * 500)
        await writer.drain()
    return b""


TROUBLE: dict[str, tuple[Route, Status, str]] = {
    "many headers": (
        breaking_off(OK + b"".join(b"X-%d: y\r\n" % i for i in range(10_000)) + b"\r\n"),
        Status.NETWORK,
        "too many headers",
    ),
    "long header": (breaking_off(reply(X="x" * 1_000_000)), Status.NETWORK, "too long"),
    "long name": (breaking_off(OK + b"x" * 1_000_000), Status.NETWORK, "too long"),
    "long status": (breaking_off(b"HTTP/1.1 200 " + b"x" * 10**6), Status.NETWORK, "too long"),
    "endless header": (endless_header, Status.NETWORK, "too long"),
    "interim": (chatter, Status.NETWORK, "interim answers"),
    "chunk of exabytes": (breaking_off(CHUNKED + b"f" * 16 + b"\r\nx"), Status.BROKEN, "broke off"),
    "chunk overflow": (breaking_off(CHUNKED + b"f" * 99 + b"\r\nx"), Status.NETWORK, "not valid"),
    "negative chunk": (breaking_off(CHUNKED + b"-5\r\nabcde\r\n"), Status.NETWORK, "chunk size"),
    "long extension": (
        breaking_off(CHUNKED + b"5;" + b"x" * 10**6),
        Status.BROKEN,
        "not valid HTTP",
    ),
    "trailers": (
        breaking_off(CHUNKED + b"0\r\n" + b"A: b\r\n" * 10_000 + b"\r\n"),
        Status.NETWORK,
        "too many headers",
    ),
    "tiny chunks": (tiny_chunks, Status.TOO_LARGE, "larger than"),
    "negative length": (breaking_off(reply(Content_Length="-5")), Status.NETWORK, "Content-Length"),
    "two lengths": (
        breaking_off(reply(Content_Length="5\r\nContent-Length: 6")),
        Status.NETWORK,
        "Duplicate Content-Length",
    ),
    "length and chunks": (
        breaking_off(reply(Transfer_Encoding="chunked")),
        Status.NETWORK,
        "Content-Length",
    ),
    "length of digits": (breaking_off(reply(Content_Length="9" * 50)), Status.NETWORK, "overflow"),
    "huge length": (breaking_off(reply(Content_Length="9" * 15)), Status.TOO_LARGE, "larger than"),
    "length too small": (
        breaking_off(reply(BODY, Content_Length="9")),
        Status.NETWORK,
        "after its",
    ),
    "length too big": (
        breaking_off(reply(BODY, Content_Length="9000")),
        Status.BROKEN,
        "broke off",
    ),
    "cut body": (breaking_off(reply(BODY)[:-9]), Status.BROKEN, "broke off"),
    "garbage": (breaking_off(b"\0\1\2\r\n\r\n"), Status.NETWORK, "does not begin like"),
    "no status": (breaking_off(b"<html>hi</html>\r\n\r\n"), Status.NETWORK, "does not begin like"),
    "other protocol": (breaking_off(b"SSH-2.0-x\r\n"), Status.NETWORK, "does not begin like"),
    "wild status": (breaking_off(b"HTTP/1.1 99999 X\r\n\r\n"), Status.NETWORK, "not begin like"),
    "stray bytes in a name": (
        breaking_off(OK + b"X\xff\0: 1\r\n\r\n"),
        Status.NETWORK,
        "not valid HTTP",
    ),
    "null in a location": (breaking_off(MOVED + b"/a\0b\r\n\r\n"), Status.NETWORK, "not valid"),
    "return in a location": (
        breaking_off(MOVED + b"/a\rX: b\r\n\r\n"),
        Status.NETWORK,
        "not valid",
    ),
    "encoding": (reply(BODY, Content_Encoding="gzip, br"), Status.BROKEN, "'gzip, br'"),
    "unknown encoding": (reply(BODY, Content_Encoding="lzma"), Status.BROKEN, "'lzma'"),
    "drip": (drip, Status.TIMEOUT, "time limit"),
    "hang at once": (hang, Status.TIMEOUT, "no complete answer"),
    "hang after the status": (then(OK, hang), Status.TIMEOUT, "no complete answer"),
    "hang in a header": (then(OK + b"Content-Le", hang), Status.TIMEOUT, "no complete answer"),
    "hang in the body": (then(reply(BODY)[:300], hang), Status.TIMEOUT, "the answer began"),
    "hang in a chunk": (then(CHUNKED + b"9\r\nab", hang), Status.TIMEOUT, "the answer began"),
    "reset at once": (reset, Status.NETWORK, "closed the connection"),
    "reset after the status": (then(OK, reset), Status.NETWORK, "closed the connection"),
    "reset in a header": (then(OK + b"Conte", reset), Status.NETWORK, "closed the connection"),
    "reset in the body": (then(reply(BODY)[:300], reset), Status.BROKEN, "broke off"),
    "reset in a chunk": (then(CHUNKED + b"9\r\nab", reset), Status.BROKEN, "broke off"),
}


async def exchange(route: Route, patience_s: float = 60.0) -> Answer:
    fetch = msgspec.structs.replace(settings().fetch, timeout=Span(seconds=patience_s))
    async with Server({"/p": route}) as server:
        engine = HttpEngine(fetch, SystemClock())
        try:
            return await asyncio.wait_for(engine.get(server.url("/p"), {}), timeout=600)
        finally:
            await engine.close()


def test_every_trouble_ends_in_its_status_and_its_words() -> None:
    async def main() -> dict[str, Answer]:
        """What has to wait comes last and alone, so that its answers begin in time."""
        answers: dict[str, Answer] = {}
        for waits in (False, True):
            some = [
                name for name, (_, end, _) in TROUBLE.items() if waits == (end is Status.TIMEOUT)
            ]
            patience = 3 * TIMEOUT_S if waits else 60.0
            exchanges = (exchange(TROUBLE[name][0], patience) for name in some)
            answers |= zip(some, await asyncio.gather(*exchanges), strict=True)
        return answers

    answers = asyncio.run(main())
    for name, (_, status, words) in TROUBLE.items():
        answer = answers[name]
        shown = f"{name}: {answer.status.label}, {answer.fault}"
        assert answer.status is status, shown
        assert words in (answer.fault or ""), shown
        assert (answer.fault or "").isprintable(), shown
        assert len(answer.fault or "") <= 300, shown
        assert len(answer.body) <= LIMIT


@pytest.mark.parametrize("name", ["interim", "endless header", "many headers", "trailers"])
def test_floods_are_cut_off_at_once(name: str) -> None:
    with within(25):
        asyncio.run(exchange(TROUBLE[name][0]))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"Location: /\xff\xfe%20\r\n", "/%FF%FE%20"),
        ("Location: /ü\r\n".encode(), "/%C3%BC"),
        ("Location: /ü\r\n".encode("latin-1"), "/%FC"),
        (b"Location: /a\r\n b\r\n", "/a b"),
        (b"", None),
    ],
)
def test_a_location_is_text_or_absent(head: bytes, expected: str | None) -> None:
    route = breaking_off(b"HTTP/1.1 302 F\r\nContent-Length: 0\r\n" + head + b"\r\n")
    answer = asyncio.run(exchange(route))
    assert (answer.status, answer.location) == (Status.OK, expected)


def test_stray_bytes_in_other_headers_do_no_harm() -> None:
    page = reply(b"x", ETag="?", Last_Modified="?", Content_Type="?", Retry_After="?")
    answer = asyncio.run(exchange(page.replace(b"?", b"\xff\xfe\x80")))
    assert (answer.status, answer.body) == (Status.OK, b"x")
    assert answer.etag is answer.last_modified is answer.retry_after is None


# ----------------------------------------------------------------------------------- whole visits


def visit(routes: dict[str, Route], path: str = "/p") -> tuple[Fetched, PoliteFetcher, Server]:
    async def main() -> tuple[Fetched, PoliteFetcher, Server]:
        async with Server(routes) as server:
            config = settings()
            fetcher = PoliteFetcher(HttpEngine(config.fetch, SystemClock()), config, SystemClock())
            try:
                fetched = await asyncio.wait_for(fetcher.fetch(server.target(path)), timeout=600)
            finally:
                await fetcher.close()
            assert fetched is not None
            return fetched, fetcher, server

    return asyncio.run(main())


def test_a_chain_of_fifty_redirects_is_not_followed_to_its_end() -> None:
    chain: dict[str, Route] = {
        f"/{i}": reply(status="301 Moved", Location=f"/{i + 1}") for i in range(50)
    }
    fetched, _, server = visit(chain, "/0")
    assert (fetched.status, fetched.fault) == (Status.REDIRECTS, "more than 5 redirects")
    assert fetched.moved is None
    assert len(server.arrivals) == 7


@pytest.mark.parametrize(
    "place", [b"/x\x01y", b"http://", b"//", b"javascript:x", b"http://a b/", b""]
)
def test_a_location_that_is_none_is_named(place: bytes) -> None:
    fetched, _, _ = visit({"/p": MOVED + place + b"\r\n\r\n"})
    if fetched.status is Status.NETWORK:  # the parser took it for an attack
        assert "not valid HTTP" in (fetched.fault or "")
        return
    assert fetched.status is Status.REDIRECTS, fetched.fault
    assert "redirect" in (fetched.fault or "")


def test_a_redirect_to_a_disallowed_path_is_named_as_one() -> None:
    rules = reply(b"User-agent: *\nDisallow: /no\n")
    move = reply(status="301 Moved", Location="/no/1")
    fetched, _, server = visit({"/robots.txt": rules, "/p": move, "/no/1": reply(BODY)})
    assert fetched.status is Status.DISALLOWED
    expected = f"robots.txt disallows this path (after a redirect to {server.url('/no/1')})"
    assert fetched.fault == expected
    assert "/no/1" not in [path for path, _ in server.arrivals]


@pytest.mark.parametrize(
    ("after", "least", "most"),
    [
        ("31536000", 86_390, 86_400),
        ("99999999999999999999999", 86_390, 86_400),
        ("-1", 0, 10),
        ("soon", 0, 10),
        ("Sat, 01 Jan 2095 00:00:00 GMT", 86_390, 86_400),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0, 10),
    ],
)
def test_any_retry_after_is_a_pause_of_at_most_a_day(after: str, least: int, most: int) -> None:
    fetched, fetcher, server = visit({"/p": reply(status="503 Wait", Retry_After=after)})
    assert fetched.status is Status.BUSY
    assert least <= fetcher.host(server.host).next_at - wall_time() <= most


@pytest.mark.parametrize("date", ["Fri, 31 Dec 9999 23:59:59 GMT", "yesterday", "0", "x" * 9000])
def test_a_skewed_date_is_kept_as_it_was_told(date: str) -> None:
    """It is only ever sent back to the server that told it."""
    fetched, _, _ = visit({"/p": reply(BODY, Last_Modified=date, Date=date)})
    assert fetched.status is Status.OK
    assert fetched.last_modified == date


def test_a_second_answer_that_nobody_asked_for_is_not_taken_for_the_next() -> None:
    async def main() -> None:
        async with Server({"/p": reply(b"x") + reply(b"evil"), "/q": reply(b"q")}) as server:
            engine = HttpEngine(settings().fetch, SystemClock())
            first = await engine.get(server.url("/p"), {})
            second = await engine.get(server.url("/q"), {})
            await engine.close()
            assert (first.body or b"x", second.body or b"q") == (b"x", b"q")

    asyncio.run(main())
