"""The feeds that an HTML page announces in its head."""

from __future__ import annotations

from msgspec.structs import replace

from salticus.extract.address import address
from salticus.extract.base import Content
from salticus.extract.document import document_of

_FEEDS = (
    "link[rel~=alternate][type='application/rss+xml' i], "
    "link[rel~=alternate][type='application/atom+xml' i], "
    "link[rel~=alternate][type='application/feed+json' i]"
)
_MOST = 20
_HEAD = 200_000  # bytes in which a page has its head


def announced_feeds(content: Content) -> list[str]:
    """The addresses of the feeds that a page announces, each once, in order; twenty at most.

    >>> page = b'<link rel="alternate" type="application/rss+xml" href="/rss"><a href="/atom">x</a>'
    >>> announced_feeds(Content("http://news.example/", page))
    ['http://news.example/rss']
    """
    head = document_of(replace(content, body=content.body[:_HEAD])).nodes
    found = (node.attributes.get("href") or "" for node in head.css(_FEEDS))
    places = (address(raw, content.url) for raw in found)
    return list(dict.fromkeys(place.url for place in places if place))[:_MOST]
