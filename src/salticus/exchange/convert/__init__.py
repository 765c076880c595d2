"""Other people's data as logs: the source formats, by name."""

BUILTIN = {
    "prices": "salticus.exchange.convert.table:prices",
    "scrapy": "salticus.exchange.convert.table:scrapy",
    "digests": "salticus.exchange.convert.table:digests",
    "changedetection": "salticus.exchange.convert.changedetection:read",
    "heissepreise": "salticus.exchange.convert.heissepreise:read",
}
