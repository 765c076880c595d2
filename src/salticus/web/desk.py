"""The desk of a crawl over HTTP: what readers do is counted, and asks for visits at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
from aiohttp import web

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.live import Live
from salticus.crawl.loop import Loop
from salticus.errors import ConfigError, InputError
from salticus.store.nouns import Hit
from salticus.types import Count, Floats, Ints, Request, Signal, instant
from salticus.views.fresh import times
from salticus.views.search import Found, found
from salticus.views.times import plain
from salticus.web.guard import BODY, Guard, is_loopback

logger = logging.getLogger(__name__)

_ROWS = 100_000  # of a request
_SHOWN = 100  # hits of a search at most
_FLUSH_S = 0.5  # wall seconds that counts wait to be stored together
_AHEAD = timedelta(hours=1)  # by which another clock may be fast
_LATE = timedelta(hours=1)  # by which a click may be told late, and still bring a visit
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST = 10_000  # clicks of one row that count


@asynccontextmanager
async def desk(config: Config, loop: Loop, world: Live, clock: Clock) -> AsyncIterator[None]:
    """The desk is open meanwhile, if the settings give it an address."""
    if config.desk.listen is None:
        yield
        return
    world.lingers = True
    clicks = Clicks(loop, world, clock)
    try:
        async with _opened(clicks, config.desk.listen, config.desk.allowed_hosts):
            yield
    finally:
        await clicks.flush()


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A click or more on a page, or so many impressions; now if no time (ISO 8601) is given."""

    url: str
    at: str | None = None
    clicks: int | None = None
    impressions: int = 0


