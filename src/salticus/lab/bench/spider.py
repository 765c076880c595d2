"""Contestant: a bare Scrapy spider with the same extraction, nothing stored."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import scrapy
from scrapy.crawler import CrawlerProcess

from salticus.extract.base import Content, Extractor
from salticus.extract.links import links_of
from salticus.extract.offer import Offer
from salticus.lab.bench.fetch import BenchSetup, clocks, report


class OfferSpider(scrapy.Spider):
    """Fetches every page once and finds its price."""

    name = "offers"

    def __init__(self, course: BenchSetup) -> None:
        super().__init__()
        self.course = course
        self.parts: list[Extractor] = [Offer()]
        if course.mixed:
            from salticus.extract.markup import Markup

            self.parts.append(Markup())
        self.pages = self.prices = self.links = 0
        self.began = clocks()

    async def start(self) -> AsyncIterator[Any]:
        self.began = clocks()
        for url in self.course.urls:
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response: Any) -> None:
        self.pages += 1
        content = Content(response.url, response.body, "text/html", "utf-8")
        self.prices += any(part.extract(content) for part in self.parts)
        if self.course.mixed:
            self.links += len(links_of(content))

    def closed(self, reason: str) -> None:
        report(self.began, clocks(), self.pages, self.prices)


if __name__ == "__main__":
    course = msgspec.json.decode(sys.argv[2], type=BenchSetup)
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": course.concurrency,
            "CONCURRENT_REQUESTS_PER_DOMAIN": course.per_host,
            "DOWNLOAD_DELAY": 0,
            "LOG_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(type("Spider", (OfferSpider,), {}), course=course)
    process.start()
