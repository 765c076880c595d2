"""Addresses that no page can rightly be at."""

import asyncio
import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from salticus.fetch.address import Limits, Refused, SafeResolver, is_literal, off_limits

PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "240.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "192.88.99.1",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "fc00::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "3fff::1",
    "::127.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private(address: str) -> None:
    assert off_limits(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_public(address: str) -> None:
    assert not off_limits(address)


@pytest.mark.parametrize(
    "text", ["", "2130706433", "0x7f.1", "017700000001", "127.1", "a.org", "127.0.0.1."]
)
def test_what_is_no_address_is_off_limits(text: str) -> None:
    assert off_limits(text)


def test_names_are_left_to_the_resolver() -> None:
    assert Limits().refusal("intranet", 80) is None
    assert not is_literal("localhost.example.org")


def test_this_machine_by_its_name_is_refused_unless_it_is_allowed() -> None:
    for name in ("localhost", "a.localhost.", "LOCALHOST"):
        assert Limits().refusal(name, 80) is not None
    assert Limits(("localhost",)).refusal("localhost", 80) is None


def test_a_pattern_exempts_a_host_or_one_port_of_it() -> None:
    limits = Limits(("127.0.0.1:8000", "*.test", "::1"))
    assert limits.refusal("127.0.0.1", 8000) is None
    assert limits.refusal("127.0.0.1", 8001) is not None
    assert limits.refusal("::1", 80) is None
    assert limits.exempt("shop.test", 80)
    assert not limits.exempt("shop.testing", 80)


class Fixed(AbstractResolver):
    """Resolves every name to the same addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.closed = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=a, port=port, family=family, proto=0, flags=0)
            for a in self.addresses
        ]

    async def close(self) -> None:
        self.closed = True


def resolve(inner: Fixed, limits: Limits) -> list[str]:
    found = asyncio.run(SafeResolver(inner, limits).resolve("shop.test", 80))
    return [entry["host"] for entry in found]


def test_only_public_addresses_leave_the_resolver() -> None:
    assert resolve(Fixed("10.0.0.1", "8.8.8.8", "::1"), Limits()) == ["8.8.8.8"]


def test_a_name_with_private_addresses_only_is_refused_by_name_and_address() -> None:
    with pytest.raises(Refused, match=r"shop\.test.*10\.0\.0\.1"):
        resolve(Fixed("10.0.0.1"), Limits())


def test_a_name_without_addresses_is_refused() -> None:
    with pytest.raises(Refused):
        resolve(Fixed(), Limits())


def test_an_exempt_name_may_be_anywhere() -> None:
    assert resolve(Fixed("10.0.0.1"), Limits(("shop.test",))) == ["10.0.0.1"]


def test_closing_closes_the_inner_resolver() -> None:
    inner = Fixed()
    asyncio.run(SafeResolver(inner, Limits()).close())
    assert inner.closed
