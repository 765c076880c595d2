"""The bytes of a mall: offers with JSON-LD, articles, listings, robots.txt, sitemaps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from html import escape
from xml.sax.saxutils import escape as escape_xml

from salticus.worlds.mall.stock import Page

_CONDITIONS = {
    "new": "NewCondition",
    "used": "UsedCondition",
    "refurbished": "RefurbishedCondition",
}

_CARD = (
    '<li class="card" data-slot="{:04d}"><a class="card__link" href="/more/{:04d}"><picture><source'
    ' type="image/webp" srcset="/img/{:04d}-320.webp 320w, /img/{:04d}-640.webp 640w"><img'
    ' src="/img/{:04d}.jpg" alt="" width="320" height="240" loading="lazy"></picture><span'
    ' class="card__name">Shoppers also looked at this, number {:04d}</span></a><button'
    ' class="button button--plain" type="button" data-add="{:04d}">Add to list</button></li>\n'
)
_TAIL = b"</ul></aside><footer><p>Shown %s</p></footer></body></html>\n"


def page_head(page: Page, text: str) -> bytes:
    """A page up to the padding: for an offer with JSON-LD, else with `text` as its main text."""
    title = escape(page.title)
    data = _json_ld(page, text) if page.kind == "offer" else ""
    main = (
        _offer(page, text) if page.kind == "offer" else f"<article><p>{escape(text)}</p></article>"
    )
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


def _json_ld(page: Page, text: str) -> str:
    price, currency, availability = text.split(" ")
    condition = _CONDITIONS.get(page.condition, page.condition)
    product = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": page.title,
        "sku": page.page_id,
        "category": page.category,
        "brand": page.brand and {"@type": "Brand", "name": page.brand},
        "offers": {
            "@type": "Offer",
            "url": page.path,
            "price": shown_price(price),
            "priceCurrency": currency,
            "availability": f"https://schema.org/{availability}",
            "itemCondition": f"https://schema.org/{condition}",
        },
    }
    known = {key: value for key, value in product.items() if value is not None}
    data = json.dumps(known, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/ld+json">{data}</script>'


def shown_price(price: str) -> str:
    """A price as shops write it, with two decimals at least.

    >>> shown_price("19.9"), shown_price("20"), shown_price("1.678")
    ('19.90', '20.00', '1.678')
    """
    decimals = len(price.partition(".")[2])
    return price if decimals >= 2 else f"{Decimal(price):.2f}"


def _offer(page: Page, text: str) -> str:
    price, currency, availability = text.split(" ")
    trail = "".join(f"<li>{escape(part)}</li>" for part in (page.category or "").split(" > "))
    return (
        f'<ol class="trail">{trail}</ol><h1>{escape(page.title)}</h1>'
        f'<p class="brand">{escape(page.brand or "")}</p>'
        f'<p class="price">{shown_price(price)} {currency}</p>'
        f'<p class="stock {availability}">{availability}</p>'
        "<p>Dispatched within two working days, returns accepted for thirty days.</p>"
    )


_CARD_SIZE = len(_CARD.format(*[0] * 7))
