"""The user's rules: which pages they hold for, what they select, and when they are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from salticus.config import Config, Extract, Rule, Span, Tolerance
from salticus.errors import ConfigError, ExtractError
from salticus.extract.about import canonical_link
from salticus.extract.base import Content
from salticus.extract.fields import asked, number
from salticus.extract.pool import Extraction, PageReader
from salticus.extract.price import Shown
from salticus.extract.rules import Routes, check_rules
from salticus.types import Reading, Status, Target, Value

URL = "https://shop.example/p/1"
LD = (
    '<script type="application/ld+json">{"@type": "Product", "name": "Kettle", "brand": "Fern",'
    '"offers": {"price": "25.00", "priceCurrency": "EUR", "availability": "InStock"}}</script>'
)
PAGE = (
    f"<html lang=de><head>{LD}</head><body><h1>Kettle</h1><p class=price>19,90 €</p>"
    "<p class=stock>Auf Lager</p><p class=ship>Lieferung: 3–5 Tage</p><p class=note>Anrufen</p>"
    "<p class=rating>4,5</p><p class=temp>−3,5 °C</p><ul><li>eins<li>zwei</ul></body></html>"
)


def read(
    rule: Rule, body: str = PAGE, kind: str | None = "offer", content_type: str = "text/html"
) -> Reading:
    route = Routes([rule]).route(kind, 0)
    return PageReader(Extract(), [rule]).read(Content(URL, body.encode(), content_type), route)


def rule(**said: Any) -> Rule:
    return Rule("*", **said)


NAMES = ("availability", "condition", "currency", "title", "size")


@given(
    st.sampled_from(NAMES),
    st.text(st.characters(codec="utf-8", exclude_characters="\r<&"), min_size=1),
)
@example("availability", "auf Anfrage")
def test_every_wording_is_plain_text(name: str, wording: str) -> None:
    """What a selector finds is stored, whether its words are known or not."""
    for selector in ("css:.x", "xpath://p[@class='x']", "xpath://p[@class='x']/text()"):
        wide = rule(
            select={name: selector}, value=(name,), tolerance={"size": Tolerance.parse("1%")}
        )
        found = read(wide, f"<p>More</p><p class=x>{wording}</p>").value
        if found is not None:
            assert {type(text) for text in (found.text, *found.fields.values())} == {str}


# -------------------------------------------------------------------------------- which rule holds


def test_the_first_rule_that_matches_holds() -> None:
    rules = (Rule("https://a.example/p/*"), Rule("https://*.example/*"), Rule("*?x=[12]"))
    urls = ("https://a.example/p/1", "https://a.example/q", "http://b/c?x=2", "http://b/c?x=3")
    found = [Config(pages=rules).ruled(Target(1, url, "")).rule for url in urls]
    assert found == [0, 1, 2, -1]
    assert Config(pages=rules).ruled(Target(1, urls[0].upper(), "")).rule == -1
    assert [Config(pages=rules).rule(number) for number in (2, -1)] == [rules[2], None]


def test_the_page_knows_its_kind_better_than_the_rule() -> None:
    routes = Routes([Rule("*", kind="article"), Rule("*", extractor="offer")])
    assert routes.route(None, 0).names == ("text",)
    assert routes.route("offer", 0).names == ("offer", "markup")
    assert routes.route("source", 0).names == ("source",)
    assert routes.route("page", 1).names == ("offer",)
    assert routes.route(None, -1).names == ("offer", "markup", "text")
    assert routes.route("recipe", -1).names == ("text",)


# --------------------------------------------------------------------------------- what it selects


def test_selected_fields_replace_the_markup() -> None:
    found = read(rule(select={"price": ".price"})).value
    assert found is not None
    assert (found.kind, found.text) == ("offer", "19.9 EUR InStock")
    assert found.fields.items() >= {"price": "19.9", "title": "Kettle", "brand": "Fern"}.items()


def test_the_selected_form_is_the_form_of_offers() -> None:
    told = read(rule(select={"price": ".price", "availability": ".stock"}), PAGE.replace(LD, ""))
    assert told.value is not None
    assert told.value.kind == "offer"
    assert told.value.text == "19.9 EUR InStock"


def test_an_unknown_kind_with_a_price_is_an_offer() -> None:
    found = read(rule(select={"price": ".price"}), PAGE.replace(LD, ""), None).value
    assert found == Value("offer", "19.9 EUR", {"price": "19.9", "currency": "EUR"})


def test_words_that_are_not_known_stay_as_they_are() -> None:
    found = read(rule(select={"price": ".price", "availability": ".ship"})).value
    assert found is not None
    assert found.fields["availability"] == "Lieferung: 3–5 Tage"


def test_fields_of_pages() -> None:
    one = read(rule(select={"rating": ".rating"}), kind="page").value
    assert one == Value("page", "4,5", {"rating": "4,5"})
    two = read(rule(select={"rating": ".rating", "items": "li"}), kind="page").value
    assert two is not None
    assert two.text == "rating: 4,5; items: eins zwei"
    chosen = read(rule(select={"a": ".rating", "b": "li"}, value=("b",)), kind="page").value
    assert chosen == Value("page", "eins zwei", {"a": "4,5", "b": "eins zwei"})


def test_the_value_may_be_chosen_without_selecting() -> None:
    found = read(rule(value=("price",))).value
    assert found is not None
    assert found.text == "25"
    assert found.fields["availability"] == "InStock"
    both = read(rule(value=("title", "price"))).value
    assert both is not None
    assert both.text == "title: Kettle; price: 25"


def test_numbers_with_a_tolerance_are_plain_decimals() -> None:
    tolerance = {"rating": Tolerance.parse(0.1), "temp": Tolerance.parse(1)}
    selected = {"rating": ".rating", "temp": ".temp"}
    found = read(rule(select=selected, tolerance=tolerance), kind="page")
    assert found.value is not None
    assert found.value.fields == {"rating": "4.5", "temp": "-3.5"}
    assert found.value.text == "rating: 4.5; temp: -3.5"


@pytest.mark.parametrize(
    ("said", "name", "reason"),
    [
        ({"select": {"price": ".nosuch"}}, "price", "finds nothing"),
        ({"select": {"price": ".note"}}, "price", "'Anrufen' is not one price"),
        ({"select": {"price": ".price", "availability": "#no"}}, "availability", "finds nothing"),
        ({"select": {"price": "json:$.a"}}, "price", "the body is not JSON"),
        ({"select": {"price": "json:h1|$.a"}}, "price", "no JSON"),
        ({"value": ("price", "condition")}, "condition", "does not have it"),
    ],
)
def test_a_field_that_is_not_found_loses_the_value(
    said: dict[str, Any], name: str, reason: str
) -> None:
    found = read(rule(**said))
    assert found.value is None
    assert found.status is Status.OK
    assert found.fault
    assert found.fault.startswith(f"field {name!r}: ")
    assert reason in found.fault


def test_a_field_that_is_no_part_of_the_value_may_be_absent() -> None:
    found = read(rule(select={"price": ".price", "shipping": ".nosuch"}))
    assert found.value is not None
    assert "shipping" not in found.value.fields


def test_json_endpoints() -> None:
    body = '{"data": {"price": 19.90, "currency": "eur", "in": "in stock"}, "at": 123}'
    chosen = {"price": "json:$.data.price", "currency": "json:$.data.currency"}
    found = read(rule(select=chosen), body, "offer", "application/json").value
    assert found == Value("offer", "19.9 EUR", {"price": "19.9", "currency": "EUR"})
    whole = read(rule(), body, "page", "application/json").value
    assert whole is not None
    assert whole.text == '{"at":123,"data":{"currency":"eur","in":"in stock","price":19.9}}'


def test_a_part_of_the_users(tmp_path: Path) -> None:
    part = tmp_path / "mine.py"
    part.write_text(
        "from salticus.types import Value\n"
        "class Mine:\n"
        "    fast = False\n"
        "    def extract(self, content):\n"
        "        return Value('note', 'mine', {'price': '7', 'rank': '1'})\n"
    )
    mine = f"{part}:Mine"
    assert read(rule(extractor=mine)).value == Value("note", "mine", {"price": "7", "rank": "1"})
    found = read(rule(extractor=mine, select={"price": ".price"}, value=("price", "rank"))).value
    assert found is not None
    assert found.text == "price: 19.9; rank: 1"
    check_rules([rule(extractor=mine, value=("rank",))])


@pytest.mark.parametrize(
    ("text", "tongue", "amount"),
    [
        ("19,90 € inkl. 19% MwSt", "de", "19.9"),
        ("Now only $1,299.00!", "en", "1299"),
        ("1.299", "de", "1299"),
        ("1.299", "en", "1.299"),
        ("12 pieces, 5 €", "en", "5"),
        ("UVP 25,00 € jetzt 19,90 €", "de", None),
        ("4 of 5", "en", None),
        ("-5 €", "en", None),
        ("call us", "en", None),
    ],
)
def test_the_price_in_a_selected_text(text: str, tongue: str, amount: str | None) -> None:
    found = asked(Shown(text), tongue)
    assert (found and found.amount) == amount


def test_the_number_in_a_selected_text() -> None:
    assert number(Shown("1.234 Bewertungen"), "de") == "1234"
    assert number(Shown("1,234 reviews"), "en") == "1234"
    assert number("0.500") == "0.5"
    assert number(Shown("-0 °C")) == "0"
    assert number("7 of 9") == ""


# ----------------------------------------------------------------------------------- refused rules


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"select": {"price": "p["}}, r"select\.price: 'p\[' is no CSS selector"),
        ({"select": {"x": "xpath://a["}}, r"select\.x: '//a\[' is no XPath"),
        ({"select": {"x": "json:$["}}, r"select\.x: '\$\[' is no JSONPath"),
        ({"ignore": ("re:(",)}, r"ignore: '\(' is no regular expression"),
        ({"ignore": ("css:p[",)}, r"ignore: 'p\[' is no CSS selector"),
        ({"wait": "p["}, r"'p\[' is no CSS selector"),
        ({"extractor": "nosuch"}, "no extractor is called 'nosuch'"),
        ({"select": {"a": "p"}, "value": ("b",)}, "value names 'b', which is not selected"),
        ({"tolerance": {"prise": Tolerance.parse(1)}}, "tolerance names 'prise'"),
    ],
)
def test_rules_that_cannot_be_obeyed_are_refused(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"^pages that match 'http://a/\*': {reason}"):
        check_rules([Rule("http://b/*"), Rule("http://a/*", **said)])


def test_rules_that_can_be_obeyed_pass() -> None:
    check_rules([])
    check_rules(
        [
            Rule("*", select={"price": "p@data-price", "x": "xpath://b", "y": "json:$.a"}),
            Rule("*", value=("price", "title"), tolerance={"price": Tolerance.parse("1%")}),
            Rule("*", ignore=("css:.ad", "xpath://i", "re:[0-9]+ left"), wait="#done"),
        ]
    )


# ----------------------------------------------------------------------------- the judge, and links


def test_a_wall_has_no_value_even_if_a_selector_matches() -> None:
    wall = "<title>Just a moment...</title><h1>shop</h1><script>window._cf_chl_opt={}</script>"
    found = read(rule(select={"head": "h1"}), wall, "page")
    assert found.status is Status.BLOCKED
    assert found.value is None
    gone = "<title>Page not found</title><h1>Page not found</h1>"
    assert read(rule(select={"head": "h1"}), gone, "page").status is Status.SOFT_404
    assert read(rule(), gone, None).status is Status.SOFT_404
    assert read(rule(), gone, "offer").status is Status.SOFT_404
    assert read(rule(), gone + LD, None).status is Status.SOFT_404, "it offers another product"
    assert read(rule(), PAGE, None).value is not None
    assert read(rule(), gone, "source").status is Status.SOFT_404
    assert read(rule(), wall, "source").status is Status.BLOCKED


def test_what_is_not_text_is_named_for_every_kind() -> None:
    for kind in (None, "offer", "page"):
        found = PageReader(Extract()).read(
            Content(URL, b"GIF89a", "text/html"), Routes().route(kind, -1)
        )
        assert found == Reading(fault="not text: the body is a GIF image")


def test_a_shell_advises_to_render() -> None:
    shell = "<div id=root></div><script src=/a.js></script>"
    assert "render = true" in (read(rule(), shell, "page").fault or "")
    assert "render = true" not in (read(rule(render=True), shell, "page").fault or "")


def test_links_of_every_page() -> None:
    body = PAGE + "<a href='/p/2'>2</a>"
    routes = Routes()
    content = Content(URL, body.encode(), "text/html")
    found = PageReader(Extract(links=True)).read(content, routes.route("offer", -1))
    assert found.value is not None
    assert [entry.url for entry in found.entries] == ["https://shop.example/p/2"]
    assert PageReader(Extract()).read(content, routes.route("offer", -1)).entries == ()


def test_links_of_hubs_that_are_no_new_pages_are_followed_if_all_links_are() -> None:
    items = "".join(f"<a href='/{name}'>x</a>" for name in "abcdef")
    body = f"<nav><a href='/tea/'>Tea</a></nav>{items}<a href='?page=2'>2</a>"
    content, route = Content(URL, body.encode(), "text/html"), Routes().route("source", -1)
    few = PageReader(Extract()).read(content, route).entries
    many = PageReader(Extract(links=True)).read(content, route).entries
    assert len(few) == 6
    more = {entry.url.removeprefix("https://shop.example") for entry in many[6:]}
    assert (many[:6], more) == (few, {"/tea/", "/p/1?page=2"})


# ---------------------------------------------------------------------------------- canonical links


@pytest.mark.parametrize(
    ("head", "url"),
    [
        ('<link rel="canonical" href="https://shop.example/p/2">', "https://shop.example/p/2"),
        ("<link href=/p/2 rel=canonical>", "https://shop.example/p/2"),
        ("<LINK REL='canonical' HREF='../q?a=1&amp;b=2#top'>", "https://shop.example/q?a=1&b=2"),
        ('<link rel="alternate canonical" href="//other.example/x"/>', "https://other.example/x"),
        ('<link rel="canonical" href="HTTPS://SHOP.example:443/p/2">', "https://shop.example/p/2"),
        ('<link rel="canonical" href="https://shop.example/p/1#a">', None),
        ('<link rel="canonical" href="https://SHOP.example/p/1">', None),
        ('<link rel="canonical" href="">', None),
        ('<link rel="canonical">', None),
        ('<link rel="canonical" href="javascript:alert(1)">', None),
        ('<link rel="canonical" href="http://">', None),
        ('<link rel="canonical" href="https://shop.example/">', None),
        ('<!-- <link rel="canonical" href="/p/2"> -->', None),
        ("<link rel=canonical href=/p/2><link rel=canonical href=/p/3>", None),
        ("<link rel=canonical href=/q><link rel=canonical href=/q>", "https://shop.example/q"),
        ('<base href="/x/"><link rel=canonical href="2">', None),
        ('<meta property="og:url" content="https://shop.example/p/2">', None),
        ('<link rel="stylesheet" href="/canonical.css">', None),
        ("</head><body><link rel=canonical href=/p/2>", None),
    ],
)  # fmt: skip
def test_canonical_links(head: str, url: str | None) -> None:
    body = f"<html><head>{head}</head><body><p>Text</p></body></html>".encode()
    assert canonical_link(Content(URL, body)) == url


def test_the_front_page_may_be_canonical_for_itself() -> None:
    body = b'<head><link rel="canonical" href="https://shop.example/"></head>'
    assert canonical_link(Content("http://shop.example/", body)) == "https://shop.example/"


# --------------------------------------------------------------------------------- in the processes


def run(rules: list[Rule], *visits: tuple[str, str | None, str], **config: Any) -> list[Any]:
    async def main() -> list[Any]:
        extraction = Extraction(Extract(workers=1, deadline=Span(seconds=1), **config), rules=rules)
        ruled = Config(pages=tuple(rules)).ruled
        try:
            reads = [
                extraction.read(
                    Content(url, body.encode(), "text/html"), ruled(Target(1, url, "a", kind))
                )
                for url, kind, body in visits
            ]
            return await asyncio.gather(*reads, return_exceptions=True)
        finally:
            await extraction.close()

    return asyncio.run(main())


def test_a_hanging_pattern_costs_its_page_alone() -> None:
    evil = Rule("http://a/evil*", ignore=("re:(a+)+$",))
    body = "<main><p>" + "a" * 40 + "!</p></main>"
    bad, good = run([evil], ("http://a/evil", "page", body), ("http://a/good", "page", body))
    assert isinstance(bad, ExtractError)
    assert "http://a/evil: the extractor took longer than 1 s" in str(bad)
    assert good.value == Value("page", "a" * 40 + "!")


def test_rules_reach_the_workers() -> None:
    rules = [
        Rule("http://a/p/*", kind="offer", select={"price": ".price"}),
        Rule("http://a/t/*", ignore=("css:.price",)),
    ]
    canonical = "<link rel=canonical href=/x>"
    page = f"<head>{canonical}</head><p class=price>5 €</p><p>Tea and a kettle</p>"
    offer, text, fast = run(
        rules, ("http://a/p/1", None, page), ("http://a/t/1", None, page),
        ("http://a/q", None, f"<head>{canonical}{LD}</head>"),
    )  # fmt: skip
    assert offer.value == Value("offer", "5 EUR", {"price": "5", "currency": "EUR"})
    assert text.value.text == "Tea and a kettle"
    assert fast.value.text == "25 EUR InStock"
    assert offer.canonical == text.canonical == fast.canonical == "http://a/x"
