"""Name resolution in threads of its own, so that dead names do not hold up the living.

A name whose server is silent keeps the system's resolver busy for ten seconds and more. The event
loop's own threads are few (four on uvloop), and a handful of such names would stop every other
host from being found. Here there may be as many lookups as exchanges.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

Lookup = Callable[..., list[Any]]
_Task = tuple["asyncio.Future[list[Any]]", str, int, int]


class ThreadsResolver(AbstractResolver):
    """Asks the system in up to `threads` threads, which are made when they are needed.

    The threads are daemons: a lookup that hangs does not keep the process from ending.
    """

    def __init__(self, threads: int, lookup: Lookup = socket.getaddrinfo) -> None:
        self.threads = threads
        self.lookup = lookup
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
        return [entry for info in found if (entry := _entry(host, port, info)) is not None]

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
                flags = socket.AI_ADDRCONFIG
                result = self.lookup(
                    host, port, type=socket.SOCK_STREAM, family=family, flags=flags
                )
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


def _entry(host: str, port: int, info: Any) -> ResolveResult | None:
    """One answer of the system's resolver; None if it cannot be connected to.

    A zone is kept with its address, which is then off limits.
    """
    family, _, proto, _, address = info
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    zone = f"%{address[3]}" if family == socket.AF_INET6 and address[3:] and address[3] else ""
    return ResolveResult(
        hostname=host,
        host=f"{address[0]}{zone}",
        port=port,
        family=family,
        proto=proto,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
