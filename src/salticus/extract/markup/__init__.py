"""Offers from every syntax in which shops state them, read from the whole document."""

from __future__ import annotations

from salticus.extract.base import Content
from salticus.types import Value

MARKS = (b"itemprop", b"typeof", b"price:", b"twitter:label", b"ld+json", b"ld&#")
MAX_BODY = 32 * 1024 * 1024


def applies(content: Content) -> bool:
    """Whether a page has any mark of a syntax that states offers; costs microseconds.

    >>> applies(Content("http://shop.example/1", b"<p>19.90"))
    False
    """
    body = content.body
    if b"\0" in body[:200]:  # UTF-16 has to be decoded first
        return True
    # From the end, because rfind is two to four times as fast as find.
    if any(body.rfind(mark) >= 0 for mark in MARKS):
        return True
    folded = body.lower()
    return any(folded.rfind(mark) >= 0 for mark in MARKS)


class Markup:
    """Offers from JSON-LD, microdata, RDFa-lite and the meta elements of OpenGraph.

    The text is that of the part ``offer``, and so is the choice among products and offers. Where
    syntaxes disagree, JSON-LD counts before microdata, RDFa and meta elements; what one leaves
    out, the next completes, if they are about the same product. A page that states no offer in
    any of them has none: no price is ever guessed from its text.

    >>> page = b'<p itemscope itemtype="//schema.org/Product"><b itemprop="price">19,90 EUR'
    >>> Markup().extract(Content("http://shop.example/1", page)).text
    '19.9 EUR'
    """

    fast = False

    def extract(self, content: Content) -> Value | None:
        if len(content.body) > MAX_BODY or not applies(content):
            return None
        from salticus.extract.markup.merge import merged

        return merged(content)
