"""What the shops of a mall show: offers in five markups, articles, listings, sitemaps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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

_CONDITIONS = {
    "new": "NewCondition",
    "used": "UsedCondition",
    "refurbished": "RefurbishedCondition",
}
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
        data, main = STYLES[page.markup](page, product(page, text))
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


# ------------------------------------------------------------------------------- offers in markup


def product(page: MallPage, text: str) -> dict[str, Any]:
    """What JSON-LD says of an offer with the value `text`."""
    price, currency, availability = text.split(" ")
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
            "price": _shown_price(price),
            "priceCurrency": currency,
            "availability": _SCHEMA + availability,
            "itemCondition": _SCHEMA + _CONDITIONS.get(page.condition, page.condition),
        },
    }
    return {key: value for key, value in known.items() if value is not None}


def _shown_price(price: str) -> str:
    """A price as shops write it, with two decimals at least.

    >>> _shown_price("19.9"), _shown_price("20"), _shown_price("1.678")
    ('19.90', '20.00', '1.678')
    """
    decimals = len(price.partition(".")[2])
    return price if decimals >= 2 else f"{Decimal(price):.2f}"


Markup = Callable[[MallPage, Mapping[str, Any]], tuple[str, str]]
"""A page and its product → what stands in the head of the page, and in its main part."""


def _json_ld(page: MallPage, known: Mapping[str, Any]) -> tuple[str, str]:
    data = json.dumps(known, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/ld+json">{data}</script>', _plain(page, known["offers"])


def _plain(page: MallPage, offer: Mapping[str, str]) -> str:
    trail = "".join(f"<li>{escape(part)}</li>" for part in (page.category or "").split(" > "))
    stock = offer["availability"].removeprefix(_SCHEMA)
    return (
        f'<ol class="trail">{trail}</ol><h1>{escape(page.title)}</h1>'
        f'<p class="brand">{escape(page.brand or "")}</p>'
        f'<p class="price">{offer["price"]} {offer["priceCurrency"]}</p>'
        f'<p class="stock {stock}">{stock}</p>{_NOTE}'
    )


def _microdata(page: MallPage, known: Mapping[str, Any]) -> tuple[str, str]:
    offer = known["offers"]
    brand = f'<span itemprop="brand">{escape(page.brand)}</span>' if page.brand else ""
    category = f'<meta itemprop="category" content="{escape(page.category or "")}">'
    return "", (
        '<div itemscope itemtype="https://schema.org/Product">'
        f'<h1 itemprop="name">{escape(page.title)}</h1>{brand}{category}'
        '<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">'
        f'<meta itemprop="priceCurrency" content="{offer["priceCurrency"]}">'
        f'<p class="price" itemprop="price" content="{offer["price"]}">'
        f"{offer['price']} {offer['priceCurrency']}</p>"
        f'<link itemprop="availability" href="{offer["availability"]}">'
        f'<link itemprop="itemCondition" href="{offer["itemCondition"]}">'
        f"</div></div>{_NOTE}"
    )


def _rdfa(page: MallPage, known: Mapping[str, Any]) -> tuple[str, str]:
    offer = known["offers"]
    brand = f'<span property="brand">{escape(page.brand)}</span>' if page.brand else ""
    return "", (
        '<div vocab="https://schema.org/" typeof="Product">'
        f'<h1 property="name">{escape(page.title)}</h1>{brand}'
        '<div property="offers" typeof="Offer">'
        f'<meta property="priceCurrency" content="{offer["priceCurrency"]}">'
        f'<span property="price" content="{offer["price"]}">{offer["price"]}</span>'
        f'<link property="availability" href="{offer["availability"]}">'
        f'<link property="itemCondition" href="{offer["itemCondition"]}">'
        f"</div></div>{_NOTE}"
    )


def _opengraph(page: MallPage, known: Mapping[str, Any]) -> tuple[str, str]:
    offer = known["offers"]
    stock = offer["availability"].removeprefix(_SCHEMA)
    said = {
        "og:type": "product",
        "og:title": page.title,
        "product:brand": page.brand or "",
        "product:price:amount": offer["price"],
        "product:price:currency": offer["priceCurrency"],
        "product:availability": _META_STOCK.get(stock, stock),
    }
    head = "".join(f'<meta property="{name}" content="{escape(v)}">' for name, v in said.items())
    return head, _plain(page, offer)


def _script(page: MallPage, known: Mapping[str, Any]) -> tuple[str, str]:
    """Nothing but a shell: the offer comes from ``/api`` by script."""
    return '<script src="/app.js" defer></script>', "<p>Please enable JavaScript.</p>"


STYLES: Mapping[str, Markup] = {
    "jsonld": _json_ld,
    "microdata": _microdata,
    "rdfa": _rdfa,
    "opengraph": _opengraph,
    "script": _script,
}


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
        """Links to all categories."""
        return _listing(self.host, [(f"/c/{name}", name) for name in self.shelves])

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
        return _listing(name, links)

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


def _listing(title: str, links: Iterable[tuple[str, str]]) -> bytes:
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
