"""The feeds that an HTML page announces in its head."""

from __future__ import annotations

from salticus.extract.base import Content
from salticus.extract.document import document_of
from salticus.extract.links import address

_FEEDS = (
    "link[rel~=alternate][type='application/rss+xml' i], "
    "link[rel~=alternate][type='application/atom+xml' i], "
    "link[rel~=alternate][type='application/feed+json' i]"
)
_MOST = 20


def announced_feeds(content: Content) -> list[str]:
    """The addresses of the feeds that a page announces, each once, in order; twenty at most.

    >>> page = b'<link rel="alternate" type="application/rss+xml" href="/rss"><a href="/atom">x</a>'
    >>> announced_feeds(Content("http://news.example/", page))
    ['http://news.example/rss']
    """
    found = (node.attributes.get("href") or "" for node in document_of(content).nodes.css(_FEEDS))
    places = (address(raw, content.url) for raw in found)
    return list(dict.fromkeys(place.url for place in places if place))[:_MOST]
