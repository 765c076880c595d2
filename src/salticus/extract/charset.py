"""In which character set a body is written, and whether it is text at all."""

from __future__ import annotations

import codecs
import re

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from salticus.extract.base import Content

_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_HEAD = 2048
_FIRST = 64
_MOSTLY = 0.8
_META = re.compile(
    rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w:.-]{1,40})""", re.IGNORECASE
)
_BYTES = re.compile(r"cp125|cp866|cp874|iso8859|koi8|mac|latin|ascii")
_BROKEN = "\ufffd"
_FEW = 3  # broken characters that any page may have

_OPAQUE = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip")
_MAGIC = {
    b"%PDF-": "a PDF", b"PK\x03\x04": "a zip archive", b"\x1f\x8b": "gzip",
    b"\x89PNG": "a PNG image", b"GIF87a": "a GIF image", b"GIF89a": "a GIF image",
    b"\xff\xd8\xff": "a JPEG image",
    b"RIFF": "a media file", b"OggS": "a media file", b"ID3": "a media file", b"wOF2": "a font",
    b"wOFF": "a font", b"\x7fELF": "a program", b"7z\xbc\xaf": "an archive", b"Rar!": "an archive",
    b"BZh": "an archive", b"\xfd7zXZ": "an archive", b"(\xb5/\xfd": "an archive",
}  # fmt: skip
_CONTROLS = bytes(range(9)) + bytes(range(14, 27)) + b"\x0b\x1c\x1d\x1e\x1f\x7f"
_RARE = 0.1  # controls among the first bytes of what may still be text


def declared(content: Content) -> str | None:
    """The character set by byte order mark, Content-Type or meta element, in this order.

    Text in which every other byte is zero is UTF-16, whatever it says. Names are read as browsers
    read them: ``latin1`` means windows-1252; one that no browser knows counts as none.

    >>> declared(Content("http://a.example/", b'<meta charset="latin1">'))
    'cp1252'
    """
    for mark, name in _BOMS.items():
        if content.body.startswith(mark):
            return name
    if b"\0" in content.body[:_FIRST] and (wide := _wide(content.body[:_FIRST])):
        return wide
    return _known(content.charset) or _meta(content.body[:_HEAD])


def _wide(first: bytes) -> str:
    """UTF-16 in one of its orders, if most of the first letters are plain ones."""
    even, odd = first[::2], first[1::2]
    for name, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros.count(0) > max(_FEW, _MOSTLY * len(odd)) and others.count(0) == 0:
            return name
    return ""


def decoded(content: Content) -> str:
    """The body as text; invalid bytes are replaced.

    A declared character set is believed, unless most of what is not ASCII cannot be read with it
    and can be with the one that the bytes look like; or it has a letter for every byte, and the
    bytes are UTF-8, which they are not by chance.

    >>> lying = Content("http://a.example/", "öl für Möbel".encode("cp1252"), charset="utf-8")
    >>> decoded(lying)
    'öl für Möbel'
    """
    charset = declared(content)
    if charset is None:
        return content.body.decode(detect_encoding(content.body), "replace")
    if _BYTES.match(charset) and not content.body.isascii() and _is_utf8(content.body):
        return content.body.decode()
    text = content.body.decode(charset, "replace")
    broken = text.count(_BROKEN)
    if broken < _FEW or broken < sum(not c.isascii() for c in text if c != _BROKEN):
        return text
    other = content.body.decode(detect_encoding(content.body), "replace")
    return other if other.count(_BROKEN) < broken else text


def _is_utf8(body: bytes) -> bool:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return len(body) - len(text) >= _FEW


def opaque(content: Content) -> str:
    """What the body is if it is not text; empty if it is text, or may be.

    >>> opaque(Content("http://a.example/", b"GIF89a", "text/html"))
    'a GIF image'
    """
    kind = content.content_type.partition(";")[0].strip().lower()
    if kind.startswith(_OPAQUE):
        return kind
    head = content.body[:_HEAD]
    if known := next((name for mark, name in _MAGIC.items() if head.startswith(mark)), ""):
        return known
    charset = declared(content) or ""
    if charset.startswith("utf-16") or not head:
        return ""
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return "binary data" if b"\0" in head[:1024] or controls > _RARE * len(head) else ""


def _meta(head: bytes) -> str | None:
    found = _META.search(head)
    name = _known(found[1].decode("ascii", "replace")) if found else None
    # The element was read as ASCII, so the body cannot be what it says.
    return "utf-8" if name and name.startswith("utf-16") else name


def _known(name: str | None) -> str | None:
    mapped = map_encoding_to_html5(name.strip(), False) if name else None
    return codecs.lookup(mapped).name if mapped else None