@asynccontextmanager
async def _opened(clicks: Clicks, listen: str, hosts: Collection[str]) -> AsyncIterator[None]:
    """The desk is open at ``host:port`` meanwhile; under these names too, for their own pages."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"desk.listen: {listen!r} is no address; write 127.0.0.1:8470")
    host = host.strip("[]")
    if not is_loopback(host):
        logger.warning(
            "the desk listens at %s: other machines may reach it, without a password", listen
        )
    guard = Guard(_Desk(clicks).app, host, hosts)
    await guard.runner.setup()
    try:
        with closing(await _listening(guard, host, int(port))):
            yield
    finally:
        await guard.close()


async def _listening(guard: Guard, host: str, port: int) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(guard.connected, host, port)
    except OSError as error:
        where = f"desk.listen: {host}:{port}"
        raise ConfigError(f"{where} cannot be used: {error.strerror}") from error


class _Desk:
    """The routes of the desk."""

    def __init__(self, clicks: Clicks) -> None:
        self._clicks = clicks
        self.app = web.Application()
        posts = [web.post("/clicks", self.clicks), web.post("/push", self.push)]
        self.app.add_routes([*posts, web.get("/search", self.search), web.get("/go", self.go)])

    async def clicks(self, request: web.Request) -> web.Response:
        """Take ``[{"url": …, "clicks": 1, "impressions": 0, "at": …}, …]`` or one such object."""
        rows = _decoded(request[BODY], list[Row] | Row)
        rows = rows if isinstance(rows, list) else [rows]
        return web.json_response(await self._clicks.take([*map(self._clicks.counted, rows)]))

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


def _decoded(body: bytes, kind: Any) -> Any:
    rows = msgspec.json.decode(body, type=kind)
    if isinstance(rows, list) and len(rows) > _ROWS:
        raise ValueError(f"{len(rows)} rows; send at most {_ROWS} at a time")
    return rows


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _SHOWN:
        raise ValueError(f"limit: {text!r} is no number from 1 to {_SHOWN}")
    return int(text)


class Clicks:
    """Counts clicks and impressions, and lets each click ask the gate.

    Counts are stored together, twice a second; what came within the last half second before a
    crash is lost. A click that brings a visit begins it at once.
    """

    def __init__(self, loop: Loop, world: Live, clock: Clock) -> None:
        self.loop = loop
        self.world = world
        self.store = world.store
        self.clock = clock
        self._counts: list[Count] = []
        self._requests: list[Request] = []
        self._due: asyncio.Task[None] | None = None
        self._noticed: dict[int, int] = {}  # when a page's owner last said that it has changed

    async def take(self, counts: Sequence[Count]) -> dict[str, int]:
        """Count, and ask for visits: how many rows came, asked, were let through, are visited."""
        clicked = await self._clicked(counts)
        insta = self.loop.parts.insta
        requests, plan = await self.loop.urge(lambda: insta.ask(clicked, instant(self.clock.now())))
        self._counts += counts
        self._requests += requests
        if self._due is None or self._due.done():
            self._due = asyncio.create_task(self._flush_later(), name="counts")
        sent = sum(request.sent for request in requests)
        return {"taken": len(counts), "asked": len(requests), "sent": sent, "visits": len(plan)}

    def counted(self, row: Row) -> Count:
        """A row as it is counted: a click, unless it says otherwise, and now unless it says when.
        InputError for counts or times that cannot be."""
        now, url, clicks, impressions = self.clock.now(), row.url, row.clicks, row.impressions
        when = now if row.at is None else _time(row.at)
        if clicks is None:
            clicks = int(impressions == 0)
        if not (0 <= clicks <= MOST and 0 <= impressions <= 100 * MOST):
            what = f"{clicks} clicks and {impressions} impressions"
            raise InputError(f"{url}: {what}; at most {MOST} clicks of one row count, none below 0")
        if when > now + _AHEAD:
            raise InputError(f"{url}: {when.isoformat()} is yet to come")
        if when < _EPOCH:
            raise InputError(f"{url}: {when.isoformat()} is before 1970")
        return Count(url, int(when.timestamp() * 1e6), clicks, impressions)

    async def search(self, words: str, limit: int) -> list[Found]:
        """What the words find, each with its chance to be out of date; they count as shown."""
        hits, now = await self.store.search(words, limit), self.clock.now()
        outdated = self._outdated(hits, now)
        at = int(now.timestamp() * 1e6)
        await self.take([Count(hit.url, at, impressions=1) for hit in hits])
        return found(hits, outdated)

    def _outdated(self, hits: Sequence[Hit], now: datetime) -> Floats:
        """The chance that each copy is out of date, by the curves of the last plan."""
        pages = np.array([hit.page for hit in hits], dtype=np.int64)
        answered = times([hit.last_answer for hit in hits])
        chance = self.loop.parts.insta.outdated(pages, answered, instant(now))
        others = np.flatnonzero(np.isnan(chance))  # such as pages that a rule pauses
        if len(others):
            some = self.world.census.copies(pages[others], self.loop.parts.predictor, now)
            chance[others] = some.outdated(instant(now))
        return chance

    async def followed(self, url: str) -> str | None:
        """Count a click on a page; its URL as it is stored, or None if it is not known."""
        for target in await self.store.targets(await self.store.ids([url])):
            await self.take([Count(target.url, int(self.clock.now().timestamp() * 1e6), clicks=1)])
            return target.url
        return None

    async def pushed(self, urls: Sequence[str]) -> int:
        """Store that owners say their pages have changed; how many are known. A notice of a page
        that was not read since the last one says nothing new."""
        at = int(self.clock.now().timestamp() * 1e6)
        pages = await self.store.ids(urls)
        known = pages[pages >= 0]
        targets = await self.store.targets(np.unique(known))
        news = [t.page for t in targets if self._noticed.get(t.page, -1) <= (t.seen or 0)]
        self._noticed.update(dict.fromkeys(news, at))
        await self.store.notice([Signal(page, at, "push") for page in news])
        return len(known)

    async def flush(self) -> None:
        counts, self._counts = self._counts, []
        requests, self._requests = self._requests, []
        if counts:
            await self.store.count(counts)
        if requests:
            await self.store.ask(requests)

    async def _clicked(self, counts: Sequence[Count]) -> Ints:
        """The pages clicked just now, once for each row; unknown ones are left out."""
        if not self.loop.parts.insta.share:
            return np.empty(0, dtype=np.int64)
        since = int((self.clock.now() - _LATE).timestamp() * 1e6)
        fresh = [count.url for count in counts if count.clicks > 0 and count.at >= since]
        ids = await self.store.ids(fresh)
        return ids[ids >= 0]

    async def _flush_later(self) -> None:
        await asyncio.sleep(_FLUSH_S)
        try:
            await self.flush()
        except Exception:
            logger.exception("clicks could not be stored")


def _time(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time; write 2026-01-31T12:00:00Z") from None
    return when.replace(tzinfo=when.tzinfo or UTC)
