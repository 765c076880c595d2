"""Whether a body is the page that was asked for, or a wall, an error, or an empty shell.

Precision comes first. What is judged here is a page that says hardly anything else; a page that
speaks of captchas, cookies or missing pages and has a text of its own is a page like any other.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode

from salticus.extract import phrases
from salticus.extract.canonical import canonical, length
from salticus.extract.document import ParsedPage
from salticus.types import Reading, Status, Value

LONG = 400  # words from which on a text speaks for itself
SHORT = 60
WALL = 150
_MAX_MARKED = 200_000
_MOST = 40  # elements of a kind that are looked at

_BREAKS = re.compile(r"\s[-–—]\s|[|·•»\n]|(?<=[.!?。！？])(?:\s|$)")
_EDGES = " \t.!?¡¿,;:…\"'“”„«»()[]。！？⚠️🤖😕😢☹️-–—"
_CONSENT_ADDRESS = re.compile(r"[^?#]*(?:consent|cookie|privacy-?gate|gdpr)", re.I)
_CAPTCHA = re.compile(r"<[a-z][^<>]{0,300}captcha")
_FEW_LINKS = 4
_FEW_WORDS = 20
_ROOTS = "#root, #app, #__next, #__nuxt, app-root, #main-app, #svelte, #q-app, #___gatsby"

SCRIPTED = "the page is made by scripts: set render = true in a [[pages]] rule that matches it"
EMPTY = "the page is empty, even after its scripts have run"


class View:
    """What one sees of a page, as far as it matters for the judgement."""

    def __init__(self, document: ParsedPage) -> None:
        self.document = document
        self.tree = document.tree

    @cached_property
    def title(self) -> str:
        return _plain(self.document.title)

    @cached_property
    def headings(self) -> list[str]:
        """The main headings; the next lower ones if there are none."""
        return (self.texts("h1") or self.texts("h2"))[:3]

    @cached_property
    def lines(self) -> list[str]:
        """All visible text, a block a line."""
        said = extract_plain_text(self.tree, preserve_formatting=True, list_bullets=False)
        return [line for line in map(_plain, said.splitlines()) if line]

    @cached_property
    def text(self) -> str:
        return " ".join(self.lines)

    @cached_property
    def words(self) -> int:
        """How long all visible text is, in words."""
        return length(extract_plain_text(self.tree, preserve_formatting=False, list_bullets=False))

    @cached_property
    def main(self) -> int:
        """How long the main part is, in words: a page that is not there still has its menus."""
        return length(extract_plain_text(self.tree, preserve_formatting=False, main_content=True))

    @cached_property
    def source(self) -> str:
        return self.document.text[:_MAX_MARKED].lower()

    def texts(self, css: str) -> list[str]:
        """The texts of the elements that a selector names, empty ones left out."""
        return [text for text in (_plain(node.text) for node in self._nodes(css)) if text]

    def buttons(self) -> list[str]:
        """What one can click on."""
        inputs = self._nodes("input[type=submit], input[type=button]")
        labels = [_plain(node.getattr("value") or "") for node in inputs]
        return labels + self.texts("button, a, [role=button]")

    def _nodes(self, css: str) -> list[DOMNode]:
        return list(islice(self.tree.document.query_selector_all(css), _MOST))

    def has(self, css: str) -> bool:
        return self.tree.document.query_selector(css) is not None

    def marked(self, marks: tuple[str, ...] = phrases.MARKS) -> bool:
        """Whether the source has one of the marks of walls, or an element called captcha."""
        return any(mark in self.source for mark in marks) or (
            marks is phrases.MARKS and _CAPTCHA.search(self.source) is not None
        )

    def headed(self, pattern: re.Pattern[str]) -> str:
        """The title or heading that says nothing but what the pattern describes."""
        return next((one for one in (*self.headings, self.title) if _says(one, pattern)), "")


def judge(document: ParsedPage, value: Value | None, *, rendered: bool = False) -> Reading | None:
    """What is wrong with a page; None if nothing is.

    `value` is what was read from it: an offer that has a price is never judged, nor is a long text.
    """
    if document.opaque or not document.is_html:
        return None
    if value is not None and ("price" in value.fields or length(value.text) > LONG):
        return None
    view = View(document)
    if fault := _missing(view):
        return Reading(status=Status.SOFT_404, fault=fault)
    if view.words > LONG:
        return None
    if fault := _blocked(view) or _consent(view) or _login(view):
        return Reading(status=Status.BLOCKED, fault=fault)
    if view.words > SHORT:
        return None
    said = view.headed(phrases.FAILING)
    fault = f"the site says {said!r}" if said else _shell(view, rendered)
    return Reading(fault=fault) if fault else None


def _blocked(view: View) -> str:
    if view.words > WALL:
        return ""
    if (said := view.headed(phrases.REFUSED)) and (view.words <= SHORT or view.marked()):
        return f"refused: the page says {said!r}"
    if (said := view.headed(phrases.WAITING)) and view.marked():
        return f"a captcha or a check of browsers: the page says {said!r}"
    if view.words <= SHORT and view.marked(phrases.SURE):
        return "a captcha or a check of browsers stands before the page"
    text = f"{view.title} {view.text}"
    alone = view.words <= SHORT and len(view.texts("a")) <= _FEW_LINKS
    found = phrases.ROBOTS_ANYWHERE.search(text) if alone or view.marked() else None
    if found is None and view.marked():
        found = phrases.HINTS_ANYWHERE.search(text)
    return f"a captcha or a check of browsers: the page says {found[0]!r}" if found else ""


def _missing(view: View) -> str:
    named = _says(view.title, phrases.MISSING)
    titled = named or _says(view.title, phrases.NUMBERED)
    headed = [one for one in view.headings if _says(one, phrases.MISSING)]
    if (headed and titled) or ((headed or named) and view.main <= WALL):
        return f"no such page: it says {(headed or [view.title])[0]!r}"
    numbered = [one for one in view.headings if _says(one, phrases.NUMBERED)]
    if (numbered or titled) and view.main <= SHORT:
        return f"no such page: it says {(numbered or [view.title])[0]!r}"
    said = [one for one in view.lines if _says(one, phrases.MISSING)] if view.words <= SHORT else []
    return f"no such page: it says {said[0]!r}" if said else ""


def _consent(view: View) -> str:
    address = _CONSENT_ADDRESS.match(view.document.content.url)
    if not (address or view.headed(phrases.CONSENT)):
        return ""
    if not phrases.COOKIES_ANYWHERE.search(view.text):
        return ""
    if not any(phrases.AGREE.fullmatch(_bare(one)) for one in view.buttons()):
        return ""
    other = (line for line in view.lines if not phrases.CONSENT_ANYWHERE.search(line))
    rest = sum(length(line) for line in other if not phrases.AGREE.fullmatch(_bare(line)))
    if rest > (SHORT if _says(view.title, phrases.CONSENT) else _FEW_WORDS):
        return ""
    return "a consent wall stands before the page; give its cookie to the host"


def _login(view: View) -> str:
    headed = view.words <= 2 * SHORT and view.headed(phrases.LOGIN)
    login = headed and view.has("input[type=password]")
    return "a login stands before the page; give cookies or auth to the host" if login else ""


def _shell(view: View, rendered: bool) -> str:
    told = phrases.SCRIPTS_ANYWHERE.search(view.text)
    unsaid = view.words <= 5 and (
        any(phrases.SCRIPTS_ANYWHERE.search(one) for one in view.texts("noscript"))
        or (view.has(_ROOTS) and view.has("script"))
    )
    fault = EMPTY if rendered else SCRIPTED
    return fault if told or unsaid else ""


def _says(heading: str, pattern: re.Pattern[str]) -> bool:
    """Whether a heading, or a part of it that stands by itself, is what the pattern describes."""
    if len(heading) > 300:
        return False
    parts = [heading, *_BREAKS.split(heading)]
    return any(pattern.fullmatch(bare) for bare in map(_bare, parts) if bare)


def _bare(text: str) -> str:
    return text.strip(_EDGES)


def _plain(text: str) -> str:
    return canonical(text[:5000]).lower().replace("’", "'")
