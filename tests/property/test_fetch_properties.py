"""Laws of fetching that hold for every input."""

import asyncio
import gzip
import zlib
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any
from unittest import mock

import brotli
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import salticus.fetch.robots as rules_module
from salticus.fetch.address import Refused, off_limits
from salticus.fetch.base import Answer
from salticus.fetch.codecs import TooLarge, Undecodable, read
from salticus.fetch.faults import words_for
from salticus.fetch.hosts import HostLimiter, retry_after
from salticus.fetch.http import charset
from salticus.fetch.polite import location
from salticus.fetch.robots import Robots, RobotsRules
from salticus.types import Status

CLOSED = [
    *map(ip_network, ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8")),
    *map(ip_network, ("169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24")),
    *map(ip_network, ("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24")),
    *map(ip_network, ("224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "::/96", "fc00::/7")),
    *map(ip_network, ("fe80::/10", "fec0::/10", "ff00::/8", "2001::/32", "2001:db8::/32")),
    *map(ip_network, ("100::/64", "64:ff9b:1::/48")),
]
CLOSED_V4 = [net for net in CLOSED if isinstance(net, IPv4Network)]


def inside(net: IPv4Network | IPv6Network) -> st.SearchStrategy[str]:
    return st.integers(0, net.num_addresses - 1).map(lambda i: str(net[i]))


closed = st.sampled_from(CLOSED).flatmap(inside)
closed_v4 = st.sampled_from(CLOSED_V4).flatmap(inside).map(IPv4Address)


@given(closed)
def test_every_address_of_a_closed_network_is_off_limits(address: str) -> None:
    assert off_limits(address)


@given(closed_v4, st.integers(0, 2**80 - 1))
def test_a_closed_address_is_closed_in_every_disguise(address: IPv4Address, low: int) -> None:
    v4 = int(address)
    assert off_limits(str(IPv6Address((0xFFFF << 32) | v4))), "mapped"
    assert off_limits(str(IPv6Address((0x64FF9B << 96) | v4))), "NAT64"
    assert off_limits(str(IPv6Address((0x2002 << 112) | (v4 << 80) | low))), "6to4"
    teredo = (0x20010000 << 96) | (v4 << 64) | (low & 0xFFFFFFFF)
    assert off_limits(str(IPv6Address(teredo))), "Teredo server"
    assert off_limits(str(IPv6Address((0x20010000 << 96) | (v4 ^ 0xFFFFFFFF)))), "Teredo client"


@given(st.text())
def test_no_text_is_mistaken_for_a_public_address(text: str) -> None:
    if not off_limits(text):
        assert set(text) <= set("0123456789abcdefABCDEF.:")


class Chunks:
    """A stream cut at given places."""

    def __init__(self, data: bytes, cuts: list[int]) -> None:
        places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        self.chunks = [data[a:b] for a, b in zip(places, places[1:], strict=False)]

    async def readany(self) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""

    def at_eof(self) -> bool:
        return not self.chunks


packers = st.sampled_from(
    [
        (None, bytes),
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstandard.compress),
    ]
)


@given(st.binary(max_size=5000), packers, st.lists(st.integers(0, 10_000)))
def test_bodies_survive_packing_and_cutting(data: bytes, packer: Any, cuts: list[int]) -> None:
    encoding, pack = packer
    stream = Chunks(pack(data), cuts)
    assert asyncio.run(read(stream, encoding, 10_000)) == data


@given(
    st.binary(max_size=2000),
    st.sampled_from([None, "gzip", "deflate", "br", "zstd", "lzma"]),
    st.integers(1, 2000),
    st.lists(st.integers(0, 10_000)),
)
def test_any_bytes_end_in_a_body_or_a_named_fault(
    data: bytes, encoding: str | None, limit: int, cuts: list[int]
) -> None:
    try:
        body = asyncio.run(read(Chunks(data, cuts), encoding, limit))
    except (TooLarge, Undecodable):
        return
    assert len(body) <= limit


lines = st.one_of(
    st.text(max_size=30),
    st.builds(
        "{}: {}".format,
        st.sampled_from(["User-agent", "Disallow", "Allow", "Crawl-delay", "Sitemap", "useragent"]),
        st.one_of(st.sampled_from(["*", "Salticus", "/", "/*a$"]), st.text(max_size=20)),
    ),
)


@given(st.lists(lines), st.sampled_from(["\n", "\r\n", "\r", "\u2028"]), st.text(max_size=20))
def test_any_robots_file_gives_an_answer(rules: list[str], end: str, path: str) -> None:
    robots = Robots()
    body = end.join(rules).encode("utf-8", "surrogatepass")
    robots.learn(Answer("", Status.OK, 0.0, code=200, body=body), 0.0)
    refusal = robots.refusal(f"http://a.org/{path}", 1.0)
    assert refusal is None or refusal[0] is Status.DISALLOWED
    assert 0.0 <= robots.delay() <= 86_400.0
    if robots.free_until:
        assert RobotsRules(robots.text).allow(f"http://a.org/{path}")


stars = st.text(st.sampled_from("ab*$/%"), max_size=12)


@given(st.lists(st.tuples(st.booleans(), stars), max_size=8), stars, st.integers(0, 6))
def test_fewer_wildcards_never_allow_more(
    rules: list[tuple[bool, str]], path: str, wildcards: int
) -> None:
    """Cut short, the rules allow no page that they would disallow in full."""
    named = (f"{'Allow' if allow else 'Disallow'}: /{rule}" for allow, rule in rules)
    text = "\n".join(["User-agent: *", *named])
    url = f"http://a.org/{path}"
    with mock.patch.object(rules_module, "_WILDCARDS", wildcards):
        allowed = rules_module.RobotsRules(text).allow(url)
    if allowed:
        assert rules_module.RobotsRules(text).allow(url)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_robots_file(body: bytes) -> None:
    robots = Robots()
    robots.learn(Answer("", Status.OK, 0.0, code=200, body=body), 0.0)
    refusal = robots.refusal("http://a.org/x", 1.0)
    assert refusal is None or refusal[0] is Status.DISALLOWED


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_fault_is_one_printable_line(one: str, two: str) -> None:
    for error in (OSError(one), Refused(one, two), ValueError(one + two)):
        words = words_for(error)
        assert len(words) <= 300
        assert words.isprintable()


@given(st.text(), st.floats(0, 4e9))
def test_any_retry_after_is_a_pause_of_at_most_a_day(text: str, now: float) -> None:
    seconds = retry_after(Answer("", Status.OK, now, code=429, retry_after=text))
    assert 0.0 <= seconds <= 86_400.0


@given(st.text())
def test_any_content_type_has_a_charset_or_none(text: str) -> None:
    found = charset(text)
    assert found is None or found == found.lower().strip()


@given(st.text())
def test_any_location_leads_to_the_web_or_nowhere(text: str) -> None:
    found = location("http://a.org/x", text)
    if found is not None:
        url, host = found
        assert url.startswith(("http://", "https://"))
        assert url.partition("://")[2].startswith(host)


answers = st.builds(
    lambda code, status, after: (code, status, after),
    st.sampled_from([0, 200, 304, 404, 429, 500, 503]),
    st.sampled_from([Status.OK, Status.NETWORK, Status.TIMEOUT, Status.BROKEN]),
    st.sampled_from([None, "0", "3", "rubbish"]),
)
steps = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 5), answers), min_size=2, max_size=30)


@given(steps, st.floats(0.01, 5), st.integers(1, 4))
def test_requests_never_start_before_answer_and_delay(
    visits: list[tuple[float, float, tuple[Any, ...]]], delay: float, concurrency: int
) -> None:
    host = HostLimiter("a.org", delay=delay, concurrency=concurrency, start=0.0)
    now, answered = 0.0, 0.0
    for wait, took, (code, status, after) in visits:
        now += wait
        if not host.enter(now):
            continue
        assert now >= answered + delay
        answered = now = now + took
        reply = Answer("", status, answered, code=code, retry_after=after)
        host.judge(reply, seed=1)
        host.leave(answered)
        pause = retry_after(reply) if code >= 300 else 0.0
        assert host.next_at >= answered + max(delay, pause)
