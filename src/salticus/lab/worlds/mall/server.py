"""The mall: a stock served over HTTP on loopback, one port a shop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from salticus.clock import Clock
from salticus.errors import ConfigError
from salticus.lab.worlds.mall.access import AccessEntry, AccessLog
from salticus.lab.worlds.mall.faults import Dice, Fault
from salticus.lab.worlds.mall.render import Padding
from salticus.lab.worlds.mall.shop import Ground, Shop
from salticus.lab.worlds.mall.stock import Stock

_ADDRESS = "127.0.0.1"
_BACKLOG = 1024
_GRACE_S = 0.05  # for requests under way when the mall stops; hanging ones never end by themselves


@dataclass(eq=False)
class Mall:
    """Serves `stock` at the times of `clock`.

    Laws: an offer shows its value at the world time at which the request arrived; every request
    has one entry in `log`; the same seed and requests meet the same faults. `page_size` pads
    offers to so many bytes; `crawl_delays` (shop → seconds) go into robots.txt; `port` is the
    first shop's, 0 = any free ones; `log_path` receives the entries as JSON lines.
    """

    stock: Stock
    clock: Clock
    _: KW_ONLY
    faults: Sequence[Fault] = ()
    seed: int = 0
    page_size: int | None = None
    crawl_delays: Mapping[int, float] = field(default_factory=dict)
    port: int = 0
    log_path: Path | None = None
    hosts: list[str] = field(init=False, default_factory=list)
    urls: list[str] = field(init=False, default_factory=list)
    _shops: list[Shop] = field(init=False, default_factory=list)
    _runners: list[web.ServerRunner] = field(init=False, default_factory=list)
    _log: AccessLog = field(init=False)

    def __post_init__(self) -> None:
        self._log = AccessLog(self.log_path)

    @property
    def log(self) -> list[AccessEntry]:
        """All requests so far, in order of arrival."""
        return self._log.entries

    async def start(self) -> None:
        """Open all shops; from here on `hosts` (by shop) and `urls` (by row) are known."""
        sockets = self._bind()
        self._log.open()
        self.hosts = [f"{_ADDRESS}:{sock.getsockname()[1]}" for sock in sockets]
        self.urls = [f"http://{self.hosts[page.shop]}{page.path}" for page in self.stock.pages]
        self._shops = self._furnish()
        for shop, sock in zip(self._shops, sockets, strict=True):
            await self._open(shop, sock)

    async def stop(self) -> None:
        """Close all shops; requests under way are cut off."""
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
        self._runners.clear()
        for shop in self._shops:
            shop.end_all()
        self._log.close()

    def _bind(self) -> list[socket.socket]:
        sockets: list[socket.socket] = []
        try:
            for shop in range(self.stock.shops):
                where = (_ADDRESS, self.port and self.port + shop)
                sockets.append(socket.create_server(where, backlog=_BACKLOG))
        except (OSError, OverflowError) as error:
            for sock in sockets:
                sock.close()
            raise ConfigError(f"shop {len(sockets)} of the mall has no port: {error}") from error
        return sockets

    def _furnish(self) -> list[Shop]:
        ground = Ground(self.stock, self.clock, self._log, Padding(self.page_size or 0))
        ground.urls = self.urls
        rows: list[dict[str, int]] = [{} for _ in self.hosts]
        for row, page in enumerate(self.stock.pages):
            rows[page.shop][page.path] = row
        return [
            Shop(ground, host, rows[shop], self._dice(shop), self.crawl_delays.get(shop))
            for shop, host in enumerate(self.hosts)
        ]

    def _dice(self, shop: int) -> Dice:
        return Dice(self.faults, seed=self.seed, host=self.hosts[shop], shop=shop)

    async def _open(self, shop: Shop, sock: socket.socket) -> None:
        handle: Any = shop.handle  # takes the requests that `arrive` makes
        server = web.Server(
            handle, request_factory=shop.arrive, handler_cancellation=True, access_log=None
        )
        runner = web.ServerRunner(server, shutdown_timeout=_GRACE_S)
        await runner.setup()
        self._runners.append(runner)
        await web.SockSite(runner, sock, backlog=_BACKLOG).start()


async def serve(mall: Mall, until: Awaitable[object]) -> None:
    """Keep the mall open until `until` is done."""
    await mall.start()
    try:
        await until
    finally:
        await mall.stop()
