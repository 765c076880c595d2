"""The main text of a page, and what has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from salticus.errors import ConfigError, ExtractError
from salticus.extract.base import Content
from salticus.extract.charset import declared, decoded
from salticus.extract.text import Text
from salticus.types import Reading, Value

PAGES = Path(__file__).parents[1] / "data" / "pages"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PAGES / "expected.json").read_text("utf-8"))
TEXTS = sorted(n for n, said in EXPECTED.items() if "text" in said and not n.endswith(".json"))
URL = "https://a.example/"
JSON = "application/json"


def read(body: bytes, kind: str = "text/html", charset: str | None = None) -> str | None:
    found = Text().extract(Content(URL, body, kind, charset))
    return found.text if isinstance(found, Value) else None


def without(html: str, *ignore: str) -> str | None:
    found = Text(ignore=ignore).extract(Content(URL, html.encode(), "text/html"))
    return found.text if isinstance(found, Value) else None


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
    ("body", "said"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"PK\x03\x04word", "a zip archive"),
        (b"<p>text\0more", "binary data"),
        (bytes(range(1, 30)) * 40, "binary data"),
    ],
)
def test_binary_served_as_html_is_named(body: bytes, said: str) -> None:
    found = Text().extract(Content(URL, body, "text/html"))
    assert found == Reading(fault=f"not text: the body is {said}")


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("<p>Übung".encode(), None),
        ("<p>Übung".encode("cp1252"), "iso-8859-1"),
        ('<meta charset="iso-8859-1"><p>Übung'.encode("cp1252"), None),
        ("\ufeff<p>Übung".encode(), "iso-8859-1"),
        ("\ufeff<p>Übung".encode("utf-16-le"), None),
        ("<p>Übung".encode("utf-16-be"), "utf-16be"),
        ("<p>Übung</p><!-- padding -->".encode("utf-16-le"), "utf-8"),
        ("<p>Übung</p><!-- padding -->".encode("utf-16-be"), None),
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


# ------------------------------------------------------------------------------------ lying charset


@pytest.mark.parametrize(
    ("text", "real", "said"),
    [
        ("Öl für Möbel, Bücher über Gemüse", "cp1252", "utf-8"),
        ("Ελληνικά κείμενα για όλους", "iso-8859-7", "utf-8"),
        ("Русский текст о чайниках и чашках", "cp1251", "utf-8"),
        ("やかんとお茶の本を読みました", "shift_jis", "utf-8"),
        ("Öl für Möbel, Bücher über Gemüse", "utf-8", "iso-8859-1"),
        ("Русский текст о чайниках и чашках", "utf-8", "windows-1251"),
        ("“Quoted” – and dashed", "utf-8", "latin1"),
    ],
)
def test_a_lying_charset_is_not_believed(text: str, real: str, said: str) -> None:
    body = f"<p>{text}. {text}.</p>".encode(real)
    assert read(body, "text/html", said) == f"{text}. {text}."


def test_a_few_bad_bytes_are_no_lie() -> None:
    content = Content(URL, "Ölöfen üben ä\ufffd ".encode() + b"\xff\xfe\xff", "", "utf-8")
    assert decoded(content) == "Ölöfen üben ä\ufffd \ufffd\ufffd\ufffd"


# -------------------------------------------------------------------------------- what never counts

RESTLESS = [
    "3 minutes ago", "Updated 5 min ago", "vor 3 Minuten", "il y a 2 heures", "hace 5 días",
    "3 ore fa", "há 3 horas", "3 dagen geleden", "5 minut temu", "för 3 timmar sedan",
    "5 минут назад", "3 dakika önce", "3分前", "3 小时前", "3일 전", "12:34:56", "9:05:07 PM",
    "02d 11h 33m 12s", "12 people are watching this", "1,234 views", "Aufrufe: 1.234",
    "23 Personen sehen sich das gerade an", "1.2K views", "Last updated: 3 hours ago",
    "18 visitors online", "1 234 vues",
]  # fmt: skip
STEADY = [
    "5 min", "19.90 EUR", "12:30", "Mon 09:00–17:00", "3 Tage", "in 3 days", "2 hours", "1h 30m",
    "5 people", "300 m", "10 online courses", "vor 1900", "4 views of the river", "Room 12",
    "12 people are expected", "founded 3 years ago", "3 years ago",
]  # fmt: skip


@pytest.mark.parametrize("said", RESTLESS)
def test_what_changes_by_itself_is_left_out_where_it_stands_alone(said: str) -> None:
    page = "<main><p>The kettle boils, and the tea is ready.</p><span>{}</span><p>Good day.</main>"
    assert without(page.format(said)) == "The kettle boils, and the tea is ready. Good day."
    sentence = f"<main><p>They told us that {said} of it was enough for the tea.</p></main>"
    assert said in (without(sentence) or "")


@pytest.mark.parametrize("said", STEADY)
def test_what_stays_is_kept(said: str) -> None:
    page = f"<main><p>The kettle boils, and the tea is ready.</p><p>{said}</p></main>"
    assert without(page) == f"The kettle boils, and the tea is ready. {said}"


@pytest.mark.parametrize(
    "junk",
    [
        "<div id='onetrust-consent-sdk'><p>We use cookies</p></div>",
        "<div class='cc-window cc-banner'><p>We use cookies</p></div>",
        "<div class='cookie-notice'>We use cookies</div>",
        "<ins class='adsbygoogle'>Buy tea now</ins>",
        "<div id='div-gpt-ad-123'>Buy tea now</div>",
        "<div class='advertisement'>Buy tea now</div>",
        "<div data-ad-slot='1'>Buy tea now</div>",
        "<script>var a = 1</script><style>p { color: red }</style><noscript>No</noscript>",
        "<template>Not yet</template><iframe src='/ad'>Frame</iframe>",
    ],
)
def test_advertisements_and_banners_do_not_count(junk: str) -> None:
    page = "<body class='cookie-notice-open ads'><div><p>The kettle boils.</p>{}<p>Tea.</div>"
    assert without(page.format(junk)) == "The kettle boils. Tea."


def test_what_is_nested_too_deeply_is_refused_at_once() -> None:
    for body in ("<div><b>" * 50_000, "<div>" * 5000 + "</div>" * 5000):
        with pytest.raises(ExtractError, match="nested more than"):
            without(f"{body}<p>text")
    assert without("<p>word <br><img src=x>" * 3000)
    assert without("<div>word</div>" * 10_000)


def test_cells_of_tables_stand_apart() -> None:
    rows = "<tr><td>Mon</td><td>9</td></tr><tr><th>Tue</th><td>10</td></tr>"
    assert without(f"<table>{rows}</table>") == "Mon 9 Tue 10"


# -------------------------------------------------------------------------------- what users ignore

PAGE = (
    "<main><p class=tip>Tip of the day: rinse.</p><p>The kettle boils. Visitor 1234.</p>"
    "<ul><li>one</li><li>two</li></ul><p>Good day.</p></main>"
)


@pytest.mark.parametrize(
    ("ignore", "text"),
    [
        ([], "Tip of the day: rinse. The kettle boils. Visitor 1234. one two Good day."),
        (["css:.tip"], "The kettle boils. Visitor 1234. one two Good day."),
        ([".tip", "ul"], "The kettle boils. Visitor 1234. Good day."),
        (["xpath://li[2]"], "Tip of the day: rinse. The kettle boils. Visitor 1234. one Good day."),
        (["xpath://p[1]", "xpath://ul"], "The kettle boils. Visitor 1234. Good day."),
        (
            [r"re:Visitor \d+\."],
            "Tip of the day: rinse. The kettle boils. one two Good day.",
        ),
        (["re:.+"], None),
        (["css:main"], None),
    ],
)
def test_ignore(ignore: list[str], text: str | None) -> None:
    assert without(PAGE, *ignore) == text


@pytest.mark.parametrize("said", ["css:p[", "xpath://p[", "re:(", "json:$.a", "p::text"])
def test_what_cannot_be_ignored_is_refused(said: str) -> None:
    with pytest.raises(ConfigError):
        Text(ignore=[said])


# --------------------------------------------------------------------------------------------- JSON


def test_json_is_read_as_json() -> None:
    one = read(b'{"b": 1.50, "a": [true, null, "x  y"], "c": 12345678901234567890}', JSON)
    assert one == '{"a":[true,null,"x y"],"b":1.5,"c":12345678901234567890}'
    for same in (
        b'{"c": 12345678901234567890, "a": [true,null,"x y"],\n"b": 1.5}',
        b'\xef\xbb\xbf{"a": [true,null,"x y"], "b": 15e-1, "c": 12345678901234567890}',
    ):
        assert read(same, "application/vnd.shop+json; charset=utf-8") == one
    assert read(b'{"a": 0.1000000000000000055}', JSON) == '{"a":0.1000000000000000055}'
    assert read(b'{"a": 1e999999999}', JSON) == '{"a":1E+999999999}'


def test_broken_json_is_text() -> None:
    assert read(b"not json at all", JSON) == "not json at all"
    assert read(b"[" * 9999, JSON) == "[" * 9999
