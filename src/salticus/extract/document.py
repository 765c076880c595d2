"""A body that is decoded, and parsed in each way at most once."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import accumulate
from typing import Any

from lxml import etree
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

from salticus.errors import ExtractError
from salticus.extract import charset
from salticus.extract.base import Content
from salticus.extract.canonical import parse_json

_COUNT = r"\d[\d.,'\u00a0\u202f ]{0,12}(?:[km]|mio\.?|tsd\.?|тыс\.?|млн)?\s?"
_FEW = r"\d{1,4}\s?"
_SPAN = (
    "s|m|h|d|sec|secs|second|seconds|min|mins|minute|minutes|hr|hrs|hour|hours|day|days|"
    "sek\\.?|sekunden?|min\\.?|minuten?|std\\.?|stunden?|tag|tagen?|"
    "secondes?|heures?|jours?|j|segundos?|minutos?|horas?|d[ií]as?|"
    "second[oi]|minut[oi]|or[ae]|giorn[oi]|dias?|seconden?|minuten|uur|uren|dag|dagen|"
    "sekund[ęay]?|minut[ęay]?|godzin[ęay]?|dni|dzień|sekunder?|minuter|minutter|tim(?:me|mar|er?)|dagar?|"
    "dager?|секунд[уы]?|минут[уы]?|час(?:а|ов)?|дн(?:я|ей)|день|saniye|dakika|saat|gün"
)
_AGO = (
    rf"(?:vor|il y a|hace|há)\s{_FEW}(?:{_SPAN})",
    rf"(?:för\s)?{_FEW}(?:{_SPAN})\s(?:ago|fa|atrás|geleden|temu|sedan|siden|назад|önce|tilbage)",
    r"\d{1,3}\s?(?:秒|分|分钟|時間|小时|小時|日|天|초|분|시간|일)\s?(?:前|전)",
)
_CLOCK = (
    r"\d{1,2}:\d\d:\d\d(?:\s?[ap]\.?m\.?)?",
    r"(?:\d{1,3}\s?[dt]\w{0,4}\s?)?\d{1,2}\s?h\w{0,4}\s?\d{1,2}\s?m\w{0,6}\s?\d{1,2}\s?s\w{0,6}",
)
_WATCHED = (
    rf"{_COUNT}(?:people|persons?|others?|users?|visitors?|customers?|shoppers?)\s(?:are\s|is\s)?"
    r"(?:currently\s|also\s|now\s)?(?:watching|viewing|looking|online|browsing|here)\b[^<]{0,40}",
    rf"{_COUNT}(?:personen|leute|besucher|kunden|nutzer)\s(?:\w+\s){{0,3}}(?:sehen|schauen|online)\b[^<]{{0,40}}",
    rf"{_COUNT}(?:views?|page\s?views|aufrufe|ansichten|zugriffe|vues|vistas|"
    r"visualizaciones|visualizzazioni|visualizações|weergaven|wyświetle(?:ń|nia)|odsłon|visningar|"
    r"visninger|просмотр(?:ов|а)?|görüntülenme|次浏览|回視聴)",
    rf"(?:views?|hits|page\s?views|visitors?|aufrufe|besucher|vues|visitas|online)\s?:\s?{_COUNT}",
)
_LEAD = (
    r"(?:(?:last\s)?(?:updated|checked|modified|refreshed)|posted|published|aktualisiert|zuletzt\s\w+|"
    r"mis à jour|actualizado|aggiornato|bijgewerkt|zaktualizowano)?[:\s]{0,2}"
)
_RESTLESS = re.compile(rf"{_LEAD}(?:{'|'.join((*_AGO, *_CLOCK, *_WATCHED))})[\s.!·|•–-]{{0,4}}")
# Short text nodes with a number: few enough to be looked at one by one.
_NUMBERED = re.compile(r">(\s*+[^<>\d]{0,30}+\d[^<>]{0,60}+)(?=<)")

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?(?:json|x-json)")
_XML = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?xml")
_LANGUAGE = re.compile(r"""<html[^>]{0,500}?\slang\s{0,3}=\s{0,3}["']?([\w-]{2,20})""", re.I)
_HEAD = 1024
LINKS = "data-links-alone"
MAX_DEPTH = 4000  # reading time grows with its square
_NESTED = re.compile(
    r"<(/)?(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|dt|dd|option"
    r"|t[rdh]|path|circle|rect|use|polygon|polyline|line|ellipse|stop|image|[a-z]+:[a-z]+)\b)[a-z]",
    re.I,
)
_SCRIPT = re.compile(r"<(script|style)\b.*?(?:</\1|\Z)", re.I | re.S)
_APART = {"</td>": " </td>", "</th>": " </th>", "</ul>": "</ol>", "</UL>": "</ol>"}
# A list whose first item is nothing but a link.
_LIST = re.compile(
    r"<ul\b(?=([^>]{0,500}>\s*<li\b[^>]{0,500}>\s*<a\b.{0,600}?</a>\s*(?:</li>|<li))?)", re.I | re.S
)


