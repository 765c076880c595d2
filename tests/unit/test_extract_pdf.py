"""Text from PDFs, and what hostile ones cost."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import zlib
from typing import Any

import pytest

from salticus.config import Extract, Span
from salticus.errors import ExtractError
from salticus.extract import text as texts
from salticus.extract.base import Content
from salticus.extract.pool import Extraction
from salticus.extract.text import Text
from salticus.types import Reading, Target, Value

URL = "https://a.example/notes.pdf"


def document(*texts: str, stream: bytes | None = None) -> bytes:
    """A PDF of pages with one line of text each."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(texts)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(texts)}/Kids[{kids}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for n, text in enumerate(texts):
        drawn = zlib.compress(stream or f"BT /F 12 Tf 72 720 Td ({text}) Tj ET".encode())
        font = b"/Resources<</Font<</F 3 0 R>>>>/MediaBox[0 0 600 800]"
        objects.append(b"<</Type/Page/Parent 2 0 R%b/Contents %d 0 R>>" % (font, 5 + 2 * n))
        size = b"<</Filter/FlateDecode/Length %d>>" % len(drawn)
        objects.append(size + b"stream\n" + drawn + b"\nendstream")
    out = b"%PDF-1.4\n"
    offsets = []
    for number, one in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj" % number + one + b"endobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    return out + head + table + tail


def read(body: bytes, kind: str = "application/pdf", *, on: bool = True) -> Any:
    return Text(pdf=on).extract(Content(URL, body, kind))


def test_the_pages_in_order() -> None:
    body = document("Good day", "Opening hours: 9 to 17")
    expected = Value("page", "Good day Opening hours: 9 to 17")
    assert read(body) == read(body, "application/octet-stream") == read(body, "") == expected


def test_it_must_be_asked_for() -> None:
    assert read(document("Good day"), on=False) == Reading(fault=texts.PDF_OFF)
    assert "extract.pdf = true" in texts.PDF_OFF


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "pypdf":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    assert read(document("Good day")) == Reading(fault=texts.PDF_ABSENT)
    assert "salticus[pdf]" in texts.PDF_ABSENT


def test_an_empty_pdf_has_no_value() -> None:
    assert read(document("")) is None


def test_there_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_PDF_PAGES", 2)
    assert read(document("a", "b", "c")).text == "a b"
    monkeypatch.setattr(texts, "MAX_PDF_TEXT", 5)
    assert read(document("abcdefgh", "i")).text == "abcde"


@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-",
        b"%PDF-1.4\n" + b"\xff" * 1000,
        document("Good day")[:300],
        document("Good day").replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]"),
        document("Good day").replace(b"/Pages 2 0 R", b"/Pages 1 0 R"),
        document("Good day").replace(b"startxref\n", b"startxref\n9"),
        document("x", stream=b"BT " * 2000 + b"(" * 2000),
    ],
)
def test_a_broken_pdf_costs_its_page_only(body: bytes) -> None:
    found = read(body)
    if not isinstance(found, Value) and found is not None:
        assert found.fault
        assert found.fault.startswith("the PDF cannot be read")


def test_a_bomb_costs_its_page_only() -> None:
    bomb = document("x", stream=b"(a) Tj " * 30_000_000)

    async def main() -> None:
        config = Extract(workers=1, deadline=Span(seconds=3), pdf=True)
        extraction = Extraction(config)
        target = Target(page=1, url=URL, host="a.example", kind="page")
        try:
            with contextlib.suppress(ExtractError):  # if it takes the time, or all memory
                found = await extraction.read(Content(URL, bomb, "application/pdf"), target)
                assert found.value is None
                assert found.fault
            good = await extraction.read(Content(URL, document("Good day")), target)
            assert good.value == Value("page", "Good day")
        finally:
            await extraction.close()

    asyncio.run(main())
