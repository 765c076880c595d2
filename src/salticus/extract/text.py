"""The main text of a page, HTML, PDF (by pypdf, an extra) or other."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence

from lxml import etree
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

from salticus.errors import ConfigError, ExtractError
from salticus.extract.base import Content
from salticus.extract.canonical import canonical, json_text, length
from salticus.extract.document import LINKS, ParsedPage, document_of, parsed
from salticus.extract.select import Css, XPath, split
from salticus.types import Reading, Value

MAX_PDF_PAGES = 300
MAX_PDF_TEXT = 2_000_000
PDF_OFF = "a PDF; set extract.pdf = true to read its text"
PDF_ABSENT = "a PDF, and nothing to read it with: pip install 'salticus[pdf]'"

_MAX_FIELD = 500
_BARE = {"preserve_formatting": False, "list_bullets": False, "alt_texts": False}
_MAIN_PART = {"main_content": True, "comments": False, "post_meta": False}
_LONG = 250  # words of a text that is beyond doubt
_MORE = 2  # times as many words that the rest must have to be worth more
_AROUND = [
    "nav", "header", "footer", "aside", "dialog", "form", "[role=navigation]", "[role=banner]",
    "[role=contentinfo]", "[role=dialog]", "[role=search]", "[role=menu]", "[hidden]", ".nav",
    ".navbar", ".navigation", ".menu", ".sidebar", ".breadcrumb", ".breadcrumbs", ".footer",
    ".header", ".related", ".comments", "#nav", "#menu", "#sidebar", "#footer", "#header",
    "#comments",
]  # fmt: skip
# Whole names only: a page may well be called "cookie-banner-open" while a banner is shown.
FURNITURE = (
    "#onetrust-consent-sdk", "#CybotCookiebotDialog", "#usercentrics-root", "#didomi-host",
    "#cmpbox", "#cookie-law-info-bar", "#cookieConsent", "#cookie-consent", "#cookie-banner",
    "#cookie-notice", ".cc-window", ".cookie-banner", ".cookie-consent", ".cookie-notice",
    ".qc-cmp2-container", ".fc-consent-root", ".adsbygoogle", ".advertisement", ".ad-container",
    ".ad-slot", ".google-auto-placed", ".OUTBRAIN", "[id^=google_ads_]", "[id^=div-gpt-ad]",
    "[data-ad-slot]",
)  # fmt: skip
# XML has no such characters, so no text with one can be moved; in a text they are blanks anyway.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]+")


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
        title = document.title if tree is document.tree else tree.title or ""
        return self._value(_text(tree), _fields(tree, title))

    def _value(self, text: str, fields: dict[str, str] | None = None) -> Value | None:
        text = self._ignored.passages(text)
        return Value("page", text, fields or {}) if text else None


def _json(document: ParsedPage) -> str:
    try:
        return json_text(document.json)
    except ExtractError:
        return canonical(document.text)


def _text(tree: HTMLTree) -> str:
    """The main text; if that is next to nothing, all but what surrounds it on every page."""
    main = _plain(tree, [f"[{LINKS}]"], **_MAIN_PART)
    words = length(main)
    if words >= _LONG:
        return main
    inner = _plain(tree, _AROUND)
    if length(inner) > _MORE * words:
        return inner
    return main or _plain(tree)


def _plain(tree: HTMLTree, cut: Sequence[str] = (), **part: bool) -> str:
    """The text of a page without furniture and what else to `cut`; all, unless `_MAIN_PART`."""
    return canonical(extract_plain_text(tree, skip_elements=[*FURNITURE, *cut], **_BARE, **part))


def _fields(tree: HTMLTree, title: str) -> dict[str, str]:
    root = tree.document.query_selector("html")
    language = root.getattr("lang") if root else None
    known = {"title": canonical(title), "language": canonical(language or "").lower()}
    return {name: part[:_MAX_FIELD].rstrip() for name, part in known.items() if part}


def _pdf_text(body: bytes) -> str:
    """What the pages say, in their order; ExtractError if that cannot be found out."""
    try:
        import pypdf
    except ImportError:
        raise ExtractError(PDF_ABSENT) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it complains of every bad PDF
    said: list[str] = []
    left = MAX_PDF_TEXT
    try:
        for page in pypdf.PdfReader(io.BytesIO(body)).pages[:MAX_PDF_PAGES]:
            said.append(canonical(page.extract_text()[:left]))
            left -= len(said[-1])
            if left <= 0:
                break
    except MemoryError:
        raise
    except Exception as error:  # a hostile PDF breaks it in countless ways
        raise ExtractError(f"the PDF cannot be read: {type(error).__name__}: {error}") from error
    return " ".join(filter(None, said))


class Ignored:
    """Elements to ignore by ``css:`` and ``xpath:``, passages by ``re:``; ConfigError if wrong.

    >>> Ignored(["re:Visitor no. [0-9]+"]).passages("Good day. Visitor no. 1234 Bye")
    'Good day. Bye'
    """

    def __init__(self, said: Sequence[str] = ()) -> None:
        self.css: list[str] = []
        self.xpaths: list[XPath] = []
        self.patterns: list[re.Pattern[str]] = []
        for one in said:
            self._add(*split(one))

    def _add(self, language: str, expression: str) -> None:
        if language == "css":
            self.css.append(Css(expression).expression)
        elif language == "xpath":
            self.xpaths.append(XPath(expression))
        elif language == "re":
            try:
                self.patterns.append(re.compile(expression))
            except (re.error, RecursionError, OverflowError) as error:
                raise ConfigError(f"{expression!r} is no regular expression: {error}") from error
        else:
            raise ConfigError(f"{language}: cannot be ignored; write css:, xpath: or re:")

    def tree(self, document: ParsedPage) -> HTMLTree:
        """The page without the elements that are ignored."""
        if not self.css and not self.xpaths:
            return document.tree
        url, text = document.content.url, document.text
        if self.css:
            page = LexborHTMLParser(text)
            for node in reversed(page.css(",".join(self.css))):  # the inner ones first
                node.decompose()
            text = page.html or ""
        return parsed(url, self._without_xpath(url, text) if self.xpaths else text)

    def _without_xpath(self, url: str, text: str) -> str:
        body = _CONTROLS.sub(" ", text).encode("utf-8", "replace")
        document = ParsedPage(Content(url, body, "text/html", "utf-8"))
        for element in (found for xpath in self.xpaths for found in xpath.elements(document)):
            _drop(element)
        whole = document.elements
        return "" if whole is None else etree.tostring(whole, encoding="unicode", method="html")

    def passages(self, text: str) -> str:
        """A canonical text without the passages that the patterns match."""
        for pattern in self.patterns:
            text = pattern.sub(" ", text)
        return canonical(text) if self.patterns else text


def _drop(element: object) -> None:
    """Take an element out of its tree, and leave what follows it."""
    if not isinstance(element, etree._Element) or (parent := element.getparent()) is None:
        return
    before = element.getprevious()
    tail = element.tail or ""
    if before is not None:
        before.tail = (before.tail or "") + " " + tail
    else:
        parent.text = (parent.text or "") + " " + tail
    parent.remove(element)
