"""The mall: a stock served over HTTP on loopback, one port a shop."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from io import FileIO
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from salticus.clock import Clock, wall_time
from salticus.errors import ConfigError
from salticus.lab.worlds.mall import faults, render, zoo
from salticus.lab.worlds.mall.audit import DISALLOWED, AccessEntry
from salticus.lab.worlds.mall.faults import HTML, Dice, Fault, coin
from salticus.lab.worlds.mall.newsroom import Newsroom, Publisher
from salticus.lab.worlds.mall.render import ISO, SECOND, DisplayedPage, Shelves, show, unmodified
from salticus.lab.worlds.mall.stock import Stock
from salticus.types.dates import epoch_us

_ADDRESS = "127.0.0.1"
_BACKLOG = 1024
_GRACE_S = 0.05  # for requests under way when the mall stops; hanging ones never end by themselves

_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_JSON = {"Content-Type": "application/json"}
_SCRIPT = {"Content-Type": "text/javascript"}
_XML = {"Content-Type": "application/xml; charset=utf-8"}
_KEPT = 50_000  # rendered pages of a shop, of some 2 KB each
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE = 2  # seconds, of a 429 that does not say


@dataclass(eq=False)
class Mall:
    """Serves `stock` at the times of `clock`.

    Laws: an offer shows its value at the world time at which the request arrived; every request
    has one entry in `log`, in order of arrival; the same seed and requests meet the same faults.
    `page_size` pads offers to so many bytes; `crawl_delays` (shop → seconds) go into robots.txt;
    `port` is the first shop's, 0 = any free ones; `log_path` receives the entries as JSON lines
    in order of their end. `publishers` have ports of their own, by their number as shops.
    """

    stock: Stock
    clock: Clock
    _: KW_ONLY
    faults: Sequence[Fault] = ()
    seed: int = 0
    page_size: int | None = None
    crawl_delays: Mapping[int, float] = field(default_factory=dict)
    publishers: Sequence[Publisher] = ()
    port: int = 0
    log_path: Path | None = None
    hosts: list[str] = field(init=False, default_factory=list)
    urls: list[str] = field(init=False, default_factory=list)
    log: list[AccessEntry] = field(init=False, default_factory=list)
    _shops: list[Shop] = field(init=False, default_factory=list)
    _runners: list[web.ServerRunner] = field(init=False, default_factory=list)
    _file: FileIO | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.padding = render.Padding(self.page_size or 0)

    async def start(self) -> None:
        """Open all shops; from here on `hosts` (by shop) and `urls` (by row) are known."""
        sockets = self._bind()
        if self.log_path is not None:
            self._file = FileIO(self.log_path, "a")  # unbuffered: readers see whole lines at once
        self.hosts = [f"{_ADDRESS}:{sock.getsockname()[1]}" for sock in sockets]
        self.urls = [f"http://{self.hosts[page.shop]}{page.path}" for page in self.stock.pages]
        rows: list[dict[str, int]] = [{} for _ in self.hosts]
        for row, page in enumerate(self.stock.pages):
            rows[page.shop][page.path] = row
        self._shops = [Shop(self, number, paths) for number, paths in enumerate(rows)]
        for shop, sock in zip(self._shops, sockets, strict=True):
            handle: Any = shop.handle  # takes the requests that `arrive` makes
            server = web.Server(
                handle, request_factory=shop.arrive, handler_cancellation=True, access_log=None
            )
            runner = web.ServerRunner(server, shutdown_timeout=_GRACE_S)
            await runner.setup()
            self._runners.append(runner)
            await web.SockSite(runner, sock, backlog=_BACKLOG).start()

    async def stop(self) -> None:
        """Close all shops; requests under way are cut off."""
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
        self._runners.clear()
        for shop in self._shops:
            shop.end_all()
        if self._file is not None:
            self._file.close()
            self._file = None

    def end(self, entry: AccessEntry) -> None:
        """A request is over; only the first call counts."""
        if entry.ended is None:
            entry.ended = wall_time()
            if self._file is not None:
                self._file.write(msgspec.json.encode(entry) + b"\n")

    def _bind(self) -> list[socket.socket]:
        sockets: list[socket.socket] = []
        try:
            ports = [self.stock.shops, *(each.shop + 1 for each in self.publishers)]
            for shop in range(max(ports)):
                where = (_ADDRESS, self.port and self.port + shop)
                sockets.append(socket.create_server(where, backlog=_BACKLOG))
        except (OSError, OverflowError) as error:
            for sock in sockets:
                sock.close()
            raise ConfigError(f"shop {len(sockets)} of the mall has no port: {error}") from error
        return sockets


async def serve(mall: Mall, until: Awaitable[object]) -> None:
    """Keep the mall open until `until` is done."""
    await mall.start()
    try:
        await until
    finally:
        await mall.stop()


class Arrival(web.BaseRequest):
    """A request with the wall time (seconds) and world time (µs) of its arrival."""

    arrived: float
    world: int


class Shop:
    """Answers the requests to one port. `rows` maps its paths to the rows of the stock."""

    def __init__(self, mall: Mall, number: int, rows: dict[str, int]) -> None:
        self.mall = mall
        self.host = mall.hosts[number]
        self.rows = rows
        self.dice = Dice(mall.faults, seed=mall.seed, host=self.host, shop=number)
        self.delay = mall.crawl_delays.get(number)
        self.shelves = Shelves(mall.stock, self.host, list(rows.values()))
        own = [each for each in mall.publishers if each.shop == number]
        self.newsroom = Newsroom(own[0], self.shelves) if own else None
        self._closed_until = 0.0
        self._open: dict[int, tuple[AccessEntry, web.BaseRequest]] = {}
        self._shown: dict[int, DisplayedPage] = {}

    # ------------------------------------------------------------------------------- the access log

    def arrive(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Arrival:
        """Make the server's request and note the time before anything else is done.

        The event loop knows that a client left some steps before that request's handler is
        cancelled; whoever left before this request came must not seem to overlap it.
        """
        for entry, earlier in list(self._open.values()):
            if earlier.transport is None or earlier.transport.is_closing():
                self._end(entry)
        now = wall_time(), epoch_us(self.mall.clock.now())
        request = Arrival(message, payload, protocol, writer, task, asyncio.get_running_loop())
        request.arrived, request.world = now
        return request

    async def handle(self, request: Arrival) -> web.StreamResponse:
        """Answer a request, whatever comes of it, and log it."""
        entry = self._begin(request)
        try:
            fault = self.dice.cast(entry.path)
            answer: web.StreamResponse
            if entry.arrived < self._closed_until:
                answer = self._closed(entry, 429, self._closed_until - entry.arrived)
            elif fault is None:
                answer = self._answer(entry, request)
            else:
                entry.fault = fault.kind
                answer = await self._fail(fault, entry, request)
            entry.status = answer.status
            return answer
        finally:
            self._end(entry)

    def end_all(self) -> None:
        """End the entries of requests that will not be answered any more."""
        for entry, _ in list(self._open.values()):
            self._end(entry)

    def _begin(self, request: Arrival) -> AccessEntry:
        path, headers = request.raw_path.partition("?")[0], request.headers
        entry = AccessEntry(self.host, path, request.arrived, request.world)
        entry.conditional = "If-None-Match" in headers or "If-Modified-Since" in headers
        self._open[id(entry)] = (entry, request)
        self.mall.log.append(entry)
        return entry

    def _end(self, entry: AccessEntry) -> None:
        self._open.pop(id(entry), None)
        self.mall.end(entry)

    # ----------------------------------------------------------------------------- when all is well

    def _answer(self, entry: AccessEntry, request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            return _plain(405, b"", {"Allow": "GET, HEAD"})
        row = self.rows.get(entry.path)
        if row is None:
            return self._elsewhere(entry)
        shown = self._show(row, entry.world)
        if shown.status != 200:
            return _plain(shown.status, b"There is no such offer.\n", _TEXT)
        entry.value = shown.value
        second = entry.world // SECOND
        date = formatdate(second, usegmt=True)
        headers = {**HTML, "Date": date, "ETag": shown.etag, "Last-Modified": shown.modified}
        if entry.conditional and unmodified(shown, request.headers):
            return _plain(304, b"", headers)
        clock = time.strftime(ISO, time.gmtime(second))
        return _plain(200, self.mall.padding.page(shown.head, clock), headers)

    def _show(self, row: int, world: int) -> DisplayedPage:
        shown = self._shown.get(row)
        if shown is None or not shown.since <= world < shown.until:
            if len(self._shown) >= _KEPT:
                self._shown.clear()
            self._shown[row] = shown = show(self.mall.stock, row, world)
        return shown

    def _elsewhere(self, entry: AccessEntry) -> web.Response:
        """Whatever is not a page of the stock."""
        path, when = entry.path, _EPOCH + timedelta(microseconds=entry.world)
        if path == "/robots.txt":
            entry.crawl_delay = self.delay
            names = self.newsroom.sitemaps if self.newsroom else ("/sitemap.xml",)
            urls = [f"http://{self.host}{name}" for name in names]
            return _plain(200, render.robots(DISALLOWED, self.delay, urls), _TEXT)
        if path.startswith(DISALLOWED):
            return _plain(200, b"Nobody should read this.\n", _TEXT)
        if self.newsroom is not None:
            return _plain(*self.newsroom.answer(path, entry.world))
        if path in ("/loop/a", "/loop/b"):
            other = "/loop/b" if path.endswith("a") else "/loop/a"
            return _plain(302, b"", {"Location": other})
        if path == "/app.js":
            return _plain(200, render.SCRIPT.encode(), _SCRIPT)
        if path.startswith("/api/"):
            return self._api(entry)
        if path.startswith("/sitemap"):
            return _found(self.shelves.sitemap(path, when), _XML)
        if path.startswith("/c/"):
            return _found(self.shelves.category(path, when), HTML)
        return _found(self.shelves.home() if path == "/" else None, HTML)

    def _api(self, entry: AccessEntry) -> web.Response:
        """An offer as data, for the pages that are built by script: ``/api/o/17``."""
        row = self.rows.get(entry.path.removeprefix("/api"))
        shown = None if row is None else self._show(row, entry.world)
        if row is None or shown is None or shown.value is None:
            return _found(None, _JSON)
        data = render.product(self.mall.stock.pages[row], shown.value)
        return _plain(200, json.dumps(data).encode(), _JSON)

    # ------------------------------------------------------------------------------ when all is not

    async def _fail(
        self, fault: Fault, entry: AccessEntry, request: web.BaseRequest
    ) -> web.StreamResponse:
        match fault.kind:
            case "hang":
                await faults.hang()
            case "redirect" | "moved":
                code = 301 if fault.kind == "moved" else 302
                return _plain(code, b"", {"Location": self._aim(fault, entry.path)})
            case kind if kind in faults.FLOODS:
                entry.status = 200
                return await faults.pour(request, fault)
            case kind if kind in zoo.RAW:
                return await zoo.raw(request, kind)
            case kind if kind in zoo.INSTEAD:
                return _plain(200, zoo.INSTEAD[kind](entry.path), zoo.HEADERS.get(kind, HTML))
            case kind if not kind.isdecimal():
                return await self._spoil(fault, entry, request)
        status = int(fault.kind)
        if status == 429 or fault.retry is not None:
            return self._closed(entry, status, fault.retry or _PATIENCE)
        return _plain(status, b"Something went wrong.\n", _TEXT)

    async def _spoil(
        self, fault: Fault, entry: AccessEntry, request: web.BaseRequest
    ) -> web.StreamResponse:
        """Deliver the right answer badly, or spoilt by one of the zoo's."""
        answer = self._answer(entry, request)
        body = answer.body
        if answer.status != 200 or not isinstance(body, bytes):
            return answer
        if fault.kind in zoo.SPOILT:
            headers = zoo.HEADERS.get(fault.kind, HTML)
            return _plain(200, zoo.SPOILT[fault.kind](body), headers)
        entry.status, value, entry.value = 200, entry.value, None
        stream = web.StreamResponse(headers=answer.headers)
        if fault.kind == "slow":
            await faults.trickle(request, stream, body, fault.seconds)
            entry.value = value
        else:
            await faults.cut(request, stream, body, reset=fault.kind == "reset")
        return stream

    def _aim(self, fault: Fault, path: str) -> str:
        if fault.to in faults.ADDRESSES:
            return faults.ADDRESSES[fault.to]
        if fault.to == "private":
            return DISALLOWED + path.rpartition("/")[2]
        urls, here = self.mall.urls, f"http://{self.host}/"
        first = int(coin(path) * len(urls))
        for url in urls[first:] + urls[:first]:
            if url.startswith(here) == (fault.to == "offer") and not url.endswith(path):
                return url
        return "/"

    def _closed(self, entry: AccessEntry, status: int, seconds: float) -> web.Response:
        """Ask for patience, and have it: the shop stays closed until then."""
        wait = max(1, ceil(seconds))
        entry.fault = entry.fault or "early"
        entry.retry_after = wait
        self._closed_until = max(self._closed_until, wall_time() + wait)
        headers = {**_TEXT, "Retry-After": str(wait)}
        return _plain(status, b"Please come back later.\n", headers)


def _found(body: bytes | None, headers: Mapping[str, str]) -> web.Response:
    if body is None:
        return _plain(404, b"There is no such page.\n", _TEXT)
    return _plain(200, body, headers)


def _plain(status: int, body: bytes, headers: Mapping[str, str]) -> web.Response:
    return web.Response(status=status, body=body, headers=headers)
