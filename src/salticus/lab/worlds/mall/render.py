"""The bytes of a mall: offers, articles, listings, robots.txt, sitemaps."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from xml.sax.saxutils import escape as escape_xml

from salticus.lab.worlds.mall.markup import written
from salticus.lab.worlds.mall.stock import MallPage

_CARD = (
    '<li class="card" data-slot="{:04d}"><a class="card__link" href="/more/{:04d}"><picture><source'
    ' type="image/webp" srcset="/img/{:04d}-320.webp 320w, /img/{:04d}-640.webp 640w"><img'
    ' src="/img/{:04d}.jpg" alt="" width="320" height="240" loading="lazy"></picture><span'
    ' class="card__name">Shoppers also looked at this, number {:04d}</span></a><button'
    ' class="button button--plain" type="button" data-add="{:04d}">Add to list</button></li>\n'
)
_TAIL = b"</ul></aside><footer><p>Shown %s</p></footer></body></html>\n"


def page_head(page: MallPage, text: str) -> bytes:
    """A page up to the padding: an offer in its markup, else `text` as its main text."""
    title = escape(page.title)
    if page.kind == "offer":
        data, main = written(page, text)
    else:
        data, main = "", f"<article><p>{escape(text)}</p></article>"
    return (
        f'<!DOCTYPE html><html lang="{escape(page.language)}"><head><meta charset="utf-8">'
        f"<title>{title}</title>{data}"
        '<link rel="stylesheet" href="/style.css"></head><body>'
        '<header><nav><a href="/">Home</a></nav></header>'
        f'<main>{main}</main><aside><ul class="cards">\n'
    ).encode()


class Padding:
    """Fills pages up to `size` bytes with the markup of a shop; 0 = no padding."""

    def __init__(self, size: int) -> None:
        self.size = size
        cards = [_CARD.format(*[slot % 10_000] * 7) for slot in range(size // _CARD_SIZE)]
        self._cards = "".join(cards).encode()

    def page(self, head: bytes, shown: str) -> bytes:
        """The whole page; `shown` (a time) differs with every visit, the value does not."""
        tail = _TAIL % shown.encode()
        room = max(0, self.size - len(head) - len(tail))
        cards = room // _CARD_SIZE * _CARD_SIZE
        return b"".join((head, self._cards[:cards], b" " * (room - cards), tail))


def listing(title: str, links: Iterable[tuple[str, str]]) -> bytes:
    """A page of links (path, text)."""
    items = "".join(f'<li><a href="{escape(path)}">{escape(text)}</a></li>' for path, text in links)
    name = escape(title)
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{name}</title></head>'
        f"<body><h1>{name}</h1><ul>{items}</ul></body></html>\n"
    ).encode()


def robots(host: str, disallowed: str, crawl_delay: float | None) -> bytes:
    """The shop's robots.txt."""
    delay = "" if crawl_delay is None else f"Crawl-delay: {crawl_delay:g}\n"
    rules = f"User-agent: *\nDisallow: {disallowed}\n{delay}"
    return f"{rules}\nSitemap: http://{host}/sitemap.xml\n".encode()


def sitemap(entries: Iterable[tuple[str, str]]) -> bytes:
    """A sitemap of (URL, lastmod)."""
    return _sitemap("urlset", "url", entries)


def sitemap_index(entries: Iterable[tuple[str, str]]) -> bytes:
    """A sitemap of sitemaps (URL, lastmod)."""
    return _sitemap("sitemapindex", "sitemap", entries)


def _sitemap(root: str, item: str, entries: Iterable[tuple[str, str]]) -> bytes:
    body = "".join(
        f"<{item}><loc>{escape_xml(url)}</loc><lastmod>{lastmod}</lastmod></{item}>\n"
        for url, lastmod in entries
    )
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f'{head}<{root} xmlns="{space}">\n{body}</{root}>\n'.encode()


_CARD_SIZE = len(_CARD.format(*[0] * 7))
