"""One run of a spider: Salticus plans the visits, Scrapy makes them, the store keeps them.

The spider middleware is where requests and items pass between the spider and Scrapy's engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.conf import closest_scrapy_cfg

from salticus.clock import Clock
from salticus.config import Config, load
from salticus.crawl.assembly import guided
from salticus.crawl.live import Job, Live
from salticus.crawl.loop import Loop
from salticus.crawl.manual import by_hand
from salticus.crawl.opening import clock_of
from salticus.errors import ConfigError, InputError, SalticusError, UnknownPage
from salticus.scrapy.fetcher import (
    VISIT,
    ScrapyFetcher,
    fetched_of,
    first_url,
    reading,
    status_of,
    taken,
    words_for,
)
from salticus.store.nouns import PageState
from salticus.types import Fetched, NewPage, Status, Target, Tick
from salticus.urls import canonical
from salticus.web.desk import desk

logger = logging.getLogger(__name__)

_PRIORITY = 10  # next to the engine: what others filter never counts, what they add does
_CALLBACK = "callback:"  # the tag that names the method which makes a page's items


class Salticus:
    """Puts the spider middleware in its place.

    Its settings are SALTICUS_CONFIG, SALTICUS_CONTINUOUS and SALTICUS_ONLY_PLANNED; see `Options`.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        logging.getLogger("numba").setLevel(logging.WARNING)  # Scrapy shows what others debug
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", Revisits, _PRIORITY)


class Options(msgspec.Struct, frozen=True):
    """What the add-on needs to know.

    `config` is read from SALTICUS_CONFIG, a file beside scrapy.cfg unless its path is absolute.
    With `continuous` the spider does not end: visits are planned tick after tick. With
    `only_planned` the spider's own requests for pages that are known are left out.
    """

    config: Config
    continuous: bool = False
    only_planned: bool = True

    @classmethod
    def of(cls, settings: BaseSettings) -> Options:
        """The options in a project's settings; ConfigError names what is wrong."""
        project = Path(closest_scrapy_cfg() or "./scrapy.cfg").parent
        return cls(
            load(project / settings.get("SALTICUS_CONFIG", "salticus.toml")),
            continuous=settings.getbool("SALTICUS_CONTINUOUS", False),
            only_planned=settings.getbool("SALTICUS_ONLY_PLANNED", True),
        )


class Revisits:
    """Lets pass what the spider asks for that is new, adds the planned visits, notes the items.

    Without `process_start`, as in Scrapy's shell, it does nothing.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.options = Options.of(crawler.settings)
        self.clock = clock_of(self.options.config)
        self.crawl: ScrapyCrawl | None = None
        self._noted: set[asyncio.Future[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Revisits:
        made = cls(crawler)
        crawler.signals.connect(made.spider_closed, signal=signals.spider_closed)
        return made

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The spider's own start; it lasts until all planned visits have been made, because a
        spider that has started and has no requests left is closed."""
        try:
            crawl = await self._opened()
            async for one in start:
                if not isinstance(one, Request) or await crawl.wanted(one):
                    yield one
            await asyncio.shield(crawl.running)
        except SalticusError as error:
            logger.error("salticus: %s", error)
            raise CloseSpider("salticus") from error

    async def _opened(self) -> ScrapyCrawl:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigError(
                "the add-on needs Scrapy's asyncio reactor; leave TWISTED_REACTOR as it is"
            ) from None
        crawl = ScrapyCrawl(self.crawler, self.options, self.clock)
        crawl.failed = self.failed
        await crawl.open()
        self.crawl = crawl
        return crawl

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any], spider: Any = None
    ) -> AsyncIterator[Any]:
        """What a callback makes of a response; once it has come to its end, that is noted."""
        request, fetched = response.request, fetched_of(response, self._now())
        items: list[Any] = []
        again = False
        try:
            async for one in result:
                if not isinstance(one, Request):
                    items.append(taken(one))
                elif _same_visit(one, request):
                    again = True
                else:
                    one.meta.pop(VISIT, None)  # it is of no visit, even if it has the meta of one
                    if self.crawl is not None and not await self.crawl.wanted(one):
                        continue
                yield one
        except CloseSpider:
            await self._ended(request, fetched, items)
            raise
        if not again:
            await self._ended(request, fetched, items)

    def process_spider_exception(
        self, response: Response, exception: Exception, spider: Any = None
    ) -> None:
        """Whatever the callback made before it failed, the visit has come to nothing."""
        if not isinstance(exception, CloseSpider):
            fetched = fetched_of(response, self._now())
            if fetched.status is Status.OK:
                fetched.status, fetched.fault = Status.BROKEN, words_for(exception)
            noted = asyncio.ensure_future(self._ended(response.request, fetched, []))
            self._noted.add(noted)
            noted.add_done_callback(self._noted.discard)

    async def _ended(self, request: Any, fetched: Fetched, items: list[Any]) -> None:
        if self.crawl is not None:
            await self.crawl.ended(request, fetched, items)

    async def failed(self, failure: Any) -> None:
        """The errback of requests whose failure is an observation."""
        if isinstance(failure.value, HttpError):
            return  # its response comes by `process_spider_output`
        error, request = failure.value, failure.request
        fetched = Fetched(request.url, status_of(error), self._now(), fault=words_for(error))
        await self._ended(request, fetched, [])
        raise error  # then Scrapy logs it, as it does without an errback

    async def spider_closed(self) -> None:
        await asyncio.gather(*self._noted)
        if self.crawl is not None:
            await self.crawl.close()

    def _now(self) -> int:
        """World time, µs."""
        return int(self.clock.now().timestamp() * 1e6)


def _same_visit(request: Request, before: Any) -> bool:
    """Whether a callback asks once more for what it was called with; others may copy its meta."""
    visit = before.meta.get(VISIT)
    return visit is not None and request.meta.get(VISIT) == visit and request.url == before.url


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
        page = page or await self._added(request, fetched)
        if page is None:
            return
        for target in await self.world.targets(np.array([page.page])):
            plan = by_hand([target.page], self._now())
            await self.world.take(Job(0, plan, target, 0.0), fetched)

    async def _added(self, request: Request, fetched: Fetched) -> PageState | None:
        """Add the page of a request, if there is anything to keep of it."""
        value = fetched.reading.value if fetched.reading else None
        target = _stranger(request)
        if value is None or not target.host:
            return None
        page = NewPage(target.url, kind=value.kind, tags=self._tags(request))
        await self.world.store.add([page], at=fetched.at)
        return await self.world.store.page(target.url)

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
    """The page of a request that is not stored; without a host if it has no address."""
    try:
        return Target(0, *canonical(first_url(request)))
    except InputError:
        return Target(0, first_url(request), "")
