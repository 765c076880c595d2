"""What the shops of a mall show: offers in five markups, articles, listings, sitemaps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from email.utils import formatdate
from functools import cached_property
from hashlib import blake2b
from html import escape
from typing import Any
from xml.sax.saxutils import escape as escape_xml

import msgspec
import numpy as np

from salticus.lab.worlds.mall.stock import MallPage, Stock

SECOND = 1_000_000  # µs
_EVER = 2**63 - 1

_SHELF = 500  # links on a listing
_SITEMAP = 50_000  # URLs in a sitemap, the protocol's limit

_CONDITIONS = {name: f"{name.title()}Condition" for name in ("new", "used", "refurbished")}
_META_STOCK = {"InStock": "instock", "OutOfStock": "oos", "PreOrder": "preorder"}
_SCHEMA = "https://schema.org/"
_NOTE = "<p>Dispatched within two working days, returns accepted for thirty days.</p>"
ISO = "%Y-%m-%dT%H:%M:%SZ"

_CARD = (
    '<li class="card" data-slot="{:04d}"><a class="card__link" href="/more/{:04d}"><picture><source'
    ' type="image/webp" srcset="/img/{:04d}-320.webp 320w, /img/{:04d}-640.webp 640w"><img'
    ' src="/img/{:04d}.jpg" alt="" width="320" height="240" loading="lazy"></picture><span'
    ' class="card__name">Shoppers also looked at this, number {:04d}</span></a><button'
    ' class="button button--plain" type="button" data-add="{:04d}">Add to list</button></li>\n'
)
_CARD_SIZE = len(_CARD.format(*[0] * 7))
_TAIL = b"</ul></aside><footer><p>Shown %s</p></footer></body></html>\n"

SCRIPT = """\
const path = location.pathname;
fetch("/api" + path).then((answer) => answer.json()).then((product) => {
  const data = document.createElement("script");
  data.type = "application/ld+json";
  data.textContent = JSON.stringify(product);
  document.head.append(data);
  const main = document.querySelector("main");
  main.innerHTML = "<h1></h1><p class='price'></p>";
  main.querySelector("h1").textContent = product.name;
  main.querySelector(".price").textContent = product.offers.price;
});
"""


def page_head(page: MallPage, text: str) -> bytes:
    """A page up to the padding: an offer in its markup, else `text` as its main text."""
    title = escape(page.title)
    if page.kind == "offer":
        data, main = _written(page, text)
    else:
        data, main = _dated(page), f"<article><p>{escape(text)}</p></article>"
    return (
        f'<!DOCTYPE html><html lang="{escape(page.language)}"><head><meta charset="utf-8">'
        f"<title>{title}</title>{data}"
        '<link rel="stylesheet" href="/style.css"></head><body>'
        '<header><nav><a href="/">Home</a></nav></header>'
        f'<main>{main}</main><aside><ul class="cards">\n'
    ).encode()


def _dated(page: MallPage) -> str:
    """What the head of an article says of it, if it is known when it was published."""
    if page.published is None:
        return ""
    said = {"@context": "https://schema.org", "@type": "NewsArticle", "headline": page.title}
    said["datePublished"] = page.published
    return (
        f'<link rel="canonical" href="{escape(page.path)}">'
        f'<meta property="article:published_time" content="{page.published}">'
        f'<script type="application/ld+json">{json.dumps(said)}</script>'
    )


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


# ------------------------------------------------------------------------------- offers in markup


_PLAIN = (
    '<ol class="trail">{trail}</ol><h1>{title}</h1><p class="brand">{brand}</p>'
    '<p class="price">{price} {currency}</p><p class="stock {stock}">{stock}</p>' + _NOTE
)

STYLES = {
    "jsonld": ('<script type="application/ld+json">{data}</script>', _PLAIN),
    "microdata": (
        "",
        '<div itemscope itemtype="https://schema.org/Product">'
        '<h1 itemprop="name">{title}</h1>{brands}<meta itemprop="category" content="{category}">'
        '<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">'
        '<meta itemprop="priceCurrency" content="{currency}">'
        '<p class="price" itemprop="price" content="{price}">{price} {currency}</p>'
        '<link itemprop="availability" href="{availability}">'
        '<link itemprop="itemCondition" href="{condition}"></div></div>' + _NOTE,
    ),
    "rdfa": (
        "",
        '<div vocab="https://schema.org/" typeof="Product"><h1 property="name">{title}</h1>{brands}'
        '<div property="offers" typeof="Offer">'
        '<meta property="priceCurrency" content="{currency}">'
        '<span property="price" content="{price}">{price}</span>'
        '<link property="availability" href="{availability}">'
        '<link property="itemCondition" href="{condition}"></div></div>' + _NOTE,
    ),
    "opengraph": (
        '<meta property="og:type" content="product"><meta property="og:title" content="{title}">'
        '<meta property="product:brand" content="{brand}">'
        '<meta property="product:price:amount" content="{price}">'
        '<meta property="product:price:currency" content="{currency}">'
        '<meta property="product:availability" content="{meta_stock}">',
        _PLAIN,
    ),
    # nothing but a shell: the offer comes from ``/api`` by script
    "script": ('<script src="/app.js" defer></script>', "<p>Please enable JavaScript.</p>"),
}
"""How an offer stands in the head and in the main part of a page, by markup."""

_PROPERTY = {"microdata": "itemprop", "rdfa": "property"}


def _written(page: MallPage, text: str) -> tuple[str, str]:
    """The head and the main part of an offer with the value `text`, in the page's markup."""
    known = product(page, text)
    offer, stock, brand = known["offers"], text.split(" ")[2], escape(page.brand or "")
    parts = {
        "data": json.dumps(known, ensure_ascii=False).replace("<", "\\u003c"),
        "title": escape(page.title),
        "brand": brand,
        "brands": brand and f'<span {_PROPERTY.get(page.markup)}="brand">{brand}</span>',
        "category": escape(page.category or ""),
        "trail": "".join(f"<li>{escape(c)}</li>" for c in (page.category or "").split(" > ")),
        "price": offer["price"],
        "currency": offer["priceCurrency"],
        "availability": offer["availability"],
        "condition": offer["itemCondition"],
        "stock": stock,
        "meta_stock": _META_STOCK.get(stock, stock),
    }
    head, main = STYLES[page.markup]
    return head.format_map(parts), main.format_map(parts)


