"""The main text of a page, HTML, PDF (by pypdf, an extra) or other."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from salticus.errors import ExtractError
from salticus.extract import json_value
from salticus.extract.base import Content
from salticus.extract.canonical import canonical, length
from salticus.extract.document import LINKS, ParsedPage, document_of
from salticus.extract.ignore import FURNITURE, Ignored
from salticus.types import Reading, Value

MAX_PDF_PAGES = 300
MAX_PDF_TEXT = 2_000_000
PDF_OFF = "a PDF; set extract.pdf = true to read its text"
PDF_ABSENT = "a PDF, and nothing to read it with: pip install 'salticus[pdf]'"

_MAX_FIELD = 500
_LONG = 250  # words of a text that is beyond doubt
_MORE = 2  # times as many words that the rest must have to be worth more
_AROUND = [
    "nav", "header", "footer", "aside", "dialog", "form", "[role=navigation]", "[role=banner]",
    "[role=contentinfo]", "[role=dialog]", "[role=search]", "[role=menu]", "[hidden]", ".nav",
    ".navbar", ".navigation", ".menu", ".sidebar", ".breadcrumb", ".breadcrumbs", ".footer",
    ".header", ".related", ".comments", "#nav", "#menu", "#sidebar", "#footer", "#header",
    "#comments",
]  # fmt: skip


class Text:
    """Main text without navigation, comments, dates of posts, and layout.

    Whitespace, invisible marks and the form of accents do not count, nor does mark-up: the same
    words in the same order are the same value. Nor do advertisements, cookie banners, clocks,
    counters of visitors and "3 minutes ago", where they stand by themselves, and what `ignore`
    lists. A page in which no main part is found is read whole. JSON is read as JSON, a PDF if
    `pdf` is set, other text is taken as it is; what is not text has no value.

    >>> Text().extract(Content("http://a.example/", b"<p>Good  <b>day</b></p>")).text
    'Good day'
    """

    fast = False

    def __init__(self, *, ignore: Sequence[str] = (), pdf: bool = False) -> None:
        self.ignore = ignore
        self.pdf = pdf
        self._ignored = Ignored(ignore)

    def extract(self, content: Content) -> Value | Reading | None:
        document = document_of(content)
        if document.is_pdf:
            return self._pdf(document)
        if document.opaque:
            return Reading(fault=f"not text: the body is {document.opaque}")
        if document.is_html:
            return self._html(document)
        return self._value(_json(document) if document.is_json else canonical(document.text))

    def _pdf(self, document: ParsedPage) -> Value | Reading | None:
        if not self.pdf:
            return Reading(fault=PDF_OFF)
        try:
            return self._value(_pdf_text(document.content.body))
        except ExtractError as error:
            return Reading(fault=str(error))

    def _html(self, document: ParsedPage) -> Value | None:
        tree = self._ignored.tree(document)
        return self._value(_text(tree, list(FURNITURE)), _fields(tree))

    def _value(self, text: str, fields: dict[str, str] | None = None) -> Value | None:
        text = self._ignored.passages(text)
        return Value("page", text, fields or {}) if text else None


def _json(document: ParsedPage) -> str:
    try:
        return json_value.shown(document.json)
    except ExtractError:
        return canonical(document.text)


def _text(tree: HTMLTree, cut: list[str]) -> str:
    """The main text; if that is next to nothing, all but what surrounds it on every page."""
    main = canonical(_main(tree, [*cut, f"[{LINKS}]"]))
    words = length(main)
    if words >= _LONG:
        return main
    inner = canonical(_whole(tree, cut + _AROUND))
    if length(inner) > _MORE * words:
        return inner
    return main or canonical(_whole(tree, cut))


def _main(tree: HTMLTree, cut: list[str]) -> str:
    found: str = extract_plain_text(
        tree,
        preserve_formatting=False,
        main_content=True,
        list_bullets=False,
        alt_texts=False,
        comments=False,
        post_meta=False,
        skip_elements=cut,
    )
    return found


def _whole(tree: HTMLTree, cut: list[str]) -> str:
    found: str = extract_plain_text(
        tree, preserve_formatting=False, list_bullets=False, alt_texts=False, skip_elements=cut
    )
    return found


def _fields(tree: HTMLTree) -> dict[str, str]:
    root = tree.document.query_selector("html")
    language = root.getattr("lang") if root else None
    known = {"title": canonical(tree.title or ""), "language": canonical(language or "").lower()}
    return {name: part[:_MAX_FIELD].rstrip() for name, part in known.items() if part}


def _pdf_text(body: bytes) -> str:
    """What the pages say, in their order; ExtractError if that cannot be found out.

    At most `MAX_PDF_PAGES` pages and `MAX_PDF_TEXT` characters are read.
    """
    try:
        import pypdf
    except ImportError:
        raise ExtractError(PDF_ABSENT) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it complains of every bad PDF
    try:
        return _pdf_pages(pypdf.PdfReader(io.BytesIO(body)))
    except MemoryError:
        raise
    except Exception as error:  # a hostile PDF breaks it in countless ways
        raise ExtractError(f"the PDF cannot be read: {type(error).__name__}: {error}") from error


def _pdf_pages(reader: object) -> str:
    said: list[str] = []
    left = MAX_PDF_TEXT
    for page in reader.pages[:MAX_PDF_PAGES]:  # type: ignore[attr-defined]
        said.append(canonical(page.extract_text()[:left]))
        left -= len(said[-1])
        if left <= 0:
            break
    return " ".join(filter(None, said))
