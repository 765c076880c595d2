"""Selectors: where in a page a field stands.

Three languages, named before a colon; CSS if none is named.

- ``css:.price``, ``css:meta[name=sku]@content``: the text of elements, or an attribute of them.
- ``xpath://td[2]``, ``xpath:string(//h1)``: elements, attributes, or what a function gives.
- ``json:$.offer.price``: JSONPath on a body that is JSON. ``json:script#state|$.offer.price``: on
  the JSON inside an element, which a CSS selector before the bar names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import jsonpath
from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from salticus.errors import ConfigError, ExtractError
from salticus.extract.canonical import canonical, json_text, parse_json
from salticus.extract.document import ParsedPage
from salticus.extract.price import Shown

MAX_MATCHES = 1000
MAX_TEXT = 1_000_000

_ATTRIBUTE = re.compile(r"(.*[^\s@])\s*@([\w:.-]+)", re.DOTALL)
_LANGUAGE = re.compile(r"(css|xpath|json|re):(.*)", re.DOTALL)
_BLOCKS = frozenset(
    ("address", "article", "aside", "blockquote", "br", "button", "caption", "dd", "details", "div",
     "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
     "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p", "pre", "section", "select",
     "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul")
)  # fmt: skip
_SILENT = frozenset({"script", "style", "template", "noscript"})
_RAISED = "\0"
# 19<sup>90</sup> is how shops write 19.90
_CENTS = re.compile(r"(?<=\d)\s*\0\s*(?=\d\d(?!\d))")


class Selector(Protocol):
    """Finds the texts that an expression selects, in the order of the page, empty ones left out.

    What people see is `Shown`; attributes and JSON are for machines, whose notation is another.
    Laws: pure; nothing found gives an empty list; raises nothing but ExtractError.
    """

    def find(self, document: ParsedPage) -> list[str]: ...


def split(said: str) -> tuple[str, str]:
    """The language and the expression of a selector.

    >>> split("xpath://h1"), split("h1"), split("css: h1")
    (('xpath', '//h1'), ('css', 'h1'), ('css', 'h1'))
    """
    named = _LANGUAGE.fullmatch(said.strip())
    return (named[1], named[2].strip()) if named else ("css", said.strip())


def selector(said: str) -> Selector:
    """The selector that is written so; ConfigError if it is not one.

    >>> from salticus.extract.base import Content
    >>> page = ParsedPage(Content("http://a.example/", b"<p id=x>5 <b>EUR</b></p>"))
    >>> selector("p@id").find(page), selector("xpath://b/text()").find(page)
    (['x'], ['EUR'])
    """
    language, expression = split(said)
    if language not in _LANGUAGES:
        raise ConfigError(f"{said!r} is no selector; write css:, xpath: or json: before it")
    return _LANGUAGES[language](expression)


class Css:
    """Elements by CSS; ``@name`` at the end takes an attribute of them."""

    def __init__(self, expression: str) -> None:
        parts = _ATTRIBUTE.fullmatch(expression)
        self.expression: str = parts[1] if parts else expression
        self.attribute: str | None = parts[2] if parts else None
        try:
            LexborHTMLParser("").css(self.expression)
        except (SelectolaxError, ValueError) as error:
            advice = "; take @name for an attribute" if "::" in expression else ""
            raise ConfigError(f"{expression!r} is no CSS selector{advice}") from error

    def find(self, document: ParsedPage) -> list[str]:
        found = self.elements(document)
        if self.attribute is None:
            return _texts(Shown(flat(node, _nodes_of)) for node in found)
        return _texts(node.attributes.get(self.attribute) or "" for node in found)

    def elements(self, document: ParsedPage) -> list[LexborNode]:
        return document.nodes.css(self.expression)[:MAX_MATCHES]


class XPath:
    """Elements, attributes or texts by XPath 1.0, with EXSLT's regular expressions, ``re:test``."""

    _SPACES = {"re": "http://exslt.org/regular-expressions"}

    def __init__(self, expression: str) -> None:
        try:
            self.expression = etree.XPath(expression, namespaces=self._SPACES)
            self.expression(etree.fromstring("<html><body/></html>"))
        except (etree.XPathError, ValueError) as error:
            raise ConfigError(f"{expression!r} is no XPath: {error}") from error

    def find(self, document: ParsedPage) -> list[str]:
        return _texts(map(_shown, self.elements(document)))

    def elements(self, document: ParsedPage) -> list[Any]:
        if document.elements is None:
            return []
        try:
            found = self.expression(document.elements)
        except (etree.XPathError, ValueError) as error:
            raise ExtractError(f"the XPath fails here: {error}") from error
        return found[:MAX_MATCHES] if isinstance(found, list) else [found]


