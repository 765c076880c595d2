"""The main text of a page."""

from __future__ import annotations

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import detect_encoding
from resiliparse.parse.html import HTMLTree

from salticus.errors import ExtractError
from salticus.extract.base import Content
from salticus.extract.canonical import canonical
from salticus.extract.charset import declared
from salticus.types import Value

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_OPAQUE = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip")
_MAGIC = (b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"\x1f\x8b")
_HEAD = 1024
_MAX_FIELD = 500


class Text:
    """Main text without navigation, comments, dates of posts, and layout.

    Whitespace, invisible marks and the form of accents do not count, nor does mark-up: the same
    words in the same order are the same value. A page in which no main part is found is read
    whole. Text that is not HTML is taken as it is; what is not text has no value.

    >>> Text().extract(Content("http://a.example/", b"<p>Good  <b>day</b></p>")).text
    'Good day'
    """

    fast = False

    def extract(self, content: Content) -> Value | None:
        charset = declared(content)
        if _opaque(content, charset):
            return None
        charset = charset or detect_encoding(content.body)
        decoded = content.body.decode(charset, "replace")
        return _read(content.url, decoded) if _is_html(content, decoded) else _plain(decoded)


def _opaque(content: Content, charset: str | None) -> bool:
    head = content.body[:_HEAD]
    wide = charset is not None and charset.startswith("utf-16")
    return (
        content.content_type.lower().startswith(_OPAQUE)
        or head.startswith(_MAGIC)
        or (b"\0" in head and not wide)
    )


def _is_html(content: Content, decoded: str) -> bool:
    kind = content.content_type.partition(";")[0].strip().lower()
    return kind in _HTML or (not kind and decoded[:_HEAD].lstrip("\ufeff \t\r\n").startswith("<"))


def _plain(decoded: str) -> Value | None:
    text = canonical(decoded)
    return Value("page", text) if text else None


def _read(url: str, decoded: str) -> Value | None:
    try:
        tree = HTMLTree.parse(decoded)
    except ValueError as error:
        raise ExtractError(f"{url}: the HTML cannot be parsed: {error}") from error
    text = canonical(_main(tree)) or canonical(_whole(tree))
    return Value("page", text, _fields(tree)) if text else None


def _main(tree: HTMLTree) -> str:
    found: str = extract_plain_text(
        tree,
        preserve_formatting=False,
        main_content=True,
        list_bullets=False,
        alt_texts=False,
        comments=False,
        post_meta=False,
    )
    return found


def _whole(tree: HTMLTree) -> str:
    found: str = extract_plain_text(
        tree, preserve_formatting=False, list_bullets=False, alt_texts=False
    )
    return found


def _fields(tree: HTMLTree) -> dict[str, str]:
    root = tree.document.query_selector("html")
    language = root.getattr("lang") if root else None
    known = {"title": canonical(tree.title or ""), "language": canonical(language or "").lower()}
    return {name: part[:_MAX_FIELD].rstrip() for name, part in known.items() if part}
