"""Whether two nodes, or a node and a title, speak of the same thing."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from salticus.extract.words import first, several, term

if TYPE_CHECKING:
    from salticus.extract.about import PageMetadata
    from salticus.extract.jsonld import Node

_SAME = (
    "@id", "sku", "name", "productID", "mpn", "gtin", "gtin8", "gtin12", "gtin13", "gtin14",
    "inProductGroupWithID", "productGroupID",
)  # fmt: skip
_GROUP = ("@id", "productGroupID", "name", "sku")
_WORD = re.compile(r"\w+")
_LONGEST = 300


def is_a(node: Any, wanted: frozenset[str]) -> bool:
    """Whether something is a node of one of the kinds."""
    if not isinstance(node, dict):
        return False
    named = node.get("@type")
    if type(named) is str and named:  # nearly all nodes
        return named in wanted or term(named) in wanted
    return not wanted.isdisjoint(kinds(node))


def kinds(node: Node) -> list[str]:
    """The kinds of a node, without prefixes."""
    named = several(node.get("@type") or node.get("type"))
    return [term(name) for name in named if isinstance(name, str)]


def same(one: Node, other: Node) -> bool:
    """Whether two nodes describe one product, or variants of one.

    >>> same({"sku": 1, "name": "a"}, {"sku": 1, "name": "b"}), same({"name": ""}, {"name": ""})
    (True, False)
    """
    if one is other:
        return True
    pairs = ((one.get(key), other.get(key)) for key in _SAME)
    if any(isinstance(a, str | int) and a != "" and a == b for a, b in pairs):
        return True
    return not _group(one).isdisjoint(_group(other))


def _group(node: Node) -> set[tuple[str, str]]:
    """By which names the product group of a variant, or a group itself, is known."""
    of = node.get("isVariantOf")
    of = of if isinstance(of, dict) else node if node.get("productGroupID") else {}
    own = node.get("inProductGroupWithID")
    found = {(key, str(of[key])) for key in _GROUP if isinstance(of.get(key), str | int)}
    return found | ({("productGroupID", str(own))} if isinstance(own, str | int) else set())


def different(one: Node, other: Node) -> bool:
    """Whether two nodes are known to describe two products: by names of which none is in the other.

    >>> different({"name": "Oak shelf"}, {"name": "Oak Shelf, large"}), different({}, {"name": "a"})
    (False, False)
    >>> different({"name": "Oak shelf"}, {"name": "Pine shelf"})
    True
    """
    if same(one, other):
        return False
    a, b = plain(one.get("name")), plain(other.get("name"))
    return bool(a and b) and a not in b and b not in a


def plain(raw: Any) -> str:
    """A name without case and punctuation, between spaces.

    >>> plain("Oak shelf – LARGE")
    ' oak shelf large '
    """
    raw = raw if isinstance(raw, str) else first(raw, "@value")
    if not isinstance(raw, str):
        return ""
    raw = html.unescape(raw[:_LONGEST]) if "&" in raw else raw
    words = _WORD.findall(raw[:_LONGEST].casefold())
    return f" {' '.join(words)} " if words else ""


def of_site(title: str, about: PageMetadata) -> bool:
    """Whether a title is but the name of the site."""
    host = about.own.host.partition(".")[0] if about.own else ""
    return plain(title).replace(" ", "") in {plain(about.site).replace(" ", ""), host} - {""}


def entitled(node: Node, titles: Iterable[str]) -> int:
    """How well a node's name fits the titles of the page: 2 if it is one, 1 if it is in one."""
    name = plain(node.get("name"))
    if not name:
        return 0
    own = [plain(title) for title in titles]
    return 2 if name in own else int(any(name in title for title in own))


def akin(node: Node, titles: Iterable[str], share: float) -> bool:
    """Whether a `share` of a name's words are in the titles, or all of a long title's are in the
    name; True if either is unknown.

    >>> akin({"name": "Oak shelf, large"}, ["Oak shelf"], 0.6)
    True
    >>> akin({"name": "Oak shelf"}, ["Shelves of oak and pine"], 0.6)
    False
    """
    name = plain(node.get("name"))
    own = [plain(title) for title in titles]
    every = "".join(own)
    if not name or not every:
        return True
    if any(title in name and len(title.split()) >= 3 for title in own):
        return True
    words = name.split()
    hits = sum(f" {word} " in every or (not word.isascii() and word in every) for word in words)
    return hits > 0 and hits >= share * len(words)
