"""XML from strangers: read as a stream, in bounded memory, as whole as it can be.

Nothing that a document says makes this module fetch, expand or keep anything: there is no network,
no DTD is loaded, and a document with definitions of its own (entities, defaults) is not read.
"""

from __future__ import annotations

import codecs
import functools
import html
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, cast

from lxml import etree
from resiliparse.parse.encoding import map_encoding_to_html5

if TYPE_CHECKING:
    from lxml.etree import _Element

    Element = _Element

PIECE = 1 << 16  # bytes that are parsed at a time

_ERRORS = 1000  # in one document; each is kept in memory
_GAP_BYTES = 8_000_000  # between two wanted elements
_GAP_TAGS = 200_000
_HEAD = 1024
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_STARTS = {**MARKS, b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]{1,40})""", re.I)
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]+")
_NAMES = r"(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});"
_BARE = re.compile(rf"&(?!{_NAMES})")
_FOREIGN = re.compile(rf"&(?!(?:amp|lt|gt|quot|apos);){_NAMES}")
_SECTION = re.compile(r"(<!\[CDATA\[|\]\]>)")
_UNFINISHED = re.compile(r"[&<\]]")
_MARGIN = 40  # longer than what may be cut in two at the end of a piece
_PROLOGUE = r"(?>\s+|<\?(?>.*?\?>)|<!--(?>.*?-->))*+"
_DEFINES = re.compile(_PROLOGUE + r"<!DOCTYPE[^\[>]*+\[", re.I | re.S)
_BEGINS = re.compile(_PROLOGUE + rf"(?:<!DOCTYPE[^\[>]*+>)?+{_PROLOGUE}<[^!?]", re.I | re.S)
_HARMLESS = frozenset({"ERR_DOCUMENT_END", "ERR_RESERVED_XML_NAME"})


class Document:
    """The wanted elements of a document, by local name, each whole and gone after its turn.

    Once all were taken, `fault` says why the document was not read whole, or is None. `root` is the
    local name of the outermost element, as soon as the first element is there.

    >>> document = Document([b"<a><b>1</b><b>2 & 3</b><b>4"], {"b"})
    >>> [text_of(b) for b in document], document.root, document.fault
    (['1', '2 & 3'], 'a', 'the XML ends too early')
    """

    def __init__(self, pieces: Iterable[bytes], wanted: Collection[str], base: str = "") -> None:
        self.fault: str | None = None
        self.root: str | None = None
        self._pieces = pieces
        self._gap_bytes = self._gap_tags = 0
        self._parser = etree.XMLPullParser(
            events=("end",),
            tag=[f"{{*}}{name}" for name in wanted],
            base_url=base or None,
            encoding="utf-8",
            recover=True,
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
        )

    def __iter__(self) -> Iterator[Element]:
        for piece in self._begun(mended(decoded(self._pieces))):
            self._parser.feed(piece.encode())
            yield from self._ended(piece)
            if self._too_much():
                return
        if self.fault is None:
            yield from self._end()

    def _begun(self, pieces: Iterator[str]) -> Iterator[str]:
        """The pieces, the first ones joined up to where the first element begins.

        What a DOCTYPE defines may grow without limit wherever it is used, so none is let through.
        """
        head = ""
        for piece in pieces:
            head += piece
            if _DEFINES.match(head):
                self.fault = "it is XML with definitions of its own, which is not read"
                return
            if _BEGINS.match(head):
                yield head
                yield from pieces
                return
            if len(head) > PIECE:
                break
        self.fault = "it is no XML"

    def _ended(self, piece: str) -> Iterator[Element]:
        count = 0
        for _, ended in self._parser.read_events():
            element = cast("Element", ended)
            count += 1
            if self.root is None:
                self.root = local(element.getroottree().getroot())
            yield element
            _drop(element)
        self._gap_bytes = 0 if count else self._gap_bytes + len(piece)
        self._gap_tags = 0 if count else self._gap_tags + piece.count("<") + piece.count("=")

    def _too_much(self) -> bool:
        if self._gap_bytes > _GAP_BYTES or self._gap_tags > _GAP_TAGS:
            self.fault = "it is XML with too much in it that says nothing"
        elif len(self._parser.feed_error_log) > _ERRORS:
            self.fault = "it is XML with too many errors"
        return self.fault is not None

    def _end(self) -> Iterator[Element]:
        try:
            root = self._parser.close()
        except etree.XMLSyntaxError:
            root = None
        if root is not None and self.root is None:
            self.root = local(root)
        self.fault = self._complaint()
        if self.fault is None:
            yield from self._ended("")

    def _complaint(self) -> str | None:
        log = self._parser.feed_error_log
        kinds = {error.type_name for error in log if error.type_name.startswith("ERR_")} - _HARMLESS
        if "ERR_TAG_NOT_FINISHED" in kinds:
            return "the XML ends too early"
        if self.root is None:
            return "it is no XML"
        return f"the XML is broken at line {log[0].line}: {log[0].message}" if kinds else None


def _drop(element: Element) -> None:
    """Forget an element, and all before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and parent[0] is not element:
        del parent[0]


