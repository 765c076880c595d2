"""A spider that knows nothing of Salticus."""

import json
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.http import TextResponse


class Offers(scrapy.Spider):
    """Follows every link of a shop and makes an item of every offer.

    ``scrapy crawl offers -a home=http://127.0.0.1:8000/``
    """

    name = "offers"

    def __init__(self, home: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.start_urls = home.split(",")

    def parse(self, response: TextResponse) -> Iterator[scrapy.Request]:
        for link in response.css("a::attr(href)").getall():
            found = self.parse_offer if link.startswith("/o/") else self.parse
            yield response.follow(link, found)

    def parse_offer(self, response: TextResponse) -> Iterator[dict[str, Any]]:
        script = response.css('script[type="application/ld+json"]::text').get("")
        product = json.loads(script)
        offer = product["offers"]
        yield {
            "title": product["name"],
            "price": offer["price"],
            "currency": offer["priceCurrency"],
            "availability": offer["availability"],
        }
