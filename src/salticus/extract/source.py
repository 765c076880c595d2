"""Sources: sitemaps, feeds and hub pages, whichever a body turns out to be."""

from __future__ import annotations

import re
import zlib
from datetime import UTC, datetime, timedelta

import msgspec

from salticus.errors import ExtractError
from salticus.extract.base import Content
from salticus.extract.feed import is_json, read_feed
from salticus.extract.links import links_of, read_links
from salticus.extract.listing import digest, not_after
from salticus.extract.sitemap import read_sitemap
from salticus.markup import decoded, mended
from salticus.types import Entry, Reading, Value

__all__ = ["Source", "links_of", "not_after"]

_HEAD = 4096
_ROOT = re.compile(r"<(?:[A-Za-z][\w.-]{0,40}:)?([A-Za-z][\w.-]{0,40})")
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.S)
_DEFINES = re.compile(r"<!DOCTYPE[^\[>]{0,500}\[", re.I)
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
_FORMAL = re.compile(r"\.(?:xml|rss|atom|rdf|gz|json|txt)(?:\?|$)", re.I)
_ROOTS = {
    "urlset": "sitemap",
    "sitemapindex": "sitemap index",
    "rss": "rss",
    "rdf": "rss 1.0",
    "feed": "atom",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Source:
    """The pages that a sitemap, a feed or an HTML page names.

    The value is how many there are and a digest of their URLs and times, so that the same list is
    the same value in whatever order; the list itself is in the `entries` of the reading.

    >>> feed = b"<rss><channel><item><link>/1</link></item></channel></rss>"
    >>> Source().extract(Content("http://news.example/rss", feed)).value.fields
    {'links': '1', 'format': 'rss'}
    """

    fast = False

    def extract(self, content: Content) -> Reading:
        format = _format(content)
        reading = _read(content, format)
        return msgspec.structs.replace(reading, value=_value(reading.entries, format))


def _read(content: Content, format: str) -> Reading:
    if format == "html":
        entries = read_links(content)
        if not entries:
            raise ExtractError(
                f"{content.url}: no links to pages of its site are in this HTML page; if scripts "
                "make them, have it rendered"
            )
        return Reading(entries=entries)
    read = read_sitemap if "sitemap" in format else read_feed
    return read(content.body, content.url)


def _value(entries: tuple[Entry, ...], format: str) -> Value:
    fields = {"links": str(len(entries)), "format": format}
    if newest := max((entry.at for entry in entries if entry.at), default=None):
        fields["newest"] = f"{_EPOCH + timedelta(microseconds=newest):%Y-%m-%dT%H:%M:%SZ}"
    return Value("source", f"{len(entries)} links, {digest(entries)}", fields)


def _format(content: Content) -> str:
    """What a body is, by its first bytes; what the server calls it says little."""
    head = _head(content)
    if is_json(head):
        return "json feed"
    if b"\0" in head and not head.startswith(_WIDE):
        raise _unknown(content, "binary")
    text = "".join(decoded([head])).lstrip("\ufeff \t\r\n")
    if "<" not in text:
        if text.lower().startswith(("http://", "https://")):
            return "text sitemap"
        raise _unknown(content, "text without URLs" if text else "empty")
    return _by_root(content, "".join(mended([text])))


def _by_root(content: Content, text: str) -> str:
    text = _COMMENT.sub("", text)
    if _DEFINES.search(text):
        raise _unknown(content, "XML with definitions of its own, which is not read")
    found = _ROOT.search(text)
    name = found[1].lower() if found else ""
    if name in _ROOTS:
        return _ROOTS[name]
    if text.startswith("<?xml") and name != "html":
        raise _unknown(content, f"XML with the root <{name}>")
    if _FORMAL.search(content.url):
        raise _unknown(content, "an HTML page where the address promises something else")
    return "html"


def _head(content: Content) -> bytes:
    """The first bytes, without gzip."""
    if not content.body.startswith(b"\x1f\x8b"):
        return content.body[:_HEAD]
    try:
        return zlib.decompressobj(wbits=31).decompress(content.body[: 4 * _HEAD], _HEAD)
    except zlib.error:
        raise _unknown(content, "a broken gzip stream") from None


def _unknown(content: Content, what: str) -> ExtractError:
    return ExtractError(
        f"{content.url}: this is {what}; a source is a sitemap (XML or text), a feed (RSS, Atom, "
        "JSON Feed) or an HTML page with links"
    )