def local(element: Element) -> str:
    """The name of an element without namespace, also where the prefix means nothing."""
    return _local(element.tag) if isinstance(element.tag, str) else ""


@functools.lru_cache(maxsize=1000)
def _local(tag: str) -> str:
    return tag.rpartition("}")[2].rpartition(":")[2]


def text_of(element: Element) -> str:
    """All text within an element, without blanks around it."""
    if len(element):
        return str(element.xpath("string()")).strip()
    return (element.text or "").strip()


def pieces_of(body: bytes) -> Iterator[bytes]:
    """A body in pieces."""
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]


def decoded(pieces: Iterable[bytes]) -> Iterator[str]:
    """The text by byte order mark, XML declaration, or as UTF-8; U+FFFD for what it cannot be."""
    decoder = None
    for piece in pieces:
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_encoding(piece))("replace")
        yield decoder.decode(piece)
    if decoder is not None:
        yield decoder.decode(b"", True)


def _encoding(head: bytes) -> str:
    if marked := next((name for mark, name in _STARTS.items() if head.startswith(mark)), None):
        return marked
    found = _DECLARED.search(head[:_HEAD])
    mapped = map_encoding_to_html5(found[1].decode("ascii", "replace"), False) if found else None
    name = codecs.lookup(mapped).name if mapped else "utf-8"
    return "utf-8" if name.startswith("utf-16") else name  # it was read as ASCII


def mended(texts: Iterable[str]) -> Iterator[str]:
    """Text that XML parsers take: no garbage in front, no illegal characters, every & is one.

    References to characters that HTML has names for become these characters; what stands in CDATA
    sections is left alone.

    >>> "".join(mended(["junk <a>1 & 2&nbsp;&eacute; &amp", "; &who;</a>"]))
    '<a>1 &amp; 2\\xa0é &amp; &amp;who;</a>'
    """
    rest, inside, started = "", False, False
    for text in chain(texts, [None]):  # at the end, the rest
        if text is not None:
            rest += _ILLEGAL.sub("", text)
        if not started:
            first = rest.find("<", 0, _HEAD)
            if first < 0 and text is not None and len(rest) < _HEAD:
                continue
            rest, started = rest[max(first, 0) :], True
        unfinished = text is not None and _UNFINISHED.search(rest, max(0, len(rest) - _MARGIN))
        cut = unfinished.start() if unfinished else len(rest)
        ready, rest = rest[:cut], rest[cut:]
        if not inside and "<![CDATA[" not in ready:
            yield _escaped(ready)
            continue
        parts: list[str] = []
        for part in _SECTION.split(ready):
            inside = part == "<![CDATA[" or (inside and part != "]]>")
            parts.append(part if inside else _escaped(part))
        yield "".join(parts)


def _escaped(text: str) -> str:
    if "&" not in text:
        return text
    return _FOREIGN.sub(_character, _BARE.sub("&amp;", text))


def _character(found: re.Match[str]) -> str:
    text = _ILLEGAL.sub("", html.unescape(found[0]))
    return text.replace("&", "&amp;").replace("<", "&lt;")
