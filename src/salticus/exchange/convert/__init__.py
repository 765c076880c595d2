"""Other people's data as logs: one file a source format."""

BUILTIN = {
    "prices": "salticus.exchange.convert.prices:read",
    "scrapy": "salticus.exchange.convert.scrapy:read",
    "digests": "salticus.exchange.convert.digests:read",
    "changedetection": "salticus.exchange.convert.changedetection:read",
    "heissepreise": "salticus.exchange.convert.heissepreise:read",
}
