"""Laws of the extractors on anything hypothesis can think of."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.checks.extract import check_content, check_reading
from salticus.config import Extract, Rule, Tolerance
from salticus.errors import ConfigError, ExtractError
from salticus.extract.about import canonical_link
from salticus.extract.base import Content
from salticus.extract.canonical import canonical, json_text, parse_json
from salticus.extract.document import ParsedPage, settled
from salticus.extract.offer import Offer
from salticus.extract.pool import PageReader
from salticus.extract.price import price
from salticus.extract.rules import Routes
from salticus.extract.select import selector
from salticus.extract.text import Text

URL = "https://shop.example/p/1"

KEYS = st.sampled_from(
    ["@type", "@id", "@graph", "offers", "price", "lowPrice", "priceCurrency", "availability",
     "name", "url", "hasVariant", "itemOffered", "mainEntity", "priceSpecification", "sku"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["Product", "Offer", "AggregateOffer", "19.90", "1.299,00 €", "EUR", "InStock", "#a", URL, ""]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=10)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)
PIECES = st.sampled_from(
    [b'<script type="application/ld+json">', b"</script>", b"<script ", b"<!--", b"-->", b"{", b"}",
     b'"offers":', b'{"@type":"Product","offers":{"price":"5"}}', b"[", b"]", b",", b'"', b"</",
     b"<main>", b"<p>word", b"&#0;", b"\xff", b"\x00", b"<meta charset=utf-16>", b"<title>x",
     b"<h1>Page not found", b"<title>404", b"<link rel=canonical href=", b"/x>", b"<table><td>",
     b"<ul><li>", b"3 minutes ago", b"<p class=price>5 \xe2\x82\xac</p>", b"%PDF-1.4",
     b"g-recaptcha", b"<input type=password>", b"<button>Accept all", b"cookie",
     b"<noscript>enable javascript"]
)  # fmt: skip
BODIES = st.lists(PIECES | st.binary(max_size=8), max_size=20).map(b"".join)
TYPES = st.sampled_from(["", "text/html", "text/plain", "application/json", "image/png"])
CHARSETS = st.sampled_from([None, "utf-8", "latin1", "utf-16", "gbk", "euc-jp", "nonsense"])


def page(said: Any) -> Content:
    block = json.dumps(said).replace("</", "<\\/")
    return Content(URL, f'<script type="application/ld+json">{block}</script>'.encode())


@given(st.builds(Content, st.text(max_size=20) | st.just(URL), BODIES, TYPES, CHARSETS))
@settings(deadline=None)
def test_offer_obeys_its_laws_on_any_bytes(content: Content) -> None:
    check_content(Offer(), content)


@given(st.builds(Content, st.just(URL), BODIES, TYPES, CHARSETS))
@settings(deadline=None)
def test_text_obeys_its_laws_on_any_bytes(content: Content) -> None:
    check_content(Text(), content)


RULES = (
    Rule("*", select={"price": ".price", "availability": "xpath://p"}),
    Rule("*", select={"a": "p@class", "b": "json:$..price", "c": "json:script|$.*"}, value=("a",)),
    Rule("*", select={"n": "xpath://p"}, tolerance={"n": Tolerance.parse(1)}),
    Rule("*", ignore=("css:p, li", "xpath://h1", "re:w.r")),
    Rule("*", value=("price",)),
)
READER = PageReader(Extract(pdf=True, links=True), RULES)
ROUTES = Routes(RULES)


@given(
    st.builds(Content, st.text(max_size=20) | st.just(URL), BODIES, TYPES, CHARSETS),
    st.sampled_from([None, "offer", "page", "article", "source"]),
    st.sampled_from([-1, *range(len(RULES))]),
)
@settings(deadline=None)
def test_a_reading_obeys_its_laws_on_any_bytes(
    content: Content, kind: str | None, rule: int
) -> None:
    readings = []
    for _ in range(2):
        try:
            readings.append(READER.read(content, ROUTES.route(kind, rule)))
        except ExtractError:
            readings.append(None)
    assert readings[0] == readings[1]
    if readings[0] is not None:
        check_reading(readings[0])


@given(st.builds(Content, st.text(max_size=20) | st.just(URL), BODIES))
def test_a_canonical_link_is_an_address_of_the_web(content: Content) -> None:
    found = canonical_link(content)
    assert found is None or found.startswith(("http://", "https://"))


@given(st.text(max_size=30) | st.from_regex(r"(css|xpath|json|re):.{0,20}", fullmatch=True))
def test_anything_is_a_selector_or_refused(said: str) -> None:
    with contextlib.suppress(ConfigError, ExtractError):
        assert all(selector(said).find(ParsedPage(Content(URL, b"<p>word</p>"))))


@given(TREES)
def test_json_has_one_form(said: Any) -> None:
    shown = json_text(parse_json(json.dumps([said])))
    assert json_text(parse_json(shown)) == shown


@given(st.text(max_size=200))
def test_what_rests_stays_at_rest(text: str) -> None:
    once = settled(f"<p>{text}</p>")
    assert settled(once) == once


@given(TREES)
@settings(deadline=None)
def test_offer_obeys_its_laws_on_any_json(said: Any) -> None:
    check_content(Offer(), page(said))


@given(TREES)
@settings(deadline=None)
def test_the_order_of_keys_never_matters(said: Any) -> None:
    found = Offer().extract(page([{"@type": "Product", "offers": said}, said]))
    turned = Offer().extract(page([{"offers": _turned(said), "@type": "Product"}, _turned(said)]))
    assert found == turned


def _turned(said: Any) -> Any:
    if isinstance(said, dict):
        return {key: _turned(part) for key, part in reversed(said.items())}
    return [_turned(part) for part in said] if isinstance(said, list) else said


@given(st.decimals(min_value=0, max_value=10**9, places=2))
def test_prices_are_exact_and_shortest(amount: Decimal) -> None:
    shown = price(f"{amount:f}")
    assert shown is not None
    assert Decimal(shown.amount) == amount
    assert (
        shown == price(f"0{amount:f}00") == price(f"{amount:e}" if amount >= 1 else f"{amount:f}")
    )
    assert not shown.amount.endswith((".", "0")) or "." not in shown.amount


@given(st.integers(min_value=0, max_value=10**12), st.integers(min_value=0, max_value=99))
def test_a_price_reads_the_same_in_every_country(whole: int, cents: int) -> None:
    expected = price(f"{whole}.{cents:02}")
    assert expected is not None
    grouped = f"{whole:,}"
    for group, point in ((".", ","), (" ", ","), ("\u202f", ","), ("’", "."), (",", ".")):
        local = price(f"{grouped.replace(',', group)}{point}{cents:02} €")
        assert local == expected._replace(currency="EUR")


@given(st.text() | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Mn", "Zs", "Lo"])))
def test_canonical_text_is_stable_and_storable(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once == once.strip()
    assert canonical(f" \n{text}\t") == once
    assert "\0" not in once
    once.encode()
