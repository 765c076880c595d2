"""Which offer a page makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from salticus.extract import jsonld
from salticus.extract.base import Content
from salticus.extract.offer import Offer

PAGES = Path(__file__).parents[1] / "data" / "pages"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PAGES / "expected.json").read_text("utf-8"))
URL = "https://shop.example/p/1"


def content(name: str) -> Content:
    said = EXPECTED[name]
    kind = said.get("content_type", "text/html")
    return Content(said["url"], (PAGES / name).read_bytes(), kind, said.get("charset"))


def page(*said: Any, url: str = URL) -> Content:
    scripts = (f'<script type="application/ld+json">{json.dumps(part)}</script>' for part in said)
    return Content(url, f"<html><head>{''.join(scripts)}</head></html>".encode(), "text/html")


def text(*said: Any, url: str = URL) -> str | None:
    found = Offer().extract(page(*said, url=url))
    return found.text if found else None


def product(price: Any = "5", **more: Any) -> dict[str, Any]:
    return {"@type": "Product", "offers": {"@type": "Offer", "price": price}} | more


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_offer_of_a_realistic_page(name: str) -> None:
    found = Offer().extract(content(name))
    assert (found.text if found else None) == EXPECTED[name]["offer"]
    if found:
        assert (found.kind, found.fields) == ("offer", EXPECTED[name]["fields"])


def test_every_page_on_file_has_an_expected_value() -> None:
    assert {path.name for path in PAGES.iterdir()} - {"expected.json"} == set(EXPECTED)


def test_the_product_with_the_address_of_the_page_is_the_main_one() -> None:
    first, own = product("1", url="/p/2"), product("2", url="http://www.shop.example/p/1/#x")
    assert text(first, own) == "2"
    assert text([first, {"@graph": [own]}]) == "2"
    assert text(first, {"@type": "Product", "name": "sold", "url": URL}) is None


def test_the_first_product_is_the_main_one_when_no_address_tells() -> None:
    assert text(product("1"), product("2")) == "1"
    assert text({"@type": "Product", "name": "a"}, product("2", name="b")) is None
    assert text({"@type": "Product", "sku": "a"}, product("2", sku="a")) == "2"


def test_addresses_that_are_none_do_not_count() -> None:
    assert text(product("1", url="http://["), product("2", url=7), url=URL) == "1"
    assert text(product("1", url=URL), product("2", url="/p/2"), url="http://[") == "1"


def test_products_in_lists_are_not_the_offer_of_this_page() -> None:
    listed = {"@type": "ItemList", "itemListElement": [{"item": product("3")}, product("4")]}
    assert text(listed) is None
    assert text(listed, product("5", isRelatedTo=[product("6")])) == "5"


def test_the_first_offer_with_a_price_counts() -> None:
    offers = [{"price": "ask"}, {"@type": "Offer", "price": 7}, {"price": 3}]
    assert text({"@type": "Product", "offers": offers}) == "7"


def test_the_offer_with_the_address_of_the_page_comes_first() -> None:
    offers = [{"price": n, "url": f"{URL}?variant={n}"} for n in (1, 2, 3)]
    sold = {"@type": "Product", "offers": offers}
    assert text(sold, url=f"{URL}?variant=2") == "2"
    assert text(sold, url=f"{URL}?utm_source=feed") == "1"


def test_an_aggregate_counts_by_its_lowest_price() -> None:
    outer = {
        "@type": "AggregateOffer",
        "lowPrice": "8.00",
        "highPrice": "9",
        "priceCurrency": "EUR",
    }
    inner = [{"price": "9", "availability": "SoldOut"}, {"price": "8", "availability": "InStock"}]
    assert text({"@type": "Product", "offers": outer | {"offers": inner}}) == "8 EUR SoldOut"
    del outer["lowPrice"]
    assert text({"@type": "Product", "offers": outer | {"offers": inner}}) == "9 EUR SoldOut"
    assert text({"@type": "Product", "offers": outer}) is None
    assert text(outer | {"lowPrice": 2, "offers": inner}) == "2 EUR SoldOut"


def test_offers_are_found_through_references() -> None:
    sold = {"@type": "Product", "@id": "#p", "offers": [{"@id": "#o"}, {"@id": "#none"}]}
    offer = {"@type": "Offer", "@id": "#o", "price": 4, "priceCurrency": "EUR"}
    assert text({"@graph": [sold, offer]}) == "4 EUR"
    bare = {"@type": "Product", "@id": "#p", "name": "a"}
    other = {"@type": "Offer", "price": 1, "itemOffered": {"@id": "#q"}}
    assert text([bare, other, offer | {"itemOffered": {"@id": "#p"}}]) == "4 EUR"
    assert text([bare, other]) is None


def test_rings_of_references_end() -> None:
    ring = {"@type": "Product", "@id": "#p", "offers": [{"@id": "#p"}] * 50, "name": "a"}
    assert text({"@graph": [ring | {"hasVariant": [{"@id": "#p"}] * 50}]}) is None


def test_a_crossed_out_price_and_a_price_per_kilogram_are_not_asked() -> None:
    parts: list[dict[str, Any]] = [
        {"price": 9, "priceType": "https://schema.org/StrikethroughPrice"},
        {"price": 2, "referenceQuantity": {"value": 1, "unitCode": "KGM"}},
        {"price": 6, "priceCurrency": "DKK"},
    ]
    assert text({"@type": "Product", "offers": {"priceSpecification": parts}}) == "6 DKK"
    assert text({"@type": "Product", "offers": {"priceSpecification": parts[0]}}) is None


def test_labels_are_clean_and_short() -> None:
    found = Offer().extract(page(product(name=" Salt\n &amp; \x00pepper " + "x" * 2000, brand=3)))
    assert found is not None
    assert found.fields["title"].startswith("Salt & pepper xxx")
    assert len(found.fields["title"]) <= 500
    assert "brand" not in found.fields


@pytest.mark.parametrize(
    "tag",
    [
        '<script type="application/ld+json">',
        "<script type='application/ld+json' >",
        "<script type=application/ld+json>",
        "<SCRIPT\n\tTYPE = 'APPLICATION/LD+JSON'\n>",
        '<script nonce="a>b" defer type="application/ld+json;charset=utf-8" data-x=\'<"\'>',
        '<script type="application/ld&#43;json">',
    ],
)
def test_start_tags_that_count(tag: str) -> None:
    body = f"<p>1 < 2</p>{tag}{json.dumps(product())}</script>"
    assert Offer().extract(Content(URL, body.encode())) is not None


@pytest.mark.parametrize(
    "tag",
    [
        '<script type="text/javascript" data-type="application/ld+json">',
        '<script type="application/ld+jsonp">',
        '<div type="application/ld+json">',
        "<script>// application/ld+json",
        '<!-- <script type="application/ld+json">',
    ],
)
def test_start_tags_that_do_not_count(tag: str) -> None:
    body = f"{tag}{json.dumps(product())}</script> -->"
    assert Offer().extract(Content(URL, body.encode())) is None


def test_too_many_blocks_or_too_much_of_them_are_not_read() -> None:
    assert text(product(), *[{}] * (jsonld.MAX_BLOCKS - 1)) == "5"
    assert text(product(), *[{}] * jsonld.MAX_BLOCKS) is None
    assert text(product(description="x" * 500_000)) == "5"
    assert text(product(), {"description": "x" * jsonld.MAX_BYTES}) is None


def test_an_unclosed_comment_sign_in_a_script_hides_nothing() -> None:
    body = b"<script>write('<!--')</script>" + page(product()).body
    assert Offer().extract(Content(URL, body)) is not None


def test_the_charset_of_the_header_wins_over_the_meta_element() -> None:
    block = json.dumps(product(name="thé"), ensure_ascii=False)
    body = f'<meta charset="utf-8"><script type="application/ld+json">{block}</script>'
    found = Offer().extract(Content(URL, body.encode("cp1252"), "text/html", "windows-1252"))
    assert found is not None
    assert found.fields["title"] == "thé"
    broken = Offer().extract(Content(URL, body.encode("cp1252"), "text/html"))
    assert broken is not None
    assert broken.fields["title"] == "th\ufffd"