class ParsedPage:
    """The views of one body that selectors, text and judgement share."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.body = content.body
        self.kind = content.content_type.partition(";")[0].strip().lower()

    @cached_property
    def opaque(self) -> str:
        """What the body is if it is not text."""
        return charset.opaque(self.content)

    @cached_property
    def text(self) -> str:
        return charset.decoded(self.content)

    @cached_property
    def is_html(self) -> bool:
        start = self.text[:_HEAD].lstrip("\ufeff \t\r\n")
        return self.kind in _HTML or (not self.kind and start.startswith("<"))

    @property
    def is_json(self) -> bool:
        return bool(_JSON.fullmatch(self.kind))

    @property
    def is_pdf(self) -> bool:
        return self.kind == "application/pdf" or self.content.body.startswith(b"%PDF-")

    @cached_property
    def language(self) -> str:
        """The language that the page says it is in; empty if it does not."""
        found = _LANGUAGE.search(self.text[:_HEAD])
        return found[1].lower() if found else ""

    @cached_property
    def tree(self) -> HTMLTree:
        """For main text and judgement, without text that changes by itself."""
        return parsed(self.content.url, self.text)

    @cached_property
    def title(self) -> str:
        """The title of the page. Asked of the tree once: resiliparse 1.1 writes beyond its memory
        when it is asked again after the main text was extracted."""
        return self.tree.title or ""

    @cached_property
    def nodes(self) -> LexborHTMLParser:
        """For CSS."""
        return LexborHTMLParser(self.text)

    @cached_property
    def elements(self) -> Any:
        """For XPath; None if there is no element at all."""
        body = self.text.encode("utf-8", "replace")
        parser: Any = etree.HTMLParser(encoding="utf-8")
        if _XML.fullmatch(self.kind) and self.kind not in _HTML:
            parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, recover=True)
        try:
            return etree.fromstring(body, parser) if body.strip() else None
        except (etree.LxmlError, ValueError) as error:
            raise ExtractError(f"the page cannot be parsed: {error}") from error

    @cached_property
    def json(self) -> Any:
        """For JSONPath."""
        if self.text[:_HEAD].lstrip("\ufeff \t\r\n").startswith("<"):
            raise ExtractError("the body is not JSON; name an element: json:script#state|$.price")
        return parse_json(self.text)


def parsed(url: str, text: str) -> HTMLTree:
    """The tree of an HTML text, made ready for `extract_plain_text`.

    That glues the cells of tables together, and takes most lists for menus. So cells are set apart,
    and all lists are ordered ones, which it keeps; those of links alone are marked. What never
    rests is left out.
    """
    if depth(text) > MAX_DEPTH:
        raise ExtractError(f"{url}: elements are nested more than {MAX_DEPTH} deep")
    text = _LIST.sub(lambda found: f"<ol {LINKS}" if found[1] else "<ol", settled(text))
    for one, other in _APART.items():
        text = text.replace(one, other)
    try:
        return HTMLTree.parse(text)
    except ValueError as error:
        raise ExtractError(f"{url}: the HTML cannot be parsed: {error}") from error


def depth(text: str) -> int:
    """How deep elements are nested, at most; 0 if there are too few for that to matter.

    Elements that need no end tag are not counted, nor is what looks like one inside a script.

    >>> depth("<div><b>" * 30_000), depth("<p>A paragraph." * 30_000)
    (60000, 0)
    >>> depth("<script>" + "if (i<n) {}" * 30_000 + "</script>")
    0
    """
    if text.count("<") <= MAX_DEPTH:
        return 0
    tags = _NESTED.finditer(_SCRIPT.sub("", text))
    return max(accumulate(-1 if tag[1] else 1 for tag in tags), default=0)


_last: ParsedPage | None = None


def document_of(content: Content) -> ParsedPage:
    """The document of a content; the same one if it is asked for again at once."""
    global _last
    if _last is None or _last.content is not content or _last.body is not content.body:
        _last = ParsedPage(content)
    return _last


def settled(text: str) -> str:
    """HTML without text nodes that say nothing but what changes by itself.

    >>> settled("<p>Sold <b>3 minutes ago</b> to a man who came 3 minutes ago</p>")
    '<p>Sold <b></b> to a man who came 3 minutes ago</p>'
    """
    restless = _RESTLESS.fullmatch
    return _NUMBERED.sub(lambda n: ">" if restless(n[1].strip().lower()) else n[0], text)
