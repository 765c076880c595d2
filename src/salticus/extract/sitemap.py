"""Sitemaps: all pages of a site, as its owner lists them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from salticus.errors import ExtractError
from salticus.extract.listing import Listing, label
from salticus.markup import Document, decoded, local, pieces_of, text_of
from salticus.types import Entry, Reading
from salticus.types.dates import written

if TYPE_CHECKING:
    from salticus.markup import Element

# The protocol allows 50,000 URLs and 50 MB; many overstep it a little.
MOST = 60_000
MAX_BYTES = 64_000_000

_LONGEST = 10_000  # characters of a line that are kept; no URL has as many
_GZIP = b"\x1f\x8b"
_KINDS = {"sitemap": "source", "url": None}


def read_sitemap(body: bytes, url: str) -> Reading:
    """The pages that a sitemap at `url` names, and the sitemaps that an index names.

    XML (also with wrong or without namespaces, and as far as it goes if it is broken) or plain text
    with one URL a line; either under gzip. Only pages of the sitemap's own site count. `fault` says
    what was left out or cut; `complete` is True only if all was read and something was there: a
    list that is suddenly empty is more often broken than true. ExtractError if nothing can be read.

    >>> read_sitemap(b"<urlset><url><loc>/a</loc></url></urlset>", "http://shop.example/s.xml")
    Reading(value=None, status=<Status.OK: 0>, fault=None, canonical=None, \
entries=(Entry(url='http://shop.example/a', kind=None, at=None, title=None, word='lastmod'),), \
complete=True)
    """
    body, cut = inflated(body)
    listing = Listing(url, most=MOST)
    is_xml = b"<" in body[:1024].replace(b"\0", b"")
    fault = (_read_xml if is_xml else _read_text)(body, listing) or cut
    entries = listing.entries
    said = "; ".join(filter(None, [fault, *listing.remarks()])) or None
    if said and not entries:
        raise ExtractError(f"{url}: no page is named in this sitemap: {said}")
    return Reading(fault=said, entries=entries, complete=bool(entries) and fault is None)


def inflated(body: bytes) -> tuple[bytes, str | None]:
    """The body without gzip, and why it is not all of it, if so.

    >>> import gzip
    >>> inflated(gzip.compress(b"text")), inflated(b"text"), inflated(gzip.compress(b"text")[:-9])
    ((b'text', None), (b'text', None), (b'text', 'the gzip stream ends too early'))
    """
    if not body.startswith(_GZIP):
        return body[:MAX_BYTES], _too_long if len(body) > MAX_BYTES else None
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(body, MAX_BYTES)
    except zlib.error as error:
        return b"", f"the gzip stream is broken: {error}"
    if stream.unconsumed_tail:
        return text, _too_long
    return text, None if stream.eof else "the gzip stream ends too early"


_too_long = f"it is longer than {MAX_BYTES // 10**6} MB, and was cut"


def _read_xml(body: bytes, listing: Listing) -> str | None:
    document = Document(pieces_of(body), _KINDS, listing.url)
    for element in document:
        if listing.full:
            return listing.cut
        parts = _parts(element)
        about = Entry(
            "",
            kind=_KINDS.get(local(element)),
            at=written(parts.get("lastmod")) or written(parts.get("publication_date")),
            title=label(parts.get("title")),
            word="lastmod",
        )
        listing.add(parts.get("loc", ""), about=about)
    return document.fault


def _parts(element: Element) -> dict[str, str]:
    """The texts of what matters; of the extensions, only those for news."""
    parts: dict[str, str] = {}
    for child in element:
        name = local(child)
        if name == "news":
            news = {local(each): each for each in child}
            wanted = (n for n in ("publication_date", "title") if n in news)
            parts |= {n: text_of(news[n]) for n in wanted}
        elif name in ("loc", "lastmod"):
            parts.setdefault(name, text_of(child))
    return parts


def _read_text(body: bytes, listing: Listing) -> str | None:
    for line in _lines(body):
        if listing.full:
            return listing.cut
        if text := line.strip():
            listing.add(text if text.lower().startswith("http") else "")
    return None


def _lines(body: bytes) -> Iterator[str]:
    rest = ""
    for text in decoded(pieces_of(body)):
        *whole, rest = (rest + text.replace("\r", "\n")).split("\n")
        yield from whole
        rest = rest[:_LONGEST]
    yield rest
