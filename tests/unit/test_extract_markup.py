"""Offers in microdata, RDFa and meta elements, and how syntaxes complete one another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from salticus.checks.extract import check_extractor
from salticus.errors import ExtractError
from salticus.extract.base import Content
from salticus.extract.document import document_of
from salticus.extract.markup import Markup, applies
from salticus.extract.offer import Offer
from salticus.types import Value

URL = "https://shop.example/p/kettle"
ITEM = 'itemscope itemtype="https://schema.org/'


def value(page: str, url: str = URL) -> Value | None:
    return Markup().extract(Content(url, page.encode(), "text/html", "utf-8"))


def text(page: str, url: str = URL) -> str | None:
    found = value(page, url)
    return found.text if found else None


def fields(page: str, url: str = URL) -> dict[str, str]:
    found = value(page, url)
    assert found is not None
    return found.fields


def chain(page: str) -> str | None:
    content = Content(URL, page.encode(), "text/html", "utf-8")
    found = Offer().extract(content) or Markup().extract(content)
    return found.text if found else None


def ld(*said: Any) -> str:
    return "".join(
        f'<script type="application/ld+json">{json.dumps(part)}</script>' for part in said
    )


def html(body: str, lang: str = "de", head: str = "") -> str:
    return f'<!doctype html><html lang="{lang}"><head><title>Kettle</title>{head}</head>{body}'


def micro(inner: str, name: str = "Kettle", more: str = "") -> str:
    """A product in microdata; `inner` stands in its offer."""
    offer = f'<div itemprop="offers" {ITEM}Offer">{inner}</div>'
    return f'<div {ITEM}Product"><h1 itemprop="name">{name}</h1>{more}{offer}</div>'


def rdfa(inner: str) -> str:
    return (
        '<div vocab="https://schema.org/" typeof="Product"><h1 property="name">Kettle</h1>'
        f'<div property="offers" typeof="Offer">{inner}</div></div>'
    )


def meta(*pairs: tuple[str, str]) -> str:
    return "".join(f'<meta property="{key}" content="{content}">' for key, content in pairs)


PRICED = '<meta itemprop="price" content="19.90"><meta itemprop="priceCurrency" content="EUR">'


def test_the_laws_of_extractors_hold() -> None:
    check_extractor(Markup())


# --------------------------------------------------------------------------------------- microdata


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (PRICED, "19.9 EUR"),
        ('<span itemprop="price">19,90 €</span>', "19.9 EUR"),
        ('<span itemprop="price">1.299</span> <i itemprop="priceCurrency">EUR</i>', "1299 EUR"),
        ('<span itemprop="price">19<sup>99</sup></span>', "19.99"),
        ('<b itemprop="price"><i>1</i><i>299</i><i>,00</i></b>', "1299"),
        ('<data itemprop="price" value="165.00">165 Euro</data>', "165 EUR"),
        ('<input itemprop="price" value="165.00">', "165"),
        ('<span itemprop="price" content="23.9">23,90 €</span>', "23.9 EUR"),
        ('<span itemprop="price" content="23.9">statt 30 €</span>', "23.9"),
        ('<del itemprop="price">30 €</del> <b itemprop="price">25 €</b>', "25 EUR"),
        ('<b itemprop="price">25 €</b><meta itemprop="price" content="25.00">', "25 EUR"),
        (PRICED + '<link itemprop="availability" href="http://schema.org/InStock">',
         "19.9 EUR InStock"),
        (PRICED + '<span itemprop="availability">Sofort lieferbar</span>', "19.9 EUR InStock"),
        (PRICED + '<span itemprop="availability">nicht auf Lager</span>', "19.9 EUR OutOfStock"),
        (PRICED + '<meta itemprop="availability" content="in_stock">', "19.9 EUR InStock"),
    ],
)  # fmt: skip
def test_microdata_is_read_as_shops_write_it(inner: str, expected: str) -> None:
    assert text(html(micro(inner))) == expected


@pytest.mark.parametrize(
    "inner",
    [
        "",
        '<b itemprop="price">25 €</b> <b itemprop="price">30 €</b>',
        '<b itemprop="price">ab 25 €</b>',
        '<b itemprop="price">25 € / kg</b>',
        '<b itemprop="price">25 € zzgl. MwSt.</b>',
        '<b itemprop="price">{{ price }}</b>',
        '<b itemprop="price">Preis auf Anfrage</b>',
        '<del itemprop="price">30 €</del>',
        '<meta itemprop="price" content="0"><link itemprop="availability" href="InStock">'
        "<p>Preis auf Anfrage",
        '<meta itemprop="price" content="0"><meta itemprop="priceCurrency" content="EUR">',
        '<meta itemprop="price" content="999999">',
        '<meta itemprop="price" content="-1">',
        f'<div itemprop="priceSpecification" {ITEM}UnitPriceSpecification">'
        '<b itemprop="price">5</b><meta itemprop="unitCode" content="KGM"></div>',
    ],
)
def test_what_is_no_price_is_none(inner: str) -> None:
    assert text(html(micro(inner))) is None


def test_items_by_reference() -> None:
    page = (
        f'<div {ITEM}Product" itemref="a b a none"></div><h1 id="a" itemprop="name">Kettle</h1>'
        f'<div id="b" itemprop="offers" {ITEM}Offer" itemref="c"></div><p id="c">{PRICED}</p>'
        '<p id="c"><meta itemprop="price" content="7"></p>'
    )
    assert text(html(page)) == "19.9 EUR"
    assert fields(html(page))["title"] == "Kettle"


def test_names_are_texts_even_of_links_and_pictures() -> None:
    more = (
        '<a itemprop="brand" href="/brands/1">Fernhill &amp; Sons</a>'
        f'<div itemprop="manufacturer" {ITEM}Organization"><b itemprop="name">Maker</b></div>'
        '<meta itemprop="category" content="Kitchen &gt; Kettles"><i itemprop="sku">K-1</i>'
        '<meta itemprop="gtin13" content="4006381333931"><i itemprop="itemCondition">used</i>'
    )
    found = fields(html(micro(PRICED, more=more), lang="de-AT"))
    assert found == {
        "price": "19.9", "currency": "EUR", "title": "Kettle", "brand": "Fernhill & Sons",
        "category": "Kitchen > Kettles", "sku": "K-1", "gtin": "4006381333931",
        "condition": "UsedCondition", "language": "de-at", "country": "AT",
    }  # fmt: skip
    picture = '<img itemprop="brand" src="/b.png" alt="Fernhill">'
    assert fields(html(micro(PRICED, more=picture)))["brand"] == "Fernhill"


def test_an_offer_whose_author_forgot_the_property_is_its_products() -> None:
    page = f'<div {ITEM}Product"><h1 itemprop="name">Kettle</h1><p {ITEM}Offer">{PRICED}</p></div>'
    assert text(html(page)) == "19.9 EUR"
    bare = f'<div {ITEM}Product"><h1 itemprop="name">Kettle</h1>{PRICED}</div>'
    assert text(html(bare)) == "19.9 EUR"


# -------------------------------------------------------------------------------------------- RDFa


@pytest.mark.parametrize(
    "page",
    [
        rdfa('<b property="price" content="19.90">19,90</b><i property="priceCurrency">EUR</i>'),
        rdfa('<b property="price">19,90 €</b>'),
        rdfa('<b property="price">19,90 €</b>')
        .replace('="', '="schema:')
        .replace("schema:https", "https"),
        '<div prefix="s: http://schema.org/" typeof="s:Product"><h1 property="s:name">Kettle</h1>'
        '<p property="s:offers" typeof="s:Offer"><b property="s:price">19,90 €</b></p></div>',
    ],
)
def test_rdfa_is_read_with_any_prefix(page: str) -> None:
    assert text(html(page)) == "19.9 EUR"
    assert fields(html(page))["title"] == "Kettle"


def test_meta_elements_are_no_properties_of_an_item_around_them() -> None:
    page = '<body vocab="http://schema.org/" typeof="Product"><meta property="x:price" content="3">'
    assert text(page) is None


# ------------------------------------------------------------------------------------------- metas


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("product:price:amount", "19.90"), ("product:price:currency", "EUR")], "19.9 EUR"),
        ([("og:price:amount", "1.299,00"), ("og:price:currency", "EUR")], "1299 EUR"),
        ([("og:price:amount", "5"), ("og:availability", "instock")], "5 InStock"),
        ([("product:price:amount", "5"), ("product:availability", "out of stock")], "5 OutOfStock"),
        ([("twitter:label1", "Preis"), ("twitter:data1", "19,90 €")], "19.9 EUR"),
        ([("twitter:label1", "Lesezeit"), ("twitter:data1", "5")], None),
        ([("og:type", "article"), ("og:price:amount", "5")], None),
        ([("og:type", "product.group"), ("og:price:amount", "5")], None),
        ([("og:type", "product")], None),
    ],
)
def test_meta_elements_state_offers(pairs: list[tuple[str, str]], expected: str | None) -> None:
    assert text(html("", head=meta(*pairs))) == expected


def test_sale_and_list_price_of_meta_elements() -> None:
    both = [("product:price:amount", "50"), ("product:sale_price:amount", "40")]
    found = fields(html("", head=meta(*both)))
    assert (found["price"], found["list_price"]) == ("40", "50")
    before = [("product:price:amount", "40"), ("product:original_price:amount", "50")]
    found = fields(html("", head=meta(*before)))
    assert (found["price"], found["list_price"]) == ("40", "50")


def test_the_name_of_the_site_is_no_part_of_a_title() -> None:
    said = [("og:title", "Big kettle | Tea House"), ("og:site_name", "Tea House")]
    page = html("", head=meta(*said, ("og:price:amount", "5")))
    assert fields(page)["title"] == "Big kettle"


# ------------------------------------------------------------------------------------- completion


LD = {"@type": "Product", "name": "Kettle", "offers": {"@type": "Offer", "price": "19.90"}}


def test_what_one_syntax_leaves_out_the_next_completes() -> None:
    said = meta(("product:price:amount", "19.9"), ("product:price:currency", "EUR"),
                ("product:availability", "instock"), ("product:brand", "Fernhill"))  # fmt: skip
    page = html("", head=ld(LD) + said)
    assert chain(page) == "19.9 EUR InStock"
    assert fields(page)["brand"] == "Fernhill"
    assert chain(html(micro(PRICED), head=ld(LD))) == "19.9 EUR"


def test_a_currency_is_taken_only_with_the_same_amount() -> None:
    said = meta(("product:price:amount", "25"), ("product:price:currency", "EUR"))
    assert chain(html("", head=ld(LD) + said)) == "19.9"


def test_json_ld_counts_before_microdata_before_rdfa_before_metas() -> None:
    second = '<b itemprop="price">2 €</b>'
    third, fourth = rdfa('<b property="price">3 €</b>'), meta(("og:price:amount", "4"))
    assert chain(html(micro(second) + third, head=ld(LD) + fourth)) == "19.9"
    assert chain(html(micro(second) + third, head=fourth)) == "2 EUR"
    assert chain(html(third, head=fourth)) == "3 EUR"


def test_a_product_without_a_price_gets_none_from_another_product() -> None:
    bare = {"@type": "Product", "name": "Kettle"}
    related = micro(PRICED, name="Teapot").replace("h1", "b")
    assert chain(html("<h1>Kettle</h1>" + related, head=ld(bare))) is None
    assert chain(html(micro(PRICED), head=ld(bare))) == "19.9 EUR"


def test_the_text_does_not_depend_on_who_states_the_availability() -> None:
    asked = {"price": "19.90", "priceCurrency": "EUR"}
    stated, bare = LD | {"offers": asked | {"availability": "InStock"}}, LD | {"offers": asked}
    said = [meta(("product:availability", word)) for word in ("instock", "in stock", "In Stock")]
    texts = {chain(html("", head=ld(node) + tail)) for node in (stated, bare) for tail in said}
    assert texts == {"19.9 EUR InStock"}


def test_more_json_ld_than_the_fast_part_reads() -> None:
    many = ld(*[{"@type": "Thing", "name": str(n)} for n in range(100)])
    page = html("", head=many + ld(LD))
    assert Offer().extract(Content(URL, page.encode())) is None
    assert text(page) == "19.9"


# ----------------------------------------------------------------------------------- other products


def test_listings_have_no_offer() -> None:
    def card(n: int) -> str:
        return micro(PRICED, name=f"Model {n}", more=f'<a itemprop="url" href="/p/{n}">').replace(
            "h1", "b"
        )

    assert text(html("<h1>Kettles</h1>" + "".join(map(card, range(5))))) is None
    assert text(html("<h1>Our kettles</h1>" + card(1))) is None
    page = html("<h1>Kettles</h1>" + micro(PRICED), head=ld({"@type": "CollectionPage"}))
    assert text(page) is None


def test_related_products_beside_or_inside_the_main_one_do_not_count() -> None:
    related = micro('<b itemprop="price">3 €</b>', name="Lid").replace("h1", "b")
    assert text(html(micro(PRICED) + related)) == "19.9 EUR"
    assert text(html(related + micro(PRICED))) == "19.9 EUR"
    assert text(html(micro(PRICED, more=related))) == "19.9 EUR"
    assert text(html("<h1>Kettle</h1>" + related.replace("Lid", "Kettle lid"))) is None
    nested = related.replace("<div", '<div itemprop="isRelatedTo"', 1)
    assert text(html(micro("", more=nested))) is None


def test_a_product_in_an_article_is_only_mentioned() -> None:
    article = {"@type": "BlogPosting", "headline": "Kettle, a review"}
    assert chain(html(micro(PRICED), head=ld(article))) is None
    assert chain(html("", head=ld(article, LD))) is None
    elsewhere = article | {"url": "https://shop.example/blog/1"}
    assert chain(html("", head=ld(elsewhere, LD))) == "19.9"
    assert chain(html("", head=ld(article, LD | {"url": URL}))) == "19.9"


# ------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    ("shown", "lang", "code", "expected"),
    [
        ("1.299 €", "de", "EUR", "1299 EUR"),
        ("1.299,00 €", "de", "EUR", "1299 EUR"),
        ("1299,- €", "de", "EUR", "1299 EUR"),
        ("1,299 €", "de", "EUR", "1.299 EUR"),
        ("", "de", "EUR", None),
        ("1,299 € statt 1.299 €", "de", "EUR", None),
        ("", "en", "EUR", "1.299 EUR"),
        ("", "de", "JPY", "1299 JPY"),
        ("", "de", "KWD", "1.299 KWD"),
        ("", "", "EUR", "1.299 EUR"),
    ],
)
def test_three_decimals_are_thousands_or_thousandths(
    shown: str, lang: str, code: str, expected: str | None
) -> None:
    node = LD | {"offers": {"price": "1.299", "priceCurrency": code}}
    page = html(f"<body><h1>Kettle</h1><p>{shown}</p></body>", lang=lang, head=ld(node))
    assert chain(page) == expected


def test_another_syntax_settles_three_decimals() -> None:
    node = LD | {"offers": {"price": "1.299", "priceCurrency": "EUR"}}
    said = meta(("product:price:amount", "1299.00"), ("product:price:currency", "EUR"))
    assert chain(html("", head=ld(node) + said)) == "1299 EUR"


# ------------------------------------------------------------------------------------------ hostile


def test_the_page_is_parsed_once_and_left_as_it_is() -> None:
    page = html(
        ld(LD | {"offers": {"price": "1.299", "priceCurrency": "EUR"}}) + "<p>1.299,00 €<noscript>x"
    )
    content = Content(URL, page.encode(), "text/html", "utf-8")
    tree = document_of(content).nodes
    before = tree.html
    found = Markup().extract(content)
    assert found is not None
    assert found.text == "1299 EUR"
    assert document_of(content).nodes is tree
    assert tree.html == before


def test_pages_without_any_mark_are_not_parsed() -> None:
    assert not applies(Content(URL, b"<h1>Kettle</h1><p>19,90</p>"))
    assert text("<h1>Kettle</h1><p>19,90 €</p>") is None


@pytest.mark.parametrize(
    "page",
    [
        f'<div {ITEM}Product"><b itemprop="price" content="{"9" * 3_000_000}">',
        f'<div {ITEM}Product"><b itemprop="name">' + "x y " * 500_000,
        f'<b {ITEM}Product">' * 30_000 + '<i itemprop="price">5',
        '<b typeof="Product">' * 30_000 + '<i property="price">5',
        '<b itemprop="name">' * 5000 + "x",
        '<p id="a" itemscope itemref="b"><b id="b" itemprop="x" itemscope itemref="a"></b></p>'
        * 3000,
        "".join(f'<p itemscope itemref="i{n + 1} j{n + 1}" itemprop="o" id="{c}{n}"></p>'
                for n in range(100) for c in "ij") + '<p itemscope itemref="i0 j0"></p>',
        '<div id="r">' + '<p itemprop="price">5</p>' * 5000 + "</div>"
        + '<p itemscope itemref="r"></p>' * 2000,
        '<meta property="og:price:amount" content="x">' * 20_000,
        "<title>" * 50_000 + "itemprop",
        "<html " + "lang " * 50_000 + "itemprop>",
        '<link hreflang="de" href="x">' * 20_000 + "itemprop",
    ],
)  # fmt: skip
def test_hostile_pages_end(page: str) -> None:
    assert text(page) is None


def test_elements_nested_too_deep_are_refused() -> None:
    with pytest.raises(ExtractError, match="nested more than"):
        text("<div>" * 100_000 + micro(PRICED))