def product(page: MallPage, text: str) -> dict[str, Any]:
    """What JSON-LD says of an offer with the value `text`."""
    price, currency, availability = text.split(" ")
    decimals = len(price.partition(".")[2])  # shops write two of them at least
    known = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": page.title,
        "sku": page.page_id,
        "category": page.category,
        "brand": page.brand and {"@type": "Brand", "name": page.brand},
        "offers": {
            "@type": "Offer",
            "url": page.path,
            "price": price if decimals >= 2 else f"{Decimal(price):.2f}",
            "priceCurrency": currency,
            "availability": _SCHEMA + availability,
            "itemCondition": _SCHEMA + _CONDITIONS.get(page.condition, page.condition),
        },
    }
    return {key: value for key, value in known.items() if value is not None}


# ------------------------------------------------------------------------------------- the ways in


class Shelves:
    """The listings of one shop; they show what exists at the time."""

    def __init__(self, stock: Stock, host: str, rows: list[int]) -> None:
        self.stock = stock
        self.host = host
        self.rows = rows

    @cached_property
    def shelves(self) -> dict[str, list[int]]:
        """Rows by category, in order of the names."""
        found: dict[str, list[int]] = {}
        for row in self.rows:
            found.setdefault(_slug(self.stock.pages[row]), []).append(row)
        return dict(sorted(found.items()))

    def home(self) -> bytes:
        return listing(self.host, [(f"/c/{name}", name) for name in self.shelves])

    def category(self, path: str, when: datetime) -> bytes | None:
        """Links to the pages of a category, 500 at a time: ``/c/name``, ``/c/name/2`` and so on."""
        name, _, number = path.removeprefix("/c/").partition("/")
        rows = self.shelves.get(name, [])
        start = (int(number) - 1) * _SHELF if number.isdecimal() else 0
        if not 0 <= start < len(rows) or number not in ("", str(start // _SHELF + 1)):
            return None
        links = [
            (self.stock.pages[row].path, self.stock.pages[row].title)
            for row in rows[start : start + _SHELF]
            if self.stock.value(row, when) is not None
        ]
        if start + _SHELF < len(rows):
            links.append((f"/c/{name}/{start // _SHELF + 2}", "more"))
        return listing(name, links)

    def sitemap(self, path: str, when: datetime) -> bytes | None:
        """``/sitemap.xml``: the shop's pages with the time of their last change; an index of
        ``/sitemap-1.xml`` and so on if they do not fit into one."""
        number = re.fullmatch(r"/sitemap(?:-([1-9]\d{0,3}))?\.xml", path)
        if number is None:
            return None
        parts = -(-len(self.rows) // _SITEMAP)
        if number[1] is None and parts > 1:
            names = (f"http://{self.host}/sitemap-{part + 1}.xml" for part in range(parts))
            return _sitemap("sitemapindex", "sitemap", ((n, f"{when:{ISO}}") for n in names))
        start = (int(number[1] or 1) - 1) * _SITEMAP
        if number[1] and (parts <= 1 or start >= len(self.rows)):
            return None
        return _sitemap("urlset", "url", self._listed(self.rows[start : start + _SITEMAP], when))

    def _listed(self, rows: list[int], when: datetime) -> Iterator[tuple[str, str]]:
        points = self.stock.values_at(when)[rows]
        times = np.datetime_as_string(self.stock.times[points], unit="s")
        for row, point, changed in zip(rows, points, times, strict=True):
            if point >= 0 and self.stock.values[point] is not None:
                yield f"http://{self.host}{self.stock.pages[row].path}", f"{changed}Z"


def _slug(page: MallPage) -> str:
    """The category of a page as part of a path.

    >>> _slug(MallPage("1", 0, "/o/1", "Lamp", category="Home > Lighting"))
    'home-lighting'
    """
    return "-".join(re.findall(r"[a-z0-9]+", (page.category or "").lower())) or "other"


def listing(title: str, links: Iterable[tuple[str, str]], head: str = "") -> bytes:
    """A page of links (path, text), with more in its head."""
    items = "".join(f'<li><a href="{escape(path)}">{escape(text)}</a></li>' for path, text in links)
    name = escape(title)
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{name}</title>{head}</head>'
        f"<body><h1>{name}</h1><ul>{items}</ul></body></html>\n"
    ).encode()


def robots(disallowed: str, crawl_delay: float | None, sitemaps: Iterable[str]) -> bytes:
    """The shop's robots.txt, with the URLs of its sitemaps."""
    delay = "" if crawl_delay is None else f"Crawl-delay: {crawl_delay:g}\n"
    rules = f"User-agent: *\nDisallow: {disallowed}\n{delay}"
    return "\n".join([rules, *(f"Sitemap: {url}" for url in sitemaps), ""]).encode()


def _sitemap(root: str, item: str, entries: Iterable[tuple[str, str]]) -> bytes:
    """A sitemap of (URL, lastmod)."""
    body = "".join(
        f"<{item}><loc>{escape_xml(url)}</loc><lastmod>{lastmod}</lastmod></{item}>\n"
        for url, lastmod in entries
    )
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f'{head}<{root} xmlns="{space}">\n{body}</{root}>\n'.encode()


# -------------------------------------------------------------------------- a page at some moment


class DisplayedPage(msgspec.Struct, gc=False):
    """A page from `since` until `until` (µs): `status` is 200, 404 before its birth, 410 if gone.

    `sole` is False if the page changed more than once in the second of its last change: then
    Last-Modified cannot tell its values apart.
    """

    since: int
    until: int
    status: int
    value: str | None = None
    etag: str = ""
    modified: str = ""
    sole: bool = True
    head: bytes = b""


def show(stock: Stock, row: int, world: int) -> DisplayedPage:
    """Page `row` at world time `world` (µs)."""
    times = stock.times.view(np.int64)
    point = stock.point(row, np.datetime64(world, "us"))
    first, end = int(stock.offsets[row]), int(stock.offsets[row + 1])
    if point < 0:
        return DisplayedPage(-_EVER, int(times[first]) if first < end else _EVER, 404)
    since = int(times[point])
    until = int(times[point + 1]) if point + 1 < end else _EVER
    text = stock.values[point]
    if text is None:
        return DisplayedPage(since, until, 410)
    return DisplayedPage(
        since=since,
        until=until,
        status=200,
        value=text,
        etag=f'W/"{blake2b(text.encode(), digest_size=8).hexdigest()}"',
        modified=formatdate(since // SECOND, usegmt=True),
        sole=point == first or int(times[point - 1]) // SECOND < since // SECOND,
        head=page_head(stock.pages[row], text),
    )


def unmodified(shown: DisplayedPage, headers: Mapping[str, str]) -> bool:
    """Whether the client's copy is still good, by ETag if it sent one, else by Last-Modified.

    A date must be the very one that was sent: a later one, of whatever clock, proves nothing.
    """
    tags = headers.get("If-None-Match")
    if tags is not None:
        known = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return "*" in known or shown.etag.removeprefix("W/") in known
    return shown.sole and headers.get("If-Modified-Since") == shown.modified
