"""Other people's data as logs: one file a source format."""

BUILTIN = {
    "prices": "salticus.log.convert.prices:read",
    "scrapy": "salticus.log.convert.scrapy:read",
    "digests": "salticus.log.convert.digests:read",
    "changedetection": "salticus.log.convert.changedetection:read",
    "heissepreise": "salticus.log.convert.heissepreise:read",
}
