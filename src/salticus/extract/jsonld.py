"""JSON-LD read straight from the bytes of a page, without building a document.

Every step is bounded, because it runs inside the event loop: a page without JSON-LD costs a few
substring searches, one with more than `MAX_BLOCKS` blocks or `MAX_BYTES` of them is not read. In
a worker process the bounds are `WIDE` times as wide.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from salticus.extract.base import Content
from salticus.extract.charset import declared
from salticus.extract.naming import is_a

Node = dict[str, Any]

MAX_BLOCKS = 64
MAX_BYTES = 512 * 1024
MAX_NODES = 300
MAX_TAG = 2048
MAX_REPAIR = 64 * 1024
MAX_FOLD = 1024 * 1024
MAX_HOPS = 50
WIDE = 16

_PAGES = frozenset({"WebPage", "ItemPage", "ProductPage"})
_TRADES = frozenset({"BuyAction", "SellAction", "OrderAction", "PreOrderAction", "TradeAction"})
# The properties that are opened, in this order; some only of nodes of certain kinds.
_SUBJECTS = {"potentialAction": _PAGES, "about": _PAGES, "object": _TRADES}
_OPENED: dict[str, frozenset[str] | None] = {"mainEntity": None, "@graph": None, **_SUBJECTS}
_MARK = b"application/ld+json"
_PLUS = _MARK.index(b"+")
_USUAL = b'<script type="application/ld+json">'
_ESCAPED = (b"application/ld&#x2b;json", b"application/ld&#43;json")
# Possessive, so that no input makes them go back.
_TAG = re.compile(rb"""<script(?=[\s/])(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""", re.IGNORECASE)
_TYPE = re.compile(
    rb"""[\s"'/]type\s*+=\s*+["']?\s*+application/ld(?:\+|&\#x2b;|&\#43;)json(?=[\s"';/>])""",
    re.IGNORECASE,
)
_END = re.compile(rb"</(?i:script)")
_HIDING = ((b"<!--", b"-->"), (b"<template", b"</template"), (b"<textarea", b"</textarea"))

_START = b'{"@context"'
_PREFIXED = re.compile(
    rb'(?<!\\)"(?:schema:|https?://(?:www\.)?schema\.org/)([A-Za-z0-9]{1,40})"\s{0,9}:'
)

# Numbers with a fraction stay text: prices are exact decimals, never floats.
_STRICT = msgspec.json.Decoder(float_hook=str)
_LENIENT = json.JSONDecoder(strict=False, parse_float=str, parse_int=str, parse_constant=str)
_WRAPPING = re.compile(r"(?:[\s\ufeff]++|//|/\*|\*/|<!--|<!\[CDATA\[)*+")
_ESCAPE = re.compile(r"""(\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})|\\(')|\\""")
# A comment ends with its line, of 500 characters at most: else a page of slashes takes ten seconds.
_SPARE = re.compile(
    r"""("(?:[^"\\]++|\\.?)*+(?:"|\Z))|,(?=\s*+[}\]])|//[^\n"]{0,500}+(?=\n)"""
    r"""|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)""",
    re.DOTALL,
)


def nodes(content: Content, wide: int = 1) -> list[Node]:
    """The objects that JSON-LD puts at the top of a page, in the order of the page.

    Lists, ``@graph``, ``mainEntity``, what a page is about, and what can be bought on it are
    opened; everything else is left folded. `wide` multiplies what may be read.

    >>> page = b'<script type="application/ld+json">[{"name": "a"}, {"name": "b"}]</script>'
    >>> [node["name"] for node in nodes(Content("http://a.example/", page))]
    ['a', 'b']
    """
    found = list(blocks(content.body, MAX_BLOCKS * wide))
    if sum(map(len, found)) > MAX_BYTES * wide:
        return []
    return unfolded([parse(_plain(block, content)) for block in found])


def blocks(body: bytes, most: int = MAX_BLOCKS) -> Iterator[bytes]:
    """What stands inside each JSON-LD script element that is not commented out, nor in an element
    whose content is no part of the page."""
    past = 0
    for mark in _marks(body, most):
        if mark < past or (tag := _tag(body, mark, past)) is None:
            continue
        if closed := _hidden(body, past, tag):
            past = closed
        elif (end := _end(body, tag[1])) >= 0:
            past = end + len(b"</script")
            yield body[tag[1] : end]
        else:
            return


def _marks(body: bytes, most: int) -> list[int]:
    """Where the media type is written; in any case or escaped if not in its usual form."""
    usual = _sparse(body)
    if usual is None:
        usual = _occurrences(body, _MARK, most)
    if usual:
        return usual if len(usual) <= most else []
    folded = body[:MAX_FOLD].lower()
    rare = (_occurrences(folded, mark, most) for mark in (_MARK, *_ESCAPED))
    return next(filter(None, rare), [])


def _sparse(body: bytes) -> list[int] | None:
    """Where the media type is written in its usual form; None where plus signs are too many.

    Pages have few of them, and one byte is found ten times as fast as a word: 1 µs in 70 KB.
    """
    found: list[int] = []
    at = body.find(b"+")
    for _ in range(MAX_HOPS):
        if at < 0:
            return found
        if at >= _PLUS and body.startswith(_MARK, at - _PLUS):
            found.append(at - _PLUS)
        at = body.find(b"+", at + 1)
    return None


def _occurrences(body: bytes, mark: bytes, most: int) -> list[int]:
    # From the end, because rfind is twice as fast as find on 70 KB.
    found: list[int] = []
    at = body.rfind(mark)
    while at >= 0 and len(found) <= most:
        found.append(at)
        at = body.rfind(mark, 0, at)
    return found[::-1] if len(found) <= most else []


def _tag(body: bytes, mark: int, past: int) -> tuple[int, int] | None:
    """Where the start tag around a mark begins and ends."""
    usual = mark - _USUAL.index(_MARK)
    if usual >= past and body.startswith(_USUAL, usual):
        return usual, usual + len(_USUAL)
    start = max(past, mark - MAX_TAG)
    at = body[start:mark].lower().rfind(b"<script")
    tag = _TAG.match(body, start + at, start + at + MAX_TAG) if at >= 0 else None
    return tag.span() if tag and tag.end() > mark and _TYPE.search(tag[0]) else None


def _end(body: bytes, start: int) -> int:
    """Where the end tag of a script begins; -1 if there is none."""
    at = body.find(b"</", start)  # the first one, nearly always
    if body.startswith(b"script", at + 2):
        return at
    found = _END.search(body, start)
    return found.start() if found else -1


def _hidden(body: bytes, past: int, tag: tuple[int, int]) -> int:
    """Where the comment or inert element around a tag ends; 0 if there is none."""
    for opening, closing in _HIDING:
        opened = body.rfind(opening, past, tag[0])
        if opened >= 0 and body.find(closing, opened, tag[0]) < 0:
            return max(0, body.find(closing, tag[1]))
    return 0


def _plain(block: bytes, content: Content) -> bytes:
    """A block in UTF-8, with plain names of properties.

    Prefixed ones and full addresses are rare. The first are seen at once; the second are how a
    machine writes that has no use for a context.
    """
    if not block.isascii() and (charset := declared(content)) not in {None, "utf-8"}:
        block = block.decode(charset, "replace").encode()
    # From the end, because rfind is twice as fast as find.
    plain = block.rfind(b'"schema:') < 0 and (block.startswith(_START) or b"@context" in block)
    return block if plain or len(block) > MAX_REPAIR else _PREFIXED.sub(rb'"\1":', block)


def parse(block: bytes) -> Any:
    """What a block says; None if it cannot be read, even after the usual repairs.

    Repaired are comments, CDATA wrappers, byte order marks, spare commas, escaped quotes, raw
    control characters and bad escapes inside strings, invalid bytes, and anything after the first
    value.

    >>> parse(b'<!-- {"price": 19.90,} -->')
    {'price': '19.90'}
    """
    try:
        return _STRICT.decode(block)
    except RecursionError:
        return None
    except (msgspec.MsgspecError, ValueError):
        return _repaired(block) if len(block) <= MAX_REPAIR else None


def _repaired(block: bytes) -> Any:
    text = block.decode("utf-8", "replace")
    if '"' not in text and "&quot;" in text:
        text = html.unescape(text)
    text = _ESCAPE.sub(lambda found: found[1] or found[2] or "\\\\", _SPARE.sub(r"\1", text))
    text = text[_WRAPPING.match(text).end() :]  # type: ignore[union-attr]
    try:
        return _LENIENT.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def unfolded(roots: list[Any]) -> list[Node]:
    """The objects at the top of a page: of lists, graphs, and what a page is said to be about."""
    if len(roots) == 1 and type(roots[0]) is dict and _OPENED.keys().isdisjoint(roots[0]):
        return roots
    found: list[Node] = []
    waiting = roots[::-1]
    for _ in range(MAX_NODES):
        if not waiting:
            break
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item[:MAX_NODES][::-1]
        elif isinstance(item, dict):
            found.append(item)
            opened = ((key, of) for key, of in _OPENED.items() if key in item)
            waiting += [item[key] for key, of in opened if of is None or is_a(item, of)]
    return found
