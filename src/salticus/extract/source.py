"""Sources: sitemaps, feeds and hub pages, whichever a body turns out to be."""

from __future__ import annotations

import html
import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from salticus.errors import ExtractError
from salticus.extract.address import WEB
from salticus.extract.base import Content
from salticus.extract.links import Listing, digest, label, read_links
from salticus.markup import Document, decoded, local, mended, pieces_of, text_of
from salticus.types import Entry, Reading, Value
from salticus.types.dates import utc, written

if TYPE_CHECKING:
    from salticus.markup import Element

# The protocol allows 50,000 URLs and 50 MB; many overstep it a little.
MOST_OF_SITEMAP = 60_000
MAX_BYTES = 64_000_000
_TOO_LONG = f"it is longer than {MAX_BYTES // 10**6} MB, and was cut"

_LONGEST = 10_000  # characters of a line that are kept; no URL has as many
_KINDS = {"sitemap": "source", "url": None}
MOST_OF_FEED = 10_000
MAX_JSON = 16_000_000  # bytes; unlike XML it is read as a whole

_ITEMS = frozenset({"item", "entry"})
_TIMES = ("updated", "modified", "date_modified", "pubdate", "published", "issued", "date")
_TAGS = re.compile(r"<[^<>]{0,500}>")
_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_OTHER = 2

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
        if format == "html":
            reading = Reading(entries=read_links(content))
            if not reading.entries:
                raise ExtractError(
                    f"{content.url}: no links to pages of its site are in this HTML page; if "
                    "scripts make them, have it rendered"
                )
        else:
            read = read_sitemap if "sitemap" in format else read_feed
            reading = read(content.body, content.url)
        return msgspec.structs.replace(reading, value=_value(reading.entries, format))


def _value(entries: tuple[Entry, ...], format: str) -> Value:
    fields = {"links": str(len(entries)), "format": format}
    if newest := max((entry.at for entry in entries if entry.at), default=None):
        fields["newest"] = utc(newest)[:19] + "Z"
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
        if text.lower().startswith(WEB):
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


def read_sitemap(body: bytes, url: str) -> Reading:
    """The pages that a sitemap at `url` names, and the sitemaps that an index names.

    XML (also with wrong or without namespaces, and as far as it goes if it is broken) or plain text
    with one URL a line; either under gzip. Only pages of the sitemap's own site count. `fault` says
    what was left out or cut; `complete` is True only if all was read and something was there: a
    list that is suddenly empty is more often broken than true. ExtractError if nothing can be read.

    >>> found = read_sitemap(b"<urlset><url><loc>/a</loc></url></urlset>", "http://shop.example/s")
    >>> [entry.url for entry in found.entries], found.complete
    (['http://shop.example/a'], True)
    """
    body, cut = inflated(body)
    listing = Listing(url, most=MOST_OF_SITEMAP)
    is_xml = b"<" in body[:1024].replace(b"\0", b"")
    fault = (_read_sitemap if is_xml else _read_lines)(body, listing) or cut
    said, entries = listing.remarks(fault), listing.entries
    if said and not entries:
        raise ExtractError(f"{url}: no page is named in this sitemap: {said}")
    return Reading(fault=said, entries=entries, complete=bool(entries) and fault is None)


def inflated(body: bytes) -> tuple[bytes, str | None]:
    """The body without gzip, and why it is not all of it, if so.

    >>> import gzip
    >>> inflated(gzip.compress(b"text")), inflated(b"text"), inflated(gzip.compress(b"text")[:-9])
    ((b'text', None), (b'text', None), (b'text', 'the gzip stream ends too early'))
    """
    if not body.startswith(b"\x1f\x8b"):
        return body[:MAX_BYTES], _TOO_LONG if len(body) > MAX_BYTES else None
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(body, MAX_BYTES)
    except zlib.error as error:
        return b"", f"the gzip stream is broken: {error}"
    if stream.unconsumed_tail:
        return text, _TOO_LONG
    return text, None if stream.eof else "the gzip stream ends too early"


def _read_sitemap(body: bytes, listing: Listing) -> str | None:
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
            parts |= {n: text_of(news[n]) for n in ("publication_date", "title") if n in news}
        elif name in ("loc", "lastmod"):
            parts.setdefault(name, text_of(child))
    return parts


