"""One shop of a mall: what it answers to a request."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from math import ceil
from typing import Any

from aiohttp import web

from salticus.clock import Clock
from salticus.lab.worlds.mall import faults, markup, render, zoo
from salticus.lab.worlds.mall.access import AccessEntry, AccessLog
from salticus.lab.worlds.mall.faults import Dice, Fault, coin
from salticus.lab.worlds.mall.shelves import SECOND, DisplayedPage, Shelves, show, unmodified
from salticus.lab.worlds.mall.stock import Stock
from salticus.types.dates import epoch_us

DISALLOWED = "/private/"

_HTML = {"Content-Type": "text/html; charset=utf-8"}
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_JSON = {"Content-Type": "application/json"}
_SCRIPT = {"Content-Type": "text/javascript"}
_XML = {"Content-Type": "application/xml; charset=utf-8"}
_KEPT = 50_000  # rendered pages, of some 2 KB each
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE = 2  # seconds, of a 429 that does not say
_HUGE = 100_000_000
_BOMB = 1_000_000_000


class Ground:
    """What all shops of a mall share. `urls` holds the address of every page by its row."""

    def __init__(self, stock: Stock, clock: Clock, log: AccessLog, padding: render.Padding) -> None:
        self.stock = stock
        self.clock = clock
        self.log = log
        self.padding = padding
        self.urls: list[str] = []
        self._stamps = (-1, "", "")

    def stamps(self, world: int) -> tuple[str, str]:
        """World time for the Date header and for people."""
        second = world // SECOND
        if self._stamps[0] != second:
            shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
            self._stamps = (second, formatdate(second, usegmt=True), shown)
        return self._stamps[1], self._stamps[2]


class Arrival(web.BaseRequest):
    """A request with the wall time (seconds) and world time (µs) of its arrival."""

    arrived: float
    world: int


class Shop:
    """Answers the requests to one port. `rows` maps its paths to the rows of the stock."""

    def __init__(
        self, ground: Ground, host: str, rows: dict[str, int], dice: Dice, delay: float | None
    ) -> None:
        self.ground = ground
        self.host = host
        self.rows = rows
        self.dice = dice
        self.delay = delay
        self.shelves = Shelves(ground.stock, host, list(rows.values()))
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
        arrived = time.time()
        world = epoch_us(self.ground.clock.now())
        loop = asyncio.get_running_loop()
        request = Arrival(message, payload, protocol, writer, task, loop)
        request.arrived, request.world = arrived, world
        return request

    async def handle(self, request: Arrival) -> web.StreamResponse:
        """Answer a request, whatever comes of it, and log it."""
        entry = self._begin(request)
        try:
            fault = self.dice.cast(entry.path)
            if entry.arrived < self._closed_until:
                return self._closed(entry, 429, self._closed_until - entry.arrived)
            if fault is None:
                return self._answer(entry, request)
            entry.fault = fault.kind
            return await self._fail(fault, entry, request)
        finally:
            self._end(entry)

    def end_all(self) -> None:
        """End the entries of requests that will not be answered any more."""
        for entry, _ in list(self._open.values()):
            self._end(entry)

    def _begin(self, request: Arrival) -> AccessEntry:
        path = request.raw_path.partition("?")[0]
        entry = AccessEntry(self.host, path, request.arrived, request.world)
        headers = request.headers
        entry.conditional = "If-None-Match" in headers or "If-Modified-Since" in headers
        self._open[id(entry)] = (entry, request)
        self.ground.log.begin(entry)
        return entry

    def _end(self, entry: AccessEntry) -> None:
        self._open.pop(id(entry), None)
        self.ground.log.end(entry)

    # ----------------------------------------------------------------------------- when all is well

    def _answer(self, entry: AccessEntry, request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            return self._plain(entry, 405, b"", {"Allow": "GET, HEAD"})
        row = self.rows.get(entry.path)
        if row is None:
            return self._elsewhere(entry)
        shown = self._show(row, entry.world)
        if shown.status != 200:
            return self._plain(entry, shown.status, b"There is no such offer.\n", _TEXT)
        entry.value = shown.value
        date, clock = self.ground.stamps(entry.world)
        headers = {**_HTML, "Date": date, "ETag": shown.etag, "Last-Modified": shown.modified}
        if entry.conditional and unmodified(shown, request.headers):
            return self._plain(entry, 304, b"", headers)
        return self._plain(entry, 200, self.ground.padding.page(shown.head, clock), headers)

    def _show(self, row: int, world: int) -> DisplayedPage:
        shown = self._shown.get(row)
        if shown is None or not shown.since <= world < shown.until:
            if len(self._shown) >= _KEPT:
                self._shown.clear()
            self._shown[row] = shown = show(self.ground.stock, row, world)
        return shown

    def _elsewhere(self, entry: AccessEntry) -> web.Response:
        """Whatever is not a page of the stock."""
        path, when = entry.path, _EPOCH + timedelta(microseconds=entry.world)
        if path == "/robots.txt":
            entry.crawl_delay = self.delay
            return self._plain(entry, 200, render.robots(self.host, DISALLOWED, self.delay), _TEXT)
        if path.startswith(DISALLOWED):
            return self._plain(entry, 200, b"Nobody should read this.\n", _TEXT)
        if path in ("/loop/a", "/loop/b"):
            other = "/loop/b" if path.endswith("a") else "/loop/a"
            return self._plain(entry, 302, b"", {"Location": other})
        if path == "/app.js":
            return self._plain(entry, 200, markup.SCRIPT.encode(), _SCRIPT)
        if path.startswith("/api/"):
            return self._api(entry)
        if path.startswith("/sitemap"):
            return self._found(entry, self.shelves.sitemap(path, when), _XML)
        if path.startswith("/c/"):
            return self._found(entry, self.shelves.category(path, when), _HTML)
        return self._found(entry, self.shelves.home() if path == "/" else None, _HTML)

    def _api(self, entry: AccessEntry) -> web.Response:
        """An offer as data, for the pages that are built by script: ``/api/o/17``."""
        row = self.rows.get(entry.path.removeprefix("/api"))
        shown = None if row is None else self._show(row, entry.world)
        if row is None or shown is None or shown.value is None:
            return self._found(entry, None, _JSON)
        data = markup.product(self.ground.stock.pages[row], shown.value)
        return self._plain(entry, 200, json.dumps(data).encode(), _JSON)

    def _found(
        self, entry: AccessEntry, body: bytes | None, headers: Mapping[str, str]
    ) -> web.Response:
        if body is None:
            return self._plain(entry, 404, b"There is no such page.\n", _TEXT)
        return self._plain(entry, 200, body, headers)

    def _plain(
        self, entry: AccessEntry, status: int, body: bytes, headers: Mapping[str, str]
    ) -> web.Response:
        entry.status = status
        return web.Response(status=status, body=body, headers=headers)

    # ------------------------------------------------------------------------------ when all is not

    async def _fail(
        self, fault: Fault, entry: AccessEntry, request: web.BaseRequest
    ) -> web.StreamResponse:
        match fault.kind:
            case "hang":
                await faults.hang()
            case "slow" | "reset" | "truncated":
                return await self._spoil(fault, entry, request)
            case "huge":
                entry.status = 200
                return await faults.pour(request, faults.junk(fault.size or _HUGE), _HTML)
            case "bomb":
                entry.status = 200
                packed = {**_HTML, "Content-Encoding": "gzip"}
                return await faults.pour(request, faults.bomb(fault.size or _BOMB), packed)
            case "brotli-bomb":
                entry.status = 200
                packed = {**_HTML, "Content-Encoding": "br"}
                return await faults.pour(request, zoo.brotli_bomb(fault.size or _BOMB), packed)
            case "redirect" | "moved":
                code = 301 if fault.kind == "moved" else 302
                return self._plain(entry, code, b"", {"Location": self._aim(fault, entry.path)})
            case kind if kind in zoo.RAW:
                return await zoo.raw(request, kind)
            case kind if not kind.isdecimal():
                return self._beast(kind, entry, request)
        status = int(fault.kind)
        if status == 429 or fault.retry is not None:
            return self._closed(entry, status, fault.retry or _PATIENCE)
        return self._plain(entry, status, b"Something went wrong.\n", _TEXT)

    def _beast(self, kind: str, entry: AccessEntry, request: web.BaseRequest) -> web.Response:
        """One of the zoo's: something else than the right answer, or that answer spoilt."""
        if kind in zoo.INSTEAD:
            body, headers = zoo.INSTEAD[kind](entry.path)
            return self._plain(entry, 200, body, headers)
        answer = self._answer(entry, request)
        if answer.status != 200 or not isinstance(answer.body, bytes):
            return answer
        body, headers = zoo.SPOILT[kind](answer.body)
        return self._plain(entry, 200, body, headers)

    async def _spoil(
        self, fault: Fault, entry: AccessEntry, request: web.BaseRequest
    ) -> web.StreamResponse:
        """Deliver the right answer badly."""
        answer = self._answer(entry, request)
        if answer.status != 200:
            return answer
        value, entry.value = entry.value, None
        if fault.kind != "slow":
            return await faults.cut(request, answer, reset=fault.kind == "reset")
        stream = await faults.trickle(request, answer, fault.seconds)
        entry.value = value
        return stream

    def _aim(self, fault: Fault, path: str) -> str:
        if fault.to == "loop":
            return "/loop/a"
        if fault.to == "private":
            return DISALLOWED + path.rpartition("/")[2]
        if fault.to == "home":
            return "/"
        if fault.to in faults.INSIDE:
            return faults.INSIDE[fault.to]
        urls, here = self.ground.urls, f"http://{self.host}/"
        first = int(coin(path) * len(urls))
        for step in range(len(urls)):
            url = urls[(first + step) % len(urls)]
            if url.startswith(here) == (fault.to == "offer") and not url.endswith(path):
                return url
        return "/"

    def _closed(self, entry: AccessEntry, status: int, seconds: float) -> web.Response:
        """Ask for patience, and have it: the shop stays closed until then."""
        wait = max(1, ceil(seconds))
        entry.fault = entry.fault or "early"
        entry.retry_after = wait
        self._closed_until = max(self._closed_until, time.time() + wait)
        headers = {**_TEXT, "Retry-After": str(wait)}
        return self._plain(entry, status, b"Please come back later.\n", headers)
