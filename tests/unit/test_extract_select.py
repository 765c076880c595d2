"""Selectors in three languages, on whole, broken and hostile pages."""

from __future__ import annotations

import pytest

from salticus.errors import ConfigError, ExtractError
from salticus.extract.base import Content
from salticus.extract.document import ParsedPage
from salticus.extract.price import Shown
from salticus.extract.select import MAX_MATCHES, MAX_TEXT, selector

URL = "https://a.example/1"
PAGE = """<!doctype html><html lang=de><head><title>Blue  kettle</title>
<meta name=sku content="A 1"><script id=state type="application/json">
{"offer": {"price": 19.90, "tags": ["a", "b"], "sale": true, "was": null}}</script>
<script id=late>window.__STATE__ = {"stock": 7};</script></head><body>
<h1 class=name>Ket<b>tle</b></h1>
<p class=price>$19<sup>90</sup></p><p class=price></p>
<table><tr><td>Mon</td><td>9</td></tr></table>
<div id=box>a<p>b</p>c<!-- no --><script>no()</script><br>d</div>
<a href="/x?a=1&amp;b=2" class="more">more</a>
</body></html>"""


def find(said: str, body: str = PAGE, kind: str = "text/html") -> list[str]:
    return selector(said).find(ParsedPage(Content(URL, body.encode(), kind, "utf-8")))


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("h1", ["Kettle"]),
        ("css:h1.name", ["Kettle"]),
        ("title", ["Blue kettle"]),
        (".price", ["$19.90"]),
        ("tr", ["Mon 9"]),
        ("#box", ["a b c d"]),
        ("meta[name=sku]@content", ["A 1"]),
        ("css:a.more@href", ["/x?a=1&b=2"]),
        ("a@title", []),
        (".none", []),
        ("td", ["Mon", "9"]),
        ("xpath://h1", ["Kettle"]),
        ("xpath://tr", ["Mon 9"]),
        ("xpath://div[@id='box']", ["a b c d"]),
        ("xpath://meta[@name='sku']/@content", ["A 1"]),
        ("xpath://h1/text()", ["Ket"]),
        ("xpath:string(//h1)", ["Kettle"]),
        ("xpath:count(//td)", ["2"]),
        ("xpath:count(//td) div 4", ["0.5"]),
        ("xpath:boolean(//nav)", ["false"]),
        ("xpath://p[re:test(., '^\\$')]", ["$19.90"]),
        ("xpath://nav", []),
        ("json:script#state|$.offer.price", ["19.9"]),
        ("json: script#state | $.offer.tags", ['["a","b"]']),
        ("json:script#state|$.offer.tags[*]", ["a", "b"]),
        ("json:script#state|$.offer.sale", ["true"]),
        ("json:script#state|$.offer.was", []),
        ("json:script#late|$.stock", ["7"]),
        ("json:script#none|$.stock", []),
    ],
)
def test_what_is_selected(said: str, found: list[str]) -> None:
    assert find(said) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("json:$.items[0].price", ["1.1"]),
        ("json:$.items[*].price", ["1.1", "20"]),
        ("json:$.items[?@.name == 'b'].price", ["20"]),
        ("json:$.items[?@.price < 10].name", ["a"]),
        ("json:$..name", ["a", "b"]),
        ("json:$.items[0]", ['{"name":"a","price":1.1}']),
        ("json:$.none", []),
        ("json:$.big", ["12345678901234567890.123"]),
        ("json:$.items[0].name | $.items[1].name", ["a", "b"]),
    ],
)
def test_json_bodies(said: str, found: list[str]) -> None:
    body = """{"items": [{"name": "a", "price": 1.10}, {"name": "b", "price": 2e1}],
               "big": 12345678901234567890.123}"""
    assert find(said, body, "application/json") == found


def test_xml_is_read_as_xml() -> None:
    body = "<?xml version='1.0'?><Offers><Price>5</Price><Link>http://a/</Link></Offers>"
    assert find("xpath://Link", body, "application/xml") == ["http://a/"]
    bomb = "<!DOCTYPE a [<!ENTITY b 'xx'><!ENTITY c '&b;&b;&b;'>]><a><p>&c;</p></a>"
    assert find("xpath://p", bomb, "text/xml") == []


def test_what_people_see_is_told_from_what_machines_read() -> None:
    for shown in ("h1", "xpath://h1", "xpath://h1/text()", "xpath:string(//h1)"):
        assert isinstance(find(shown)[0], Shown), shown
    for told in ("meta@content", "xpath://meta/@content", "json:script#state|$.offer.price"):
        assert not isinstance(find(told)[0], Shown), told


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("h1[", "no CSS selector"),
        ("", "no CSS selector"),
        ("css:", "no CSS selector"),
        ("h1::text", "take @name"),
        ("p:nosuch", "no CSS selector"),
        ("xpath://a[", "no XPath"),
        ("xpath:nosuch()", "no XPath"),
        ("xpath://x:y", "no XPath"),
        ("xpath:", "no XPath"),
        ("json:$.a[", "no JSONPath"),
        ("json:a.b", "must begin with"),
        ("json:script[|$.a", "no CSS selector"),
        ("json:script|", "must begin with"),
        ("re:a+", "is no selector"),
    ],
)
def test_a_wrong_selector_is_refused(said: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        selector(said)


@pytest.mark.parametrize("body", ["", "no json", "[" * 100_000, '{"a": ', "\0"])
def test_a_body_that_is_not_json(body: str) -> None:
    with pytest.raises(ExtractError):
        find("json:$.a", body, "application/json")


def test_a_body_without_elements() -> None:
    for said in ("p", "xpath://p", "json:p|$.a"):
        assert find(said, "") == []


def test_there_is_a_limit() -> None:
    body = "<p>x</p>" * (2 * MAX_MATCHES)
    assert len(find("p", body)) == len(find("xpath://p", body)) == MAX_MATCHES
    assert find("b", "<div>" * 3000 + "<b>deep") == ["deep"]
    assert sum(map(len, find("p", f"<p>{'x' * 900_000}" * 3))) == MAX_TEXT
