"""The add-on and its spider middleware: where requests and items pass between spider and engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.spidermiddlewares.httperror import HttpError

from salticus.crawl.opening import clock_of
from salticus.errors import ConfigError, SalticusError
from salticus.scrapy.crawl import ScrapyCrawl
from salticus.scrapy.fetcher import VISIT, broken, fetched_of, status_of, words_for
from salticus.scrapy.items import taken
from salticus.scrapy.options import Options
from salticus.types import Fetched

logger = logging.getLogger(__name__)

_PRIORITY = 10  # next to the engine: what others filter never counts, what they add does


class Salticus:
    """Puts the spider middleware in its place.

    Its settings are SALTICUS_CONFIG, SALTICUS_CONTINUOUS and SALTICUS_ONLY_PLANNED; see `Options`.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        logging.getLogger("numba").setLevel(logging.WARNING)  # Scrapy shows what others debug
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", Revisits, _PRIORITY)


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
                elif not await self._passes(one):
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
            fetched = broken(fetched_of(response, self._now()), words_for(exception))
            noted = asyncio.ensure_future(self._ended(response.request, fetched, []))
            self._noted.add(noted)
            noted.add_done_callback(self._noted.discard)

    async def _passes(self, request: Request) -> bool:
        """Whether a request that a callback made goes on; it is of no visit, even if it has the
        meta of one."""
        request.meta.pop(VISIT, None)
        return self.crawl is None or await self.crawl.wanted(request)

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
