"""The addresses of hosts: how names are resolved, and which addresses are off limits.

A page may name any host, redirect to any host, and its owner decides what the name resolves to,
differently each time if that helps. So the address is judged where the connection is made: names
in `SafeResolver`, after resolution; addresses written in the URL, which never reach a resolver, by
`Limits.refusal` before each exchange.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from queue import SimpleQueue
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from salticus.config import matches

Lookup = Callable[..., list[Any]]
_Task = tuple["asyncio.Future[list[Any]]", str, int, int]

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# what some versions of `ipaddress` still hold to be global
_CLOSED_V4 = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4")))
_CLOSED_V6 = tuple(map(IPv6Network, ("2001::/23", "3fff::/20")))
_FAMILIES = (socket.AF_INET, socket.AF_INET6)  # to which we can connect
_HEX = re.compile("0x[0-9a-f]*")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


class Refused(OSError):
    """A host whose every address is off limits."""

    def __init__(self, host: str, address: str) -> None:
        found = f"{host} is at {address}, which is off limits"
        super().__init__(f"{host} is off limits: no public address" if host == address else found)


def off_limits(address: str) -> bool:
    """Whether no page can rightly be there: not public, not unicast, or not an address at all.

    An IPv6 address that carries an IPv4 one (mapped, NAT64, 6to4, ISATAP) is judged by both.

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
        return _closed_v4(_low(address))
    if address.sixtofour is not None and _closed_v4(address.sixtofour):
        return True
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP and _closed_v4(_low(address)):
        return True
    outside = address not in _GLOBAL_UNICAST or not address.is_global
    return outside or any(address in net for net in _CLOSED_V6)  # Teredo is one of them


def _low(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def is_literal(host: str) -> bool:
    """Whether a host needs no resolver: an address in any way that sockets understand, or this
    machine by its name.

    No other name ends in a number; and some readers unescape what others do not.

    >>> is_literal("::1"), is_literal("127.1"), is_literal("0x7f.0x1."), is_literal("a1.org")
    (True, True, True, False)
    """
    last = host.rstrip(".").rpartition(".")[2].lower()
    number = last.isdigit() or _HEX.fullmatch(last) is not None
    return number or ":" in host or "%" in host or last == "localhost"


class Limits:
    """What may be connected to: public addresses, and the hosts that the user allowed by name.

    `allowed` holds patterns as in `config.matches`, with or without port; an IPv6 address with a
    port is written in brackets.
    """

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self.allowed = tuple(allowed)

    def exempt(self, host: str, port: int) -> bool:
        """Whether the user allowed this host whatever its address."""
        if ":" in host:
            spelt = {f"[{host}]", f"[{host}]:{port}"}
            return any(p in spelt or fnmatchcase(host, p) for p in self.allowed)
        return any(matches(host, p) or matches(f"{host}:{port}", p) for p in self.allowed)

    def refusal(self, host: str, port: int) -> Refused | None:
        """Why a host written as an address may not be asked; None for names and public addresses.

        >>> Limits().refusal("10.0.0.1", 80)
        Refused('10.0.0.1 is off limits: no public address')
        """
        if not is_literal(host) or not off_limits(host) or self.exempt(host, port):
            return None
        return Refused(host, host)

    def judge(self, host: str, port: int, found: list[ResolveResult]) -> list[ResolveResult]:
        """The addresses of a host that may be connected to; Refused if there are none."""
        if self.exempt(host, port):
            return found
        safe = [entry for entry in found if not off_limits(entry["host"])]
        if not safe:
            raise Refused(host, found[0]["host"] if found else "no address")
        return safe


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
        return self.limits.judge(host, port, await self.inner.resolve(host, port, family))

    async def close(self) -> None:
        await self.inner.close()


class ThreadsResolver(AbstractResolver):
    """Asks the system in up to `threads` threads, which are made when they are needed.

    A name whose server is silent keeps the system's resolver busy for ten seconds and more. The
    event loop's own threads are few (four on uvloop), and a handful of such names would stop every
    other host from being found. The threads are daemons: a lookup that hangs does not keep the
    process from ending.
    """

    def __init__(self, threads: int, lookup: Lookup = socket.getaddrinfo) -> None:
        self.threads = threads
        self.lookup = partial(lookup, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._started = 0
        self._waiting = 0  # lookups asked for and not done

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a host; OSError if it has none."""
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting += 1
        self._tasks.put((future, host, port, family))
        if self._started < min(self._waiting, self.threads):
            self._started += 1
            threading.Thread(target=self._work, name="salticus-dns", daemon=True).start()
        found = await future
        return [_entry(host, port, info) for info in found if info[0] in _FAMILIES]

    async def close(self) -> None:
        """Let the threads end, each when its lookup does."""
        for _ in range(self._started):
            self._tasks.put(None)
        self._started = 0

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, host, port, family = task
            result: list[Any] | Exception
            try:
                result = self.lookup(host, port, family=family)
            except Exception as error:  # UnicodeError for names that are none
                result = error if isinstance(error, OSError) else OSError(f"no such name: {error}")
            try:
                future.get_loop().call_soon_threadsafe(self._settle, future, result)
            except RuntimeError:
                return  # the loop has ended, and with it all who waited

    def _settle(self, future: asyncio.Future[list[Any]], result: list[Any] | Exception) -> None:
        self._waiting -= 1
        if future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


def _entry(host: str, port: int, info: Any) -> ResolveResult:
    """One answer of the system's resolver. A zone is kept with its address, then off limits."""
    family, _, proto, _, address = info
    zone = f"%{address[3]}" if family == socket.AF_INET6 and address[3:] and address[3] else ""
    return ResolveResult(
        hostname=host,
        host=f"{address[0]}{zone}",
        port=port,
        family=family,
        proto=proto,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
