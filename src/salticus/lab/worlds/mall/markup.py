"""The ways in which shops write an offer down: JSON-LD, microdata, RDFa, OpenGraph, by script."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from html import escape
from typing import Any, NamedTuple

from salticus.lab.worlds.mall.stock import MallPage

_CONDITIONS = {
    "new": "NewCondition",
    "used": "UsedCondition",
    "refurbished": "RefurbishedCondition",
}
_META_STOCK = {"InStock": "instock", "OutOfStock": "oos", "PreOrder": "preorder"}
_NOTE = "<p>Dispatched within two working days, returns accepted for thirty days.</p>"

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


class Written(NamedTuple):
    """An offer as it stands in the head and in the main part of a page."""

    head: str
    main: str


class _Terms(NamedTuple):
    """An offer's value in its parts, as shops show them."""

    price: str
    currency: str
    availability: str
    condition: str

    @classmethod
    def of(cls, page: MallPage, text: str) -> _Terms:
        price, currency, availability = text.split(" ")
        condition = _CONDITIONS.get(page.condition, page.condition)
        return cls(shown_price(price), currency, availability, condition)


def written(page: MallPage, text: str) -> Written:
    """An offer with the value `text`, in the page's markup."""
    return _STYLES[page.markup](page, _Terms.of(page, text))


def product(page: MallPage, text: str) -> dict[str, Any]:
    """What JSON-LD says of an offer."""
    return _product(page, _Terms.of(page, text))


def shown_price(price: str) -> str:
    """A price as shops write it, with two decimals at least.

    >>> shown_price("19.9"), shown_price("20"), shown_price("1.678")
    ('19.90', '20.00', '1.678')
    """
    decimals = len(price.partition(".")[2])
    return price if decimals >= 2 else f"{Decimal(price):.2f}"


def _product(page: MallPage, terms: _Terms) -> dict[str, Any]:
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
            "price": terms.price,
            "priceCurrency": terms.currency,
            "availability": f"https://schema.org/{terms.availability}",
            "itemCondition": f"https://schema.org/{terms.condition}",
        },
    }
    return {key: value for key, value in known.items() if value is not None}


def _json_ld(page: MallPage, terms: _Terms) -> Written:
    data = json.dumps(_product(page, terms), ensure_ascii=False).replace("<", "\\u003c")
    return Written(f'<script type="application/ld+json">{data}</script>', _plain(page, terms))


def _plain(page: MallPage, terms: _Terms) -> str:
    trail = "".join(f"<li>{escape(part)}</li>" for part in (page.category or "").split(" > "))
    return (
        f'<ol class="trail">{trail}</ol><h1>{escape(page.title)}</h1>'
        f'<p class="brand">{escape(page.brand or "")}</p>'
        f'<p class="price">{terms.price} {terms.currency}</p>'
        f'<p class="stock {terms.availability}">{terms.availability}</p>{_NOTE}'
    )


def _microdata(page: MallPage, terms: _Terms) -> Written:
    brand = f'<span itemprop="brand">{escape(page.brand)}</span>' if page.brand else ""
    category = f'<meta itemprop="category" content="{escape(page.category or "")}">'
    return Written(
        "",
        '<div itemscope itemtype="https://schema.org/Product">'
        f'<h1 itemprop="name">{escape(page.title)}</h1>{brand}{category}'
        '<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">'
        f'<meta itemprop="priceCurrency" content="{terms.currency}">'
        f'<p class="price" itemprop="price" content="{terms.price}">'
        f"{terms.price} {terms.currency}</p>"
        f'<link itemprop="availability" href="https://schema.org/{terms.availability}">'
        f'<link itemprop="itemCondition" href="https://schema.org/{terms.condition}">'
        f"</div></div>{_NOTE}",
    )


def _rdfa(page: MallPage, terms: _Terms) -> Written:
    brand = f'<span property="brand">{escape(page.brand)}</span>' if page.brand else ""
    return Written(
        "",
        '<div vocab="https://schema.org/" typeof="Product">'
        f'<h1 property="name">{escape(page.title)}</h1>{brand}'
        '<div property="offers" typeof="Offer">'
        f'<meta property="priceCurrency" content="{terms.currency}">'
        f'<span property="price" content="{terms.price}">{terms.price}</span>'
        f'<link property="availability" href="https://schema.org/{terms.availability}">'
        f'<link property="itemCondition" href="https://schema.org/{terms.condition}">'
        f"</div></div>{_NOTE}",
    )


def _opengraph(page: MallPage, terms: _Terms) -> Written:
    said = {
        "og:type": "product",
        "og:title": page.title,
        "product:brand": page.brand or "",
        "product:price:amount": terms.price,
        "product:price:currency": terms.currency,
        "product:availability": _META_STOCK.get(terms.availability, terms.availability),
    }
    head = "".join(f'<meta property="{name}" content="{escape(v)}">' for name, v in said.items())
    return Written(head, _plain(page, terms))


def _script(page: MallPage, terms: _Terms) -> Written:
    """Nothing but a shell: the offer comes from ``/api`` by script."""
    return Written('<script src="/app.js" defer></script>', "<p>Please enable JavaScript.</p>")


_STYLES: dict[str, Callable[[MallPage, _Terms], Written]] = {
    "jsonld": _json_ld,
    "microdata": _microdata,
    "rdfa": _rdfa,
    "opengraph": _opengraph,
    "script": _script,
}
STYLES = tuple(_STYLES)
