"""What does not count in a text: advertisements, cookie banners, and what the user names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lxml import etree
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

from salticus.errors import ConfigError
from salticus.extract.base import Content
from salticus.extract.canonical import canonical
from salticus.extract.document import ParsedPage, parsed
from salticus.extract.select import Css, XPath, split

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


class Ignored:
    """What a rule ignores: elements by ``css:`` and ``xpath:``, passages by ``re:``.

    ConfigError if an expression is wrong.

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
            self.patterns.append(_pattern(expression))
        else:
            raise ConfigError(f"{language}: cannot be ignored; write css:, xpath: or re:")

    def tree(self, document: ParsedPage) -> HTMLTree:
        """The page without the elements that are ignored."""
        if not self.css and not self.xpaths:
            return document.tree
        content, text = document.content, document.text
        if self.css:
            text = self._without_css(document.text)
        if self.xpaths:
            text = self._without_xpath(_utf8(content.url, text))
        return parsed(content.url, text)

    def _without_css(self, text: str) -> str:
        page = LexborHTMLParser(text)
        for node in reversed(page.css(",".join(self.css))):  # the inner ones first
            node.decompose()
        return page.html or ""

    def _without_xpath(self, content: Content) -> str:
        document = ParsedPage(content)
        for xpath in self.xpaths:
            for element in xpath.elements(document):
                _drop(element)
        whole = document.elements
        return "" if whole is None else etree.tostring(whole, encoding="unicode", method="html")

    def passages(self, text: str) -> str:
        """A canonical text without the passages that the patterns match."""
        for pattern in self.patterns:
            text = pattern.sub(" ", text)
        return canonical(text) if self.patterns else text


def _utf8(url: str, text: str) -> Content:
    return Content(url, _CONTROLS.sub(" ", text).encode("utf-8", "replace"), "text/html", "utf-8")


def _pattern(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"{expression!r} is no regular expression: {error}") from error


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
