"""Which addresses are off limits, judged after the name was resolved.

A page may name any host, redirect to any host, and its owner decides what the name resolves to,
differently each time if that helps. So the address is judged where the connection is made: names
in `SafeResolver`, after resolution; addresses written in the URL, which never reach a resolver, by
`Limits.refusal` before each exchange.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from salticus.config import matches

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# what some versions of `ipaddress` still hold to be global
_CLOSED_V4 = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4")))
_CLOSED_V6 = tuple(map(IPv6Network, ("2001::/23", "3fff::/20")))


class Refused(OSError):
    """A host whose every address is off limits."""

    def __init__(self, host: str, address: str) -> None:
        super().__init__(f"{host} is at {address}, which is off limits")


def off_limits(address: str) -> bool:
    """Whether no page can rightly be there: not public, not unicast, or not an address at all.

    An IPv6 address that carries an IPv4 one (mapped, NAT64, 6to4) is judged by both.

    >>> [off_limits(a) for a in ("8.8.8.8", "169.254.169.254", "::ffff:10.0.0.1", "2130706433")]
    [False, True, True, True]
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return True
    return _closed_v4(parsed) if isinstance(parsed, IPv4Address) else _closed_v6(parsed)


def _closed_v4(address: IPv4Address) -> bool:
    return not address.is_global or any(address in net for net in _CLOSED_V4)


def _closed_v6(address: IPv6Address) -> bool:
    if address.scope_id is not None:
        return True
    if address.ipv4_mapped is not None:
        return _closed_v4(address.ipv4_mapped)
    if address in _NAT64:
        return _closed_v4(IPv4Address(int(address) & 0xFFFFFFFF))
    if address.sixtofour is not None and _closed_v4(address.sixtofour):
        return True
    outside = address not in _GLOBAL_UNICAST or not address.is_global
    return outside or any(address in net for net in _CLOSED_V6)  # Teredo is one of them


def is_literal(host: str) -> bool:
    """Whether a host is written as an address, in any of the ways that sockets understand.

    >>> is_literal("::1"), is_literal("127.1"), is_literal("017700000001"), is_literal("a1.org")
    (True, True, True, False)
    """
    return ":" in host or host.replace(".", "").isdigit()


class Limits:
    """What may be connected to: public addresses, and the hosts that the user allowed by name.

    `allowed` holds patterns as in `config.matches`, with or without port.
    """

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self.allowed = tuple(allowed)

    def exempt(self, host: str, port: int) -> bool:
        """Whether the user allowed this host whatever its address."""
        return any(matches(host, p) or matches(f"{host}:{port}", p) for p in self.allowed)

    def refusal(self, host: str, port: int) -> Refused | None:
        """Why a host written as an address may not be asked; None for names and public addresses.

        >>> Limits().refusal("10.0.0.1", 80)
        Refused('10.0.0.1 is at 10.0.0.1, which is off limits')
        """
        if not is_literal(host) or not off_limits(host) or self.exempt(host, port):
            return None
        return Refused(host, host)


class SafeResolver(AbstractResolver):
    """Resolves names and drops the addresses that are off limits.

    Law: no address that is off limits ever leaves `resolve`, unless the host is exempt.
    """

    def __init__(self, inner: AbstractResolver, limits: Limits) -> None:
        self.inner = inner
        self.limits = limits

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self.inner.resolve(host, port, family)
        if self.limits.exempt(host, port):
            return found
        safe = [entry for entry in found if not off_limits(entry["host"])]
        if not safe:
            raise Refused(host, found[0]["host"] if found else "no address")
        return safe

    async def close(self) -> None:
        await self.inner.close()
