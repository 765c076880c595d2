"""In which character set a body is written."""

from __future__ import annotations

import codecs
import re

from resiliparse.parse.encoding import map_encoding_to_html5

from salticus.extract.base import Content

_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_HEAD = 2048
_META = re.compile(
    rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w:.-]{1,40})""", re.IGNORECASE
)


def declared(content: Content) -> str | None:
    """The character set by byte order mark, Content-Type or meta element, in this order.

    Names are read as browsers read them, so that ``latin1`` means windows-1252; a name that no
    browser knows counts as none. Never a codec that is not a character set.

    >>> declared(Content("http://a.example/", b'<meta charset="latin1">'))
    'cp1252'
    """
    for mark, name in _BOMS.items():
        if content.body.startswith(mark):
            return name
    return _known(content.charset) or _meta(content.body[:_HEAD])


def _meta(head: bytes) -> str | None:
    found = _META.search(head)
    name = _known(found[1].decode("ascii", "replace")) if found else None
    # The element was read as ASCII, so the body cannot be what it says.
    return "utf-8" if name and name.startswith("utf-16") else name


def _known(name: str | None) -> str | None:
    mapped = map_encoding_to_html5(name.strip(), False) if name else None
    return codecs.lookup(mapped).name if mapped else None
