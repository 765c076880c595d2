"""Feeds: the newest pages of a site, as RSS, Atom or JSON Feed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from salticus.errors import ExtractError
from salticus.extract.listing import Listing, label
from salticus.extract.sitemap import inflated
from salticus.markup import Document, decoded, local, pieces_of, text_of
from salticus.types import Entry, Reading
from salticus.types.dates import written

if TYPE_CHECKING:
    from salticus.markup import Element

MOST = 10_000
MAX_JSON = 16_000_000  # bytes; unlike XML it is read as a whole

_ITEMS = frozenset({"item", "entry"})
_TIMES = ("updated", "modified", "date_modified", "pubdate", "published", "issued", "date")
_TAGS = re.compile(r"<[^<>]{0,500}>")
_WEB = ("http://", "https://")
_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"


class _Item(msgspec.Struct):
    """What matters of an item of a JSON Feed; anything may stand anywhere."""

    url: Any = None
    external_url: Any = None
    id: Any = None
    title: Any = None
    date_published: Any = None
    date_modified: Any = None


class _FeedParser(msgspec.Struct):
    items: list[_Item]


def read_feed(body: bytes, url: str) -> Reading:
    """The pages that a feed at `url` names, newest as the feed has them.

    RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, JSON Feed; as far as it goes if it is broken. Links are
    those to the page itself (alternate), else the guid if it is a permalink; entries without one
    are left out, as are none of other sites. Links stay as they are but for their spelling. A feed
    shows only what is new, so it is never `complete`. ExtractError if it cannot be read.

    >>> rss = b"<rss><channel><item><link>/1</link><title>One</title></item></channel></rss>"
    >>> [(e.url, e.title) for e in read_feed(rss, "http://news.example/rss").entries]
    [('http://news.example/1', 'One')]
    """
    body, cut = inflated(body)
    listing = Listing(url, most=MOST, own_site=False)
    fault = (_read_json if is_json(body) else _read_xml)(body, listing) or cut
    said = "; ".join(filter(None, [fault, *listing.remarks()])) or None
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
        feed = msgspec.json.decode(text, type=_FeedParser)
    except (msgspec.MsgspecError, RecursionError) as error:
        return f"it is no JSON Feed: {error}"
    for item in feed.items[:MOST]:
        links = (_text(link) for link in (item.url, item.external_url, item.id))
        link = next((each for each in links if each and each.startswith((*_WEB, "/"))), "")
        at = written(_text(item.date_modified)) or written(_text(item.date_published))
        listing.add(link, about=Entry("", at=at, title=_title(_text(item.title))))
    return None


def _text(raw: Any) -> str | None:
    return raw.strip() if isinstance(raw, str) else None


def _read_xml(body: bytes, listing: Listing) -> str | None:
    document = Document(pieces_of(body), _ITEMS, listing.url)
    for element in document:
        if listing.full:
            return listing.cut
        parts = {local(child).lower(): child for child in reversed(element)}
        times = (written(text_of(parts[name])) for name in _TIMES if name in parts)
        title = text_of(parts["title"]) if "title" in parts else None
        about = Entry("", at=next(filter(None, times), None), title=_title(title))
        found = (each for each in _links(element, parts) if each[0])
        link, base = next(found, ("", ""))
        listing.add(link, base, about=about)
    return document.fault


def _links(element: Element, parts: dict[str, Element]) -> Iterator[tuple[str, str]]:
    """Where an entry's page may be, best first, each with its base."""
    if "origlink" in parts:  # the page itself, where `link` leads through somebody who counts
        yield text_of(parts["origlink"]), ""
    links = [child for child in element if local(child).lower() == "link"]
    for child in sorted(links, key=_rank):
        if _rank(child) < _OTHER:
            yield child.get("href") or text_of(child), child.base or ""
    guid = parts.get("guid", parts.get("id"))
    if guid is not None and (guid.get("isPermaLink") or "true").lower() != "false":
        yield from ((link, "") for link in [text_of(guid)] if link.startswith(_WEB))
    yield element.get(_ABOUT) or "", ""


_OTHER = 2


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