def _read_lines(body: bytes, listing: Listing) -> str | None:
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


class _JsonFeed(msgspec.Struct):
    items: list[dict[str, Any]]


def read_feed(body: bytes, url: str) -> Reading:
    """The pages that a feed at `url` names, newest as the feed has them.

    RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, JSON Feed; as far as it goes if it is broken. Links are
    those to the page itself (alternate), else the guid if it is a permalink; entries without one
    are left out, as are none of other sites. Links stay as they are but for their spelling and for
    tracking parameters, which are taken out. A feed shows only what is new, so it is never
    `complete`. ExtractError if it cannot be read.

    >>> rss = b"<rss><channel><item><link>/1</link><title>One</title></item></channel></rss>"
    >>> [(e.url, e.title) for e in read_feed(rss, "http://news.example/rss").entries]
    [('http://news.example/1', 'One')]
    """
    body, cut = inflated(body)
    listing = Listing(url, most=MOST_OF_FEED, own_site=False, untracked=True)
    fault = (_read_json if is_json(body) else _read_feed)(body, listing) or cut
    said = listing.remarks(fault)
    if fault and not listing.entries:
        raise ExtractError(f"{url}: no page is named in this feed: {said}")
    return Reading(fault=said, entries=listing.entries)


def is_json(body: bytes) -> bool:
    """Whether a body looks like a JSON object."""
    return body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def _read_json(body: bytes, listing: Listing) -> str | None:
    if len(body) > MAX_JSON:
        return f"it is JSON of more than {MAX_JSON // 10**6} MB"
    text = "".join(decoded(pieces_of(body))).lstrip("\ufeff")
    try:
        feed = msgspec.json.decode(text, type=_JsonFeed)
    except (msgspec.MsgspecError, RecursionError) as error:
        return f"it is no JSON Feed: {error}"
    for item in feed.items[:MOST_OF_FEED]:
        said = {key: raw.strip() for key, raw in item.items() if isinstance(raw, str)}
        links = (said.get(key, "") for key in ("url", "external_url", "id"))
        link = next((each for each in links if each.startswith((*WEB, "/"))), "")
        times = (written(said.get(key)) for key in ("date_modified", "date_published"))
        at = next(filter(None, times), None)
        listing.add(link, about=Entry("", at=at, title=_title(said.get("title"))))
    return None


def _read_feed(body: bytes, listing: Listing) -> str | None:
    document = Document(pieces_of(body), _ITEMS, listing.url)
    for element in document:
        if listing.full:
            return listing.cut
        parts = {local(child).lower(): child for child in reversed(element)}
        times = (written(text_of(parts[name])) for name in _TIMES if name in parts)
        title = text_of(parts["title"]) if "title" in parts else None
        about = Entry("", at=next(filter(None, times), None), title=_title(title))
        found = (each for each in _feed_links(element, parts) if each[0])
        listing.add(*next(found, ("", "")), about=about)
    return document.fault


def _feed_links(element: Element, parts: dict[str, Element]) -> Iterator[tuple[str, str]]:
    """Where an entry's page may be, best first, each with its base."""
    if "origlink" in parts:  # the page itself, where `link` leads through somebody who counts
        yield text_of(parts["origlink"]), ""
    links = [child for child in element if local(child).lower() == "link"]
    for child in sorted(links, key=_rank):
        if _rank(child) < _OTHER:
            yield child.get("href") or text_of(child), child.base or ""
    guid = parts.get("guid", parts.get("id"))
    if guid is not None and (guid.get("isPermaLink") or "true").lower() != "false":
        link = text_of(guid)
        yield link if link.startswith(WEB) else "", ""
    yield element.get(_ABOUT) or "", ""


def _rank(link: Element) -> int:
    """0 for a link to the page itself, 1 for one in another format, 2 for any other."""
    if (link.get("rel") or "alternate").lower() != "alternate":
        return _OTHER
    return int("html" not in (link.get("type") or "html"))


def _title(raw: str | None) -> str | None:
    """A title without mark-up, which some feeds escape and others do not."""
    if raw is None or not ("<" in raw or "&" in raw):
        return label(raw)
    return label(html.unescape(_TAGS.sub("", raw[:2000])))
