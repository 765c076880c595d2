"""The main text of a page, and what has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from salticus.extract.base import Content
from salticus.extract.charset import declared
from salticus.extract.text import Text
from salticus.types import Value

PAGES = Path(__file__).parents[1] / "data" / "pages"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PAGES / "expected.json").read_text("utf-8"))
TEXTS = sorted(name for name, said in EXPECTED.items() if "text" in said)
URL = "https://a.example/"


def read(body: bytes, kind: str = "text/html", charset: str | None = None) -> str | None:
    found = Text().extract(Content(URL, body, kind, charset))
    return found.text if found else None


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_of_a_realistic_page(name: str) -> None:
    said = EXPECTED[name]
    content = Content(said["url"], (PAGES / name).read_bytes(), said.get("content_type", ""))
    assert Text().extract(content) == Value("page", said["text"], said["fields"])


def test_layout_does_not_count() -> None:
    plain = read(b"<p>Good day to you</p>")
    assert plain == "Good day to you"
    for same in (
        b"<div><p>Good\n\n day   to <em>you</em></p></div>",
        "<p>Good\u00a0day to y\u200bo\u00adu</p>".encode(),
        b"<nav><a href='/'>Home</a></nav><main><p>Good day to you</p></main><footer>2026</footer>",
    ):
        assert read(same) == plain


def test_pages_without_a_main_part_are_read_whole() -> None:
    assert read(b"<div class='comments'><p>Only comments here</p></div>") == "Only comments here"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "text/html"),
        (b" \n ", "text/plain"),
        (b"<html><body></body></html>", "text/html"),
        (b"%PDF-1.7 text", ""),
        (b"PK\x03\x04word", ""),
        (b"\x89PNG\r\n\x1a\n", ""),
        (b"a\0b", "text/html"),
        (b"looks like text", "image/png"),
        (b"looks like text", "application/pdf"),
    ],
)
def test_what_has_no_text_has_no_value(body: bytes, kind: str) -> None:
    assert read(body, kind) is None


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("<p>Übung".encode(), None),
        ("<p>Übung".encode("cp1252"), "iso-8859-1"),
        ('<meta charset="iso-8859-1"><p>Übung'.encode("cp1252"), None),
        ("\ufeff<p>Übung".encode(), "iso-8859-1"),
        ("\ufeff<p>Übung".encode("utf-16-le"), None),
        ("<p>Übung".encode("utf-16-be"), "utf-16be"),
    ],
)
def test_the_charset_is_found(body: bytes, charset: str | None) -> None:
    assert read(body, "text/html", charset) == "Übung"


def test_invalid_bytes_are_replaced() -> None:
    assert read(b"<p>a\xffb", charset="utf-8") == "a\ufffdb"


@pytest.mark.parametrize("name", ["", "idna", "zip", "unicode_escape", "utf-7", "\ud800", "x" * 99])
def test_only_character_sets_are_charsets(name: str) -> None:
    assert declared(Content(URL, b"", "", name)) is None
    assert read(b"<p>word", charset=name) == "word"
