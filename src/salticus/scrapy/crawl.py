"""One run of a spider: Salticus plans the visits, Scrapy makes them, the store keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import numpy as np
from scrapy import Request
from scrapy.crawler import Crawler

from salticus.clock import Clock
from salticus.crawl.assembly import guided
from salticus.crawl.live import Job, Live
from salticus.crawl.loop import Loop
from salticus.crawl.manual import by_hand
from salticus.errors import InputError, UnknownPage
from salticus.scrapy.fetcher import ScrapyFetcher, first_url
from salticus.scrapy.items import reading
from salticus.scrapy.options import Options
from salticus.store.nouns import PageState
from salticus.types import Fetched, NewPage, Status, Target, Tick
from salticus.urls import canonical
from salticus.web.desk import desk

_CALLBACK = "callback:"  # the tag that names the method which makes a page's items


class ScrapyCrawl:
    """The loop beside a running spider.

    Laws: a visit of the plan is one request, and ends once, as an observation or refunded; a page
    that is known is not requested beyond the plan, unless the options allow it; a page of which the
    spider made an item is known from then on.
    """

    def __init__(self, crawler: Crawler, options: Options, clock: Clock) -> None:
        self.crawler = crawler
        self.options = options
        self.clock = clock
        self.fetcher = ScrapyFetcher(crawler, self._request)
        self.loop: Loop
        self.world: Live
        self.running: asyncio.Task[None]
        self.failed: Callable[[Any], Awaitable[None]] | None = None
        self._open = AsyncExitStack()
        self._latest = self.clock.now()

    async def open(self) -> None:
        """Take the store, plan, and begin to visit. Raises what `crawl.assembly.crawler` does."""
        once = not self.options.continuous
        self.loop, self.world = await self._open.enter_async_context(
            guided(self.options.config, self.clock, self.fetcher, once=once, companions=(desk,))
        )
        self.running = asyncio.create_task(self.loop.run(once=once), name="salticus")

    async def close(self) -> None:
        """The spider has closed: learn what came last, remember it, and leave the store."""
        try:
            self.loop.stop()
            await self.fetcher.close()
            await self.running
            async for outcomes in self.world.finish():  # visits that nobody planned may be the last
                self.loop.learn(outcomes)
            self.loop.study()
            await self.loop.snapshot.save()
        finally:
            await self._open.aclose()

    # ----------------------------------------------------------------------------- before a request

    async def wanted(self, request: Request) -> bool:
        """Whether a request of the spider's own is to be made: for what is not known it is."""
        page = await self._page(request)
        if page is None:
            return True
        tags = self._tags(request)
        if page.value is None and tags and not {*tags} <= {*page.tags}:  # added by hand
            await self.world.store.add([NewPage(page.url, tags=tags, found=True)], at=page.added)
        if self.options.only_planned:
            return False
        if request.errback is None:
            request.errback = self.failed
        return True

    async def _request(self, target: Target) -> Request:
        """The request of a planned visit, to the callback that the page's tag names."""
        page = await self.world.store.page(target.url)
        names = [tag.removeprefix(_CALLBACK) for tag in page.tags if tag.startswith(_CALLBACK)]
        callback = next((getattr(self.crawler.spider, name, None) for name in names), None)
        return Request(target.url, callback=callback, errback=self.failed, dont_filter=True)

    async def _page(self, request: Request) -> PageState | None:
        """The page that a request is for, if it is known."""
        if request.method != "GET":
            return None
        try:
            return await self.world.store.page(first_url(request))
        except (UnknownPage, InputError):
            return None

    # ------------------------------------------------------------------------------ after a request

    async def ended(self, request: Request, fetched: Fetched, items: list[Any]) -> None:
        """A request has ended with these items: an observation, if it is of a page."""
        if request.method != "GET":
            return
        page = await self._page(request)
        if fetched.status is Status.OK:
            rule = self.options.config.rule(await self._rule(request, page))
            fetched.reading = reading(items, rule, page.kind if page else None)
        if not self.fetcher.end(request, fetched):
            await self._unplanned(request, page, fetched)

    async def _rule(self, request: Request, page: PageState | None) -> int:
        """The number of the page's rule; -1 = none."""
        if page is None:
            return self.options.config.ruled(_stranger(request)).rule
        return int((await self.world.census.rules(np.array([page.page])))[0])

    async def _unplanned(self, request: Request, page: PageState | None, fetched: Fetched) -> None:
        """Store a visit that the spider made on its own account."""
        if page is None:
            page = await self._added(request, fetched)
        known = [] if page is None else [page.page]
        for target in await self.world.targets(np.array(known, dtype=np.int64)):
            plan = by_hand([target.page], self._now())
            await self.world.take(Job(0, plan, target, 0.0), fetched)

    async def _added(self, request: Request, fetched: Fetched) -> PageState | None:
        """Add the page of a request, if there is anything to keep of it."""
        value = fetched.reading.value if fetched.reading else None
        if value is None:
            return None
        try:
            url, _ = canonical(first_url(request))
        except InputError:
            return None
        page = NewPage(url, kind=value.kind, tags=self._tags(request))
        await self.world.store.add([page], at=fetched.at)
        return await self.world.store.page(url)

    def _tags(self, request: Request) -> tuple[str, ...]:
        name = callback_name(request, self.crawler.spider)
        return (f"{_CALLBACK}{name}",) if name else ()

    def _now(self) -> Tick:
        """A tick that begins now, later than any before: visits by hand are numbered by it."""
        self._latest = max(self.clock.now(), self._latest + timedelta(microseconds=1))
        return Tick(0, self._latest, self._latest)


def callback_name(request: Request, spider: Any) -> str | None:
    """The spider's method that is called with the response; None for `parse`, or for a function.

    The rules of a CrawlSpider are called for by their number.
    """
    callback = request.callback
    if "rule" in request.meta and hasattr(spider, "_rules"):
        callback = spider._rules[request.meta["rule"]].callback
    name = getattr(callback, "__name__", "")
    own = getattr(spider, name, None) if name else None
    return name if own is not None and own == callback else None


def _stranger(request: Request) -> Target:
    """The page of a request that is not stored."""
    try:
        return Target(0, *canonical(first_url(request)))
    except InputError:
        return Target(0, first_url(request), "")
