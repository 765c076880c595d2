"""Why a page yields no price or no text, judged by its mark-up."""

from __future__ import annotations

import re

from salticus.types import Value

_LOOKED_AT = 2_000_000  # bytes
_FEW = 30  # words; a page with fewer is a shell
_UNSEEN = ["script", "style", "noscript", "template", "svg"]
_STYLES = {
    "JSON-LD": re.compile(rb"application/ld\+json", re.IGNORECASE),
    "microdata": re.compile(rb"\bitemprop\s*=", re.IGNORECASE),
    "OpenGraph": re.compile(rb"\b(?:property|name)\s*=\s*[\"']?(?:og|product):", re.IGNORECASE),
}
_SHOP = re.compile(
    rb"schema\.org/(?:Product|Offer)|\"@type\"\s*:\s*\"(?:Product|Offer)|product:price"
    rb"|class=[\"'][^\"'>]{0,80}price|add[-_ ]to[-_ ](?:cart|basket)",
    re.IGNORECASE,
)


def styles(body: bytes) -> list[str]:
    """The styles of mark-up that a page uses, of those that can state a price.

    >>> styles(b'<b itemprop="price">9</b>')
    ['microdata']
    """
    return [name for name, trace in _STYLES.items() if trace.search(body[:_LOOKED_AT])]


def sells(body: bytes) -> bool:
    """Whether a page looks like one that sells something."""
    return _SHOP.search(body[:_LOOKED_AT]) is not None


def shell(body: bytes) -> bool:
    """Whether a page shows next to nothing until its scripts have run.

    >>> shell(b"<div id=app></div><script src=app.js></script>")
    True
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(body[:_LOOKED_AT])
    if tree.css_first("script") is None or tree.body is None:
        return False
    tree.strip_tags(_UNSEEN)
    return len((tree.body.text(separator=" ") if tree.body else "").split()) < _FEW


def why_no_price(body: bytes) -> str:
    """What to do about a page without a price."""
    if shell(body):
        return "The page is an empty shell that needs JavaScript: [[pages]] with render = true."
    found = styles(body)
    if not found:
        return (
            "The page has no JSON-LD, microdata or OpenGraph. Say where the price stands: "
            '[[pages]] with select = { "price" = "css:..." }.'
        )
    return (
        f"The page has {' and '.join(found)}, but no price in it. Say where it stands: "
        '[[pages]] with select = { "price" = "css:..." }.'
    )


def doubt(body: bytes, kind: str | None, value: Value | None) -> tuple[str, str] | None:
    """What is missing from what was read of a page of that kind, and advice; None if nothing is."""
    if kind == "source":
        return None
    if value is None:
        if kind == "offer":
            return "no price was found", why_no_price(body)
        empty = "The page is an empty shell that needs JavaScript: [[pages]] with render = true."
        other = "It may be an image, a file or an error page. Look at it in a browser."
        return "no value was found", empty if shell(body) else other
    if value.kind != "offer" and kind is None and sells(body):
        return "it looks like an offer, but no price was found", why_no_price(body)
    return None
