"""The desk over HTTP, on an address of this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from salticus.errors import ConfigError
from salticus.types import Count
from salticus.views.times import plain
from salticus.web.clicks import Clicks
from salticus.web.guard import BODY, Guard
from salticus.web.origins import is_loopback

logger = logging.getLogger(__name__)

_ROWS = 100_000  # of a request
_SHOWN = 100  # hits of a search at most


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A click or more on a page, or so many impressions; now if no time (ISO 8601) is given."""

    url: str
    at: str | None = None
    clicks: int | None = None
    impressions: int = 0


@asynccontextmanager
async def opened(clicks: Clicks, listen: str, hosts: Collection[str] = ()) -> AsyncIterator[None]:
    """The desk is open at ``host:port`` meanwhile; under these names too, for their own pages."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"desk.listen: {listen!r} is no address; write 127.0.0.1:8470")
    host = host.strip("[]")
    if not is_loopback(host):
        logger.warning(
            "the desk listens at %s: other machines may reach it, without a password", listen
        )
    guard = Guard(application(clicks), host, hosts)
    await guard.runner.setup()
    try:
        server = await _listening(guard, host, int(port))
        try:
            yield
        finally:
            server.close()
    finally:
        await guard.close()


async def _listening(guard: Guard, host: str, port: int) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(guard.connected, host, port)
    except OSError as error:
        where = f"desk.listen: {host}:{port}"
        raise ConfigError(f"{where} cannot be used: {error.strerror}") from error


def application(clicks: Clicks) -> web.Application:
    """The routes of the desk."""
    app = web.Application()
    desk = _Desk(clicks)
    app.add_routes(
        [
            web.post("/clicks", desk.clicks),
            web.post("/push", desk.push),
            web.get("/search", desk.search),
            web.get("/go", desk.go),
        ]
    )
    return app


class _Desk:
    def __init__(self, clicks: Clicks) -> None:
        self._clicks = clicks

    async def clicks(self, request: web.Request) -> web.Response:
        """Take ``[{"url": …, "clicks": 1, "impressions": 0, "at": …}, …]`` or one such object."""
        rows = _decoded(request[BODY], list[Row] | Row)
        rows = rows if isinstance(rows, list) else [rows]
        return web.json_response(await self._clicks.take([self._count(row) for row in rows]))

    async def push(self, request: web.Request) -> web.Response:
        """Take ``["URL", …]``: pages that have changed, as their owner says."""
        urls = _decoded(request[BODY], list[str])
        return web.json_response({"known": await self._clicks.pushed(urls)})

    async def search(self, request: web.Request) -> web.Response:
        """Tell what ``?q=words&limit=10`` finds, with the chance of each copy to be out of date."""
        words, limit = request.query.get("q", ""), _number(request.query.get("limit", "10"))
        return web.json_response(plain(await self._clicks.search(words, limit)))

    async def go(self, request: web.Request) -> web.Response:
        """Count a click on ``?url=URL``, and send the reader there, if it is a known page."""
        url = await self._clicks.followed(request.query.get("url", ""))
        if url is None:
            return web.json_response({"error": "no such page"}, status=404)
        return web.Response(status=302, headers={"Location": url})

    def _count(self, row: Row) -> Count:
        return self._clicks.counted(row.url, row.at, row.clicks, row.impressions)


def _decoded(body: bytes, kind: Any) -> Any:
    rows = msgspec.json.decode(body, type=kind)
    if isinstance(rows, list) and len(rows) > _ROWS:
        raise ValueError(f"{len(rows)} rows; send at most {_ROWS} at a time")
    return rows


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _SHOWN:
        raise ValueError(f"limit: {text!r} is no number from 1 to {_SHOWN}")
    return int(text)
