"""Items written into the elements of a page: microdata and RDFa-lite, by one walker.

Both say the same with other words: an element opens an item, elements inside it are its
properties, and a property that opens an item itself nests it. Everything is bounded: elements
looked at, steps up the tree, characters of text, nodes made, and their depth.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from salticus.extract.jsonld import Node
from salticus.extract.price import Shown
from salticus.extract.words import term

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_ELEMENTS = 20_000
MAX_CLIMB = 400
MAX_STEPS = 400_000
MAX_TEXT = 1_000_000
MAX_VALUES = 20_000
MAX_VALUE = 2000
MAX_NODES = 3000
MAX_DEPTH = 12
MAX_REFERENCES = 20

SHOWN = "@shown"  # the text beside an amount that an attribute states

_SOURCES = frozenset({"audio", "embed", "iframe", "img", "source", "track", "video"})
_LINKS = frozenset({"a", "area", "link"})
_NAMES = frozenset({"name", "brand", "category", "manufacturer"})
_AMOUNTS = frozenset({"price", "lowPrice", "highPrice"})
_STRUCK = frozenset({"del", "s", "strike"})
_OFFERS = frozenset({"Offer", "AggregateOffer"})
_RENAMED = {"offerDetails": "offers", "currency": "priceCurrency", "identifier": "identifier"}
_SCHEMA = re.compile(r"https?://(?:www\.)?(?:schema\.org|data-vocabulary\.org)/?", re.IGNORECASE)
# Digits in two elements: the cents that stand smaller beside, "19" and "99".
_CENTS = re.compile(r"(?<=[0-9])\x1f\s*(?=[0-9]{2}(?![0-9]))")


class Syntax(NamedTuple):
    """Which attributes open an item, name a property, and tell the kind and id of an item."""

    scope: str
    name: str
    kind: str
    ids: tuple[str, ...]
    references: str = ""


MICRODATA = Syntax("itemscope", "itemprop", "itemtype", ("itemid", "href"), "itemref")
RDFA = Syntax("typeof", "property", "typeof", ("resource", "about", "href"))

Attributes = dict[str, "str | None"]


class Walker:
    """Finds the items of one syntax in a document."""

    def __init__(self, tree: LexborHTMLParser, syntax: Syntax) -> None:
        self.tree = tree
        self.syntax = syntax
        self.steps = MAX_STEPS
        self.text = MAX_TEXT
        self.made = MAX_NODES
        self.values = MAX_VALUES
        self.elements: dict[int, LexborNode] = {}
        self.attributes: dict[int, Attributes] = {}
        self.inside: dict[int, list[int]] = defaultdict(list)
        self.tops: list[int] = []
        self.adopted: dict[int, list[int]] = {}
        self.prefixes = {"schema", "v"}

    def nodes(self) -> list[Node]:
        """The items that are no property of another, in the order of the page."""
        self._collect()
        self._follow()
        return [self._node(key, ()) for key in self.tops if self.made > 0]

    def _collect(self) -> None:
        """Sort every element of interest under the item that it stands in."""
        if self.syntax is RDFA:
            self.prefixes |= _prefixes(self.tree)
        query = f"[{self.syntax.scope}],[{self.syntax.name}]"
        for element in self.tree.css(query)[:MAX_ELEMENTS]:
            key = element.mem_id
            if key in self.elements:  # it is found once for each attribute that it has
                continue
            self.elements[key] = element
            self.attributes[key] = attributes = element.attributes
            opens, owner = self.syntax.scope in attributes, self._owner(element)
            around = self._kind(self.attributes[owner]) if opens and owner is not None else ""
            inner = self._kind(attributes) if around == "Product" else ""
            # An offer in a product is a part of it, even if its author forgot to say so; a product
            # in a product is none: related ones stand there.
            part = attributes.get(self.syntax.name) or inner in _OFFERS
            if owner is not None and part:
                self.inside[owner].append(key)
            elif opens and inner != "Product":
                self.tops.append(key)

    def _climb(self, element: LexborNode | None) -> Iterator[int]:
        """An element and those around it, from the inside, as far as there are steps left."""
        for _ in range(MAX_CLIMB):
            if element is None or self.steps <= 0:
                return
            self.steps -= 1
            yield element.mem_id
            element = element.parent

    def _owner(self, element: LexborNode) -> int | None:
        """The nearest item around an element; ancestors come first in the order of a page."""
        scope, known = self.syntax.scope, self.attributes
        above = self._climb(element.parent)
        return next((key for key in above if key in known and scope in known[key]), None)

    def _follow(self) -> None:
        """Give items the properties of the elements that they refer to by id."""
        referring = [k for k, a in self.attributes.items() if a.get(self.syntax.references)]
        if not referring:
            return
        by_id: dict[str, LexborNode] = {}
        for element in self.tree.css("[id]")[:MAX_ELEMENTS]:
            by_id.setdefault(element.attributes.get("id") or "", element)
        for key in referring:
            names = (self.attributes[key].get(self.syntax.references) or "").split()
            for name in dict.fromkeys(names[:MAX_REFERENCES]):
                if name in by_id and by_id[name].mem_id != key:
                    self._adopt(key, by_id[name])

    def _adopt(self, item: int, root: LexborNode) -> None:
        if root.mem_id not in self.adopted:
            self.adopted[root.mem_id] = self._loose(root)
        known = {*self.inside[item]}
        loose = self.adopted[root.mem_id]
        self.steps -= len(loose) + len(known)
        if self.steps > 0:
            self.inside[item] += [key for key in loose if key not in known]

    def _loose(self, root: LexborNode) -> list[int]:
        """The properties at or under an element that no item inside it owns."""
        found: list[int] = []
        for element in [root, *root.css(f"[{self.syntax.name}]")]:
            key = element.mem_id
            if key in found[-1:] or not self.attributes.get(key, {}).get(self.syntax.name):
                continue
            owner = self._owner(element) if key != root.mem_id else None
            if owner is None or root.mem_id not in self._climb(self.elements[owner]):
                found.append(key)
        return found

    def _node(self, key: int, path: tuple[int, ...]) -> Node:
        """An item with its properties; a property of several values is a list."""
        self.made -= 1
        node = self._head(key)
        for inner in self.inside[key]:
            self.values -= 1
            if self.made <= 0 or self.values <= 0:
                break
            value = self._value(inner, (*path, key))
            if value is None:
                continue
            for name in self._names(inner):
                node[name] = _added(node.get(name), value)
                if name in _AMOUNTS and type(value) is str:
                    node[SHOWN] = self._seen(self.elements[inner], [name])
        return node

    def _head(self, key: int) -> Node:
        attributes = self.attributes[key]
        kinds = [self._short(kind) for kind in (attributes.get(self.syntax.kind) or "").split()[:8]]
        node: Node = {"@type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
        named = next(filter(None, (attributes.get(name) for name in self.syntax.ids)), None)
        return node | ({"@id": named[:MAX_VALUE]} if named else {})

    def _names(self, key: int) -> list[str]:
        raw = (self.attributes[key].get(self.syntax.name) or "")[:MAX_VALUE].split()
        names = [_RENAMED.get(name, name) for name in map(self._short, raw[:8]) if name]
        return list(dict.fromkeys(names)) or ["offers"]

    def _kind(self, attributes: Attributes) -> str:
        kinds = (attributes.get(self.syntax.kind) or "").split()
        return term(kinds[0]) if kinds else ""

    def _short(self, name: str) -> str:
        """A name without the address or prefix of schema.org; foreign names keep theirs."""
        bare = _SCHEMA.sub("", name, count=1)
        prefix, _, rest = bare.partition(":")
        return rest if rest and prefix in self.prefixes else bare

    def _value(self, key: int, path: tuple[int, ...]) -> Any:
        attributes = self.attributes[key]
        if self.syntax.scope in attributes:
            deep = key in path or len(path) >= MAX_DEPTH
            return None if deep else self._node(key, path)
        element, names = self.elements[key], self._names(key)
        if _AMOUNTS.intersection(names) and self._struck(element, path[-1]):
            return None
        stated = _stated(element.tag or "", attributes, names)
        return stated[:MAX_VALUE] if stated is not None else self._seen(element, names)

    def _struck(self, element: LexborNode, owner: int) -> bool:
        """Whether a price is crossed out inside its offer."""
        above: LexborNode | None = element
        for _ in range(4):
            if above is None or above.mem_id == owner:
                return False
            if above.tag in _STRUCK:
                return True
            above = above.parent
        return False

    def _seen(self, element: LexborNode, names: list[str]) -> str | None:
        """The text of an element as people see it."""
        if self.text <= 0:
            return None
        amount = not _AMOUNTS.isdisjoint(names)
        text = element.text(separator="\x1f" if amount else "")
        self.text -= len(text) + 1
        text = _CENTS.sub(".", text[: 4 * MAX_VALUE]).replace("\x1f", "") if amount else text
        return Shown(" ".join(text[: 4 * MAX_VALUE].split())[:MAX_VALUE])


def _prefixes(tree: LexborHTMLParser) -> set[str]:
    """The prefixes that stand for schema.org in a document."""
    found: set[str] = set()
    for element in tree.css("[prefix]")[:MAX_REFERENCES]:
        words = (element.attributes.get("prefix") or "")[: 10 * MAX_VALUE].split()
        pairs = zip(words[::2], words[1::2], strict=False)
        found |= {name.rstrip(":") for name, place in pairs if _SCHEMA.fullmatch(place)}
    root = tree.root.attributes if tree.root else {}
    spaces = ((key, place or "") for key, place in root.items() if key.startswith("xmlns:"))
    return found | {key.partition(":")[2] for key, place in spaces if _SCHEMA.fullmatch(place)}


def _stated(tag: str, attributes: Attributes, names: list[str]) -> str | None:
    """The value that attributes state; None if the text of the element is the value."""
    if (content := attributes.get("content")) is not None or tag == "meta":
        return content or ""
    if tag in _SOURCES:
        shown = attributes.get("alt") if not _NAMES.isdisjoint(names) else None
        return shown or attributes.get("src") or ""
    if tag in _LINKS:
        labelled = tag == "a" and not _NAMES.isdisjoint(names)
        return None if labelled else attributes.get("href")
    if tag == "object":
        return attributes.get("data") or ""
    if tag in ("data", "meter", "input"):
        return attributes.get("value")
    if tag == "time" or attributes.get("datetime"):
        return attributes.get("datetime")
    return attributes.get("resource") or None


def _added(before: Any, value: Any) -> Any:
    if before is None:
        return value
    return [*before, value] if isinstance(before, list) else [before, value]
