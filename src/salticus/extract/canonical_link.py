"""The address that a page names as its own: ``<link rel="canonical">``.

Read straight from the bytes, in the event loop, so every step is bounded.
"""

from __future__ import annotations

import html
import re
from urllib.parse import urljoin

import can_ada

from salticus.extract.base import Content

MAX_HEAD = 128 * 1024
MAX_TAG = 2048
MAX_TRIES = 8

_WORD = b"canonical"
_LINK = re.compile(rb"""<link(?=[\s/])(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"""[\s"'/](rel|href)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE
)
_BASE = re.compile(rb"<base\s", re.IGNORECASE)


def canonical_link(content: Content) -> str | None:
    """The canonical address, absolute and without fragment, if it is another than the page's.

    None if the head of the page names none, or two that differ, or one that cannot be visited. A
    front page is no canonical address of another page: that is how broken templates say nothing.

    >>> page = b'<head><link rel="canonical" href="/kettle"></head>'
    >>> canonical_link(Content("https://a.example/kettle?ref=mail", page))
    'https://a.example/kettle'
    """
    head = _head(content.body)
    named = {href for href in _hrefs(head) if href}
    if len(named) != 1:
        return None
    own, found = _parsed(content.url), _resolved(named.pop(), content.url, head)
    if own is None or found is None or _spelling(found) == _spelling(own):
        return None
    front = found.pathname == "/" and not found.search
    return None if front and own.pathname != "/" else _spelling(found)


def _head(body: bytes) -> bytes:
    end = body.find(b"<body", 0, MAX_HEAD)
    return body[: end if end >= 0 else MAX_HEAD]


def _hrefs(head: bytes) -> list[bytes]:
    found: list[bytes] = []
    at = head.find(_WORD)
    for _ in range(MAX_TRIES):
        if at < 0:
            break
        tag = _tag(head, at)
        if tag is not None:
            found += _href(tag)
        at = head.find(_WORD, tag.end() if tag else at + 1)
    return found


def _tag(head: bytes, at: int) -> re.Match[bytes] | None:
    """The link element around a place, unless it is commented out."""
    start = head.rfind(b"<", max(0, at - MAX_TAG), at)
    tag = _LINK.match(head, start, start + MAX_TAG) if start >= 0 else None
    if tag is None or tag.end() <= at:
        return None
    opened = head.rfind(b"<!--", 0, start)
    return tag if opened < 0 or head.find(b"-->", opened, start) >= 0 else None


def _href(tag: re.Match[bytes]) -> list[bytes]:
    said = {m[1].lower(): m[2] or m[3] or m[4] or b"" for m in _ATTRIBUTE.finditer(tag[0])}
    return [said.get(b"href", b"")] if _WORD in said.get(b"rel", b"").lower().split() else []


def _resolved(href: bytes, url: str, head: bytes) -> can_ada.URL | None:
    text = html.unescape(href.decode("utf-8", "replace")).strip()
    if "://" in text[:10]:
        return _parsed(text)
    if _BASE.search(head):
        return None  # relative to something else than the page
    return _parsed(text, url)


def _parsed(url: str, base: str = "") -> can_ada.URL | None:
    try:
        parsed = can_ada.parse(urljoin(base, url) if base else url)
    except (ValueError, TypeError):
        return None
    return parsed if parsed.protocol in ("http:", "https:") and parsed.host else None


def _spelling(url: can_ada.URL) -> str:
    href: str = url.href
    return href.partition("#")[0]