class Json:
    """Values by JSONPath, in a body that is JSON or in the elements that a selector names."""

    def __init__(self, expression: str) -> None:
        where, bar, path = expression.partition("|")
        if expression.startswith("$") or not bar:
            where, path = "", expression
        if not path.strip().startswith("$"):
            raise ConfigError(f"{path.strip()!r} is no JSONPath: it must begin with $")
        self.where = Css(where.strip()) if where else None
        try:
            self.path = jsonpath.compile(path.strip())
        except (jsonpath.JSONPathError, RecursionError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(f"{path.strip()!r} is no JSONPath: {reason}") from error

    def find(self, document: ParsedPage) -> list[str]:
        found = [item for value in self._values(document) for item in self._matches(value)]
        return _texts(json_text(item) for item in found if item is not None)

    def _values(self, document: ParsedPage) -> Iterable[Any]:
        if self.where is None:
            return [document.json]
        held = (node.text(deep=True) for node in self.where.elements(document))
        return [parse_json(text) for text in held if text.strip()]

    def _matches(self, value: Any) -> list[Any]:
        if not isinstance(value, dict | list):
            return []
        try:
            return [match.obj for match in self.path.finditer(value)][:MAX_MATCHES]
        except (jsonpath.JSONPathError, RecursionError, ArithmeticError) as error:
            raise ExtractError(f"the JSONPath fails here: {type(error).__name__}") from error


_LANGUAGES: dict[str, Callable[[str], Selector]] = {"css": Css, "xpath": XPath, "json": Json}

_Parts = Callable[[Any], tuple[str, list[Any]]]


def flat(node: Any, parts: _Parts) -> str:
    """The text of an element as one reads it: blocks stand apart, inline elements do not.

    `parts` gives an element's tag, and its texts and children in order.
    """
    said: list[str] = []
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            said.append(item)
            continue
        tag, inner = parts(item)
        if tag in _SILENT and item is not node:
            continue
        if tag in _BLOCKS:
            said.append(" ")
            waiting.append(" ")
        elif tag == "sup":
            said.append(_RAISED)
        waiting += reversed(inner)
    return _CENTS.sub(".", "".join(said)).replace(_RAISED, "")


def _nodes_of(node: LexborNode) -> tuple[str, list[Any]]:
    children = node.iter(include_text=True)
    return node.tag or "", [c.text_content or "" if c.is_text_node else c for c in children]


def _elements_of(element: Any) -> tuple[str, list[Any]]:
    if not isinstance(element.tag, str):  # a comment or an instruction
        return "", []
    inner: list[Any] = [element.text or ""]
    for child in element:
        inner += [child, child.tail or ""]
    return element.tag, inner


def _shown(item: Any) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float):
        return str(int(item)) if item.is_integer() else repr(item)
    if not isinstance(item, str):
        return Shown(flat(item, _elements_of))
    return str(item) if getattr(item, "is_attribute", False) else Shown(item)


def _texts(found: Iterable[str]) -> list[str]:
    texts: list[str] = []
    left = MAX_TEXT
    for text in found:
        if short := canonical(text)[:left].rstrip():
            texts.append(Shown(short) if isinstance(text, Shown) else short)
            left -= len(short)
        if left <= 0:
            break
    return texts
