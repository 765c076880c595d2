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


def test_products_that_may_be_one_must_agree_when_no_address_tells() -> None:
    assert text(product("1"), product("1.00")) == "1"
    assert text(product("1"), product("2")) is None
    assert text({"@type": "Product", "name": "a"}, product("2", name="b")) is None
    assert text({"@type": "Product", "sku": "a"}, product("2", sku="a")) == "2"


def test_addresses_that_are_none_do_not_count() -> None:
    assert text(product("1", url="http://["), product("1", url=7), url=URL) == "1"
    assert text(product("1", url=URL), product("1", url="/p/2"), url="http://[") == "1"


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
    assert text({"@type": "Product", "offers": outer | {"offers": inner}}) == "8 EUR InStock"
    del outer["lowPrice"]
    assert text({"@type": "Product", "offers": outer | {"offers": inner}}) == "8 EUR InStock"
    assert text({"@type": "Product", "offers": outer}) is None
    assert text(outer | {"lowPrice": 2, "offers": inner}) == "2 EUR InStock"


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


# ------------------------------------------------------------------------------- which offer counts


def fields(*said: Any, url: str = URL) -> dict[str, str]:
    found = Offer().extract(page(*said, url=url))
    assert found is not None
    return found.fields


def variant(sku: str, price: str, stock: str, **more: Any) -> dict[str, Any]:
    offer = {"@type": "Offer", "price": price, "availability": stock}
    return {"@type": "Product", "sku": sku, "name": f"Shirt {sku}", "offers": offer} | more


def test_the_variant_that_the_address_selects_else_the_first_in_stock_else_the_first() -> None:
    shirts = [
        variant("S", "1", "OutOfStock"),
        variant("M", "2", "InStock"),
        variant("L", "3", "InStock"),
    ]
    group = {"@type": "ProductGroup", "name": "Shirt", "productGroupID": "G", "hasVariant": shirts}
    assert text(group) == "2 InStock"
    assert text(group, url=f"{URL}?sku=L") == "3 InStock"
    assert text(group, url=f"{URL}?sku=S") == "1 OutOfStock"
    assert text(group, url="https://shop.example/p/L") == "3 InStock"
    assert text(group | {"hasVariant": shirts[:1]}) == "1 OutOfStock"
    assert fields(group)["sku"] == "M"
    assert fields(group)["title"] == "Shirt"
    assert text({"@type": "Product", "name": "Shirt", "model": shirts}) == "2 InStock"


def test_variants_by_colour_and_by_address_among_other_parameters() -> None:
    red = variant("r", "1", "InStock", color="Red", url=f"{URL}?attribute_pa_color=red")
    blue = variant("b", "2", "InStock", color="Blue", url=f"{URL}?attribute_pa_color=blue")
    group = {"@type": "ProductGroup", "name": "Shirt", "hasVariant": [red, blue]}
    assert text(group, url=f"{URL}?utm_source=x&attribute_pa_color=blue") == "2 InStock"
    assert text(group, url=f"{URL}?color=BLUE") == "2 InStock"
    assert text(group, url=f"{URL}?color=green") == "1 InStock"


def test_the_query_selects_where_the_path_names_all_alike() -> None:
    offers = [{"sku": f"30{size}", "price": n} for n, size in enumerate("TFQ", 1)]
    sold = {"@type": "Product", "productID": "A-30", "offers": offers}
    for query, expected in (("skuId=30Q", "3"), ("variant=30f", "2"), ("sku=none", "1"), ("", "1")):
        assert text(sold, url=f"https://shop.example/p/A-30?{query}") == expected


def test_the_more_of_the_query_a_variant_answers_the_better() -> None:
    shirts = [
        variant(f"{color}{size}", str(n), "InStock", color=color, size=size, productID="A")
        for n, (color, size) in enumerate((c, s) for c in ("red", "blue") for s in ("S", "M"))
        if n
    ]
    group = {"@type": "ProductGroup", "name": "Shirt", "hasVariant": shirts}
    assert text(group, url="https://shop.example/p/A?size=M&color=blue") == "3 InStock"
    assert text(group, url="https://shop.example/p/A?color=blue&size=S") == "2 InStock"


def test_variants_at_the_top_are_one_product() -> None:
    of = {"@type": "ProductGroup", "@id": "#g"}
    shirts = [
        variant("S", "1", "SoldOut", isVariantOf=of),
        variant("M", "2", "InStock", isVariantOf=of),
    ]
    assert text(*shirts) == "2 InStock"
    grouped = [variant(s, s, "InStock", inProductGroupWithID="G") for s in ("4", "3")]
    assert text(*grouped) == "4 InStock"


def test_offers_in_several_currencies_count_in_their_order() -> None:
    offers = [{"price": "5", "priceCurrency": code} for code in ("EUR", "USD")]
    assert text({"@type": "Product", "offers": offers}) == "5 EUR"
    sold = {
        "@type": "Product",
        "offers": [o | {"eligibleRegion": o["priceCurrency"][:2]} for o in offers],
    }
    body = page(sold).body.replace(b"<html>", b'<html lang="en-US">')
    found = Offer().extract(Content(URL, body))
    assert found is not None
    assert found.text == "5 USD"


def test_the_currency_and_the_range_of_a_specification() -> None:
    part = {"minPrice": "5", "maxPrice": "9", "priceCurrency": "EUR"}
    assert text({"@type": "Product", "offers": {"priceSpecification": part}}) == "5 EUR"
    both = {"price": "5", "priceSpecification": {"price": "5", "priceCurrency": "EUR"}}
    assert text({"@type": "Product", "offers": both}) == "5 EUR"


@pytest.mark.parametrize("tax", [True, "true", "https://schema.org/True"])
def test_the_price_with_tax_is_what_the_buyer_pays(tax: Any) -> None:
    key = "valueAddedTaxIncluded"
    net, gross = {"price": 199, key: False}, {"price": "236.81", key: tax}
    for parts in ([net, gross], [gross, net], [net | {key: "false"}, gross]):
        assert text({"@type": "Product", "offers": {"priceSpecification": parts}}) == "236.81"
    listed = gross | {"price": 300, "priceType": "ListPrice"}
    for alone in ([net], [net, {"@type": "DeliveryChargeSpecification", "price": 5}]):
        assert text({"@type": "Product", "offers": {"priceSpecification": alone}}) == "199"
    known = fields({"@type": "Product", "offers": {"priceSpecification": [listed, net, gross]}})
    assert (known["price"], known["list_price"]) == ("236.81", "300")


def test_an_aggregate_states_its_range() -> None:
    offers = {"@type": "AggregateOffer", "lowPrice": "5.00", "highPrice": 9, "offerCount": "12"}
    known = fields({"@type": "Product", "offers": offers})
    assert (known["price"], known["low_price"], known["high_price"]) == ("5", "5", "9")
    assert known["offer_count"] == "12"
    inner = [{"price": "5", "sku": "A"}, {"price": "9", "sku": "B"}]
    narrowed = {"@type": "Product", "offers": offers | {"offers": inner}}
    assert text(narrowed, url=f"{URL}?sku=B") == "9"


@pytest.mark.parametrize(
    "kind", ["ListPrice", "StrikethroughPrice", "https://schema.org/SRP", "MSRP"]
)
def test_the_list_price_is_kept_beside_the_price(kind: str) -> None:
    listed = {"@type": "UnitPriceSpecification", "price": "30", "priceType": kind}
    asked = {"@type": "UnitPriceSpecification", "price": "20"}
    for offer in (
        {"price": "20", "priceSpecification": listed},
        {"priceSpecification": [listed, asked]},
        {"price": "30", "priceSpecification": [listed, asked]},
    ):
        known = fields({"@type": "Product", "offers": offer})
        assert (known["price"], known["list_price"]) == ("20", "30")
    assert "list_price" not in fields(
        {"@type": "Product", "offers": {"price": "30", "priceSpecification": listed}}
    )


@pytest.mark.parametrize(
    "part",
    [
        {"unitCode": "MON"},
        {"unitText": "kg"},
        {"billingDuration": 12},
        {"billingIncrement": 1},
        {"priceComponentType": "https://schema.org/Installment"},
        {"priceComponentType": "Downpayment"},
        {"referenceQuantity": {"value": 100, "unitCode": "GRM"}},
        {"eligibleQuantity": {"minValue": 10}},
        {"validForMemberTier": {"@id": "#gold"}},
        {"@type": "DeliveryChargeSpecification"},
        {"priceType": "MinimumAdvertisedPrice"},
    ],
)
def test_parts_that_are_not_what_the_buyer_pays(part: dict[str, Any]) -> None:
    other = {"@type": "UnitPriceSpecification", "price": "2"} | part
    assert text({"@type": "Product", "offers": {"priceSpecification": other}}) is None
    asked = {"@type": "UnitPriceSpecification", "price": "6"}
    assert text({"@type": "Product", "offers": {"priceSpecification": [other, asked]}}) == "6"


def test_a_rate_that_the_offer_repeats_is_no_price() -> None:
    rate = {"price": "29.99", "billingDuration": "P1M"}
    assert (
        text({"@type": "Product", "offers": {"price": 29.99, "priceSpecification": rate}}) is None
    )


def test_the_price_of_the_pack_is_one() -> None:
    pack = {"value": "4.5", "unitCode": "LTR", "valueReference": {"value": "1", "unitCode": "LTR"}}
    for quantity in (pack, {"value": 1, "unitCode": "C62"}):
        part = {"price": "81.00", "referenceQuantity": quantity}
        assert text({"@type": "Product", "offers": {"priceSpecification": part}}) == "81"


def test_offers_in_lists_of_lists_and_products_of_actions() -> None:
    assert text({"@type": "Product", "offers": [[{"price": "5"}], [{"price": "6"}]]}) == "5"
    assert text({"@type": "BuyAction", "object": product("7")}) == "7"
    alone = {"@type": "Offer", "price": "8", "itemOffered": {"@type": "Product", "name": "Kettle"}}
    assert fields(alone)["title"] == "Kettle"


def wrapped(inner: Any) -> list[dict[str, Any]]:
    """The ways in which a page says that a thing can be bought on it."""
    buy = {"@type": "BuyAction", "object": inner}
    return [
        buy,
        {"@type": "https://schema.org/SellAction", "object": inner},
        {"@type": ["WebPage", "ItemPage"], "potentialAction": [{"@type": "ReadAction"}, buy]},
        {"@type": "WebPage", "mainEntity": buy},
        {"@type": "schema:ItemPage", "about": inner},
    ]


def test_a_product_is_found_in_what_can_be_done_on_the_page() -> None:
    listed = {"@type": "ItemList", "itemListElement": [{"item": product("3")}]}
    for ours in wrapped(product("7")):
        assert text(ours) == "7"
    for others in wrapped(listed):
        assert text(others) is None
    for pair in wrapped([product("1", name="Oak shelf"), product("2", name="Pine shelf")]):
        assert titled("Joinery", "Shelves", pair) is None
    action = {"@type": "BuyAction", "object": product("3", name="Filter")}
    assert text({"@type": "Product", "name": "Kettle", "potentialAction": action}) is None
    assert text({"@type": "Organization", "potentialAction": action}) is None
    assert text({"@type": "ReadAction", "object": product("3")}) is None


def test_leases_and_plans_have_no_single_price() -> None:
    lease = {"price": "199", "businessFunction": "http://purl.org/goodrelations/v1#LeaseOut"}
    assert text({"@type": "Car", "offers": lease}) is None
    assert text({"@type": "Car", "offers": [lease, {"price": "19900"}]}) == "19900"
    plans = [{"name": "Basic", "price": "9"}, {"name": "Pro", "price": "29"}]
    assert text({"@type": "SoftwareApplication", "offers": plans}) is None
    assert text({"@type": "SoftwareApplication", "offers": plans[:1]}) == "9"
    span = {"@type": "AggregateOffer", "lowPrice": "9", "highPrice": "29"}
    assert text({"@type": "Service", "offers": span}) is None
    assert text({"@type": "Product", "offers": span}) == "9"


def test_offers_of_other_things_do_not_count() -> None:
    other = {"price": "3", "itemOffered": {"@type": "Product", "name": "Filter"}}
    assert text({"@type": "Product", "name": "Kettle", "offers": other}) is None
    assert text({"@type": "Product", "name": "Kettle", "offers": [other, {"price": "5"}]}) == "5"


# ------------------------------------------------------------------------------ what is no offer


@pytest.mark.parametrize("price", ["0", "0.00", 0])
def test_nothing_is_free_unless_it_can_be_had(price: Any) -> None:
    assert text(product(price)) is None
    for stock, expected in (("InStock", "0 InStock"), ("OutOfStock", None)):
        offer = {"price": price, "availability": stock}
        assert text({"@type": "Product", "offers": offer}) == expected
    assert text({"@type": "MobileApplication", "offers": {"price": price}}) == "0"
    body = page({"@type": "Product", "offers": {"price": price, "availability": "InStock"}}).body
    assert Offer().extract(Content(URL, body + b"<p>Price on request")) is None


@pytest.mark.parametrize(
    "price", ["999999", "9999999.99", "{{ price }}", "-1", 10**9, "N/A", "NaN"]
)
def test_placeholders_are_no_price(price: Any) -> None:
    assert text(product(price)) is None


@pytest.mark.parametrize(
    "node",
    [
        {"@type": "CollectionPage"},
        {"@type": ["WebPage", "SearchResultsPage"]},
        {"@type": "CheckoutPage"},
        {"@type": "WebPage", "mainEntity": {"@type": "ItemList"}},
        {"@type": "NGO", "potentialAction": {"@type": "DonateAction"}},
        {"@type": "NewsArticle", "headline": "Kettles"},
    ],
)
def test_pages_that_say_they_are_something_else(node: dict[str, Any]) -> None:
    assert text(node, product(name="Kettle")) is None


@pytest.mark.parametrize(
    "kind", ["Organization", "NewsArticle", "WebPage", "LocalBusiness", "Recipe"]
)
def test_kinds_that_are_not_sold(kind: str) -> None:
    assert text({"@type": kind, "name": "x", "offers": {"price": "5"}}) is None


def titled(title: str, heading: str, *said: Any) -> str | None:
    scripts = page(*said).body.decode()
    body = f"<title>{title}</title></head>{scripts}<h1>{heading}</h1>"
    found = Offer().extract(Content(URL, body.encode()))
    return found.text if found else None


def test_of_several_products_the_one_with_the_title_counts() -> None:
    pair = product("1", name="Oak shelf"), product("2", name="Pine shelf")
    assert titled("Pine shelf | Joinery", "", *pair) == "2"
    assert titled("Joinery", "Oak Shelf", *pair) == "1"
    assert titled("Joinery", "Shelves", *pair) is None
    assert titled("Oak shelf or Pine shelf?", "", *pair) is None
    longer = product("3", name="Oak shelf large")
    assert titled("Oak shelf large", "", pair[0], longer) == "3"


def test_a_product_that_lives_elsewhere_is_another() -> None:
    elsewhere = product(name="Oak shelf", url="/p/2")
    assert titled("Joinery", "Welcome", elsewhere) is None
    assert titled("Oak shelf", "", elsewhere) == "5"
    assert titled("Joinery", "Oak shelf", elsewhere) == "5"
    assert titled("Joinery", "Page not found", product(name="Oak shelf")) is None
    assert titled("Shop", "SHOP", product(name="Oak shelf")) == "5"  # of shop.example


def test_the_main_entity_counts_before_all_others() -> None:
    other, own = product("1", name="Oak shelf"), product("2", name="Pine shelf")
    assert titled("Oak shelf", "", other, {"@type": "ItemPage", "mainEntity": own}) == "2"


@pytest.mark.parametrize("tag", ["template", "textarea"])
def test_what_is_in_inert_elements_is_not_on_the_page(tag: str) -> None:
    body = f"<{tag}>{page(product()).body.decode()}</{tag}>"
    assert Offer().extract(Content(URL, body.encode())) is None
    assert Offer().extract(Content(URL, f"<{tag}></{tag}>{body}".encode() + page(product()).body))


# ------------------------------------------------------------------------------------- what is kept


def test_the_path_of_a_breadcrumb_without_home_and_product() -> None:
    def crumbs(*places: tuple[str, str | None]) -> dict[str, Any]:
        items = [
            {"@type": "ListItem", "position": n, "name": name} | ({"item": place} if place else {})
            for n, (name, place) in enumerate(places)
        ]
        return {"@type": "BreadcrumbList", "itemListElement": items[::-1]}

    root, kitchen = ("Tea House", "https://shop.example/"), ("Kitchen", "https://shop.example/k")
    kettle = product(name="Kettle")
    for trail in (
        crumbs(root, kitchen, ("Pots", "/k/pots"), ("Kettle", URL)),
        crumbs(("Home", None), kitchen, ("Pots", "/k/pots"), ("KETTLE", None)),
        crumbs(root, kitchen, ("Pots", "/k/pots"), ("Another name", None)),
        crumbs(kitchen, ("Pots", "/k/pots")),
    ):
        assert fields(kettle, trail)["category"] == "Kitchen > Pots"
        assert (
            fields(kettle, {"@type": "WebPage", "breadcrumb": trail})["category"]
            == "Kitchen > Pots"
        )
    assert fields(kettle | {"category": "A > B"}, crumbs(root, kitchen))["category"] == "A > B"
    assert "category" not in fields(kettle, crumbs(root, ("Kettle", None)))


def test_labels_of_references_numbers_and_wrapped_values() -> None:
    brand = {"@type": "Brand", "@id": "#b", "name": "Fernhill"}
    known = fields(
        product(name={"@value": "Kettle"}, brand={"@id": "#b"}, sku=12, gtin13="400 638-1333931"),
        brand,
    )
    assert (known["title"], known["brand"]) == ("Kettle", "Fernhill")
    assert (known["sku"], known["gtin"]) == ("12", "4006381333931")
    assert "gtin" not in fields(product(gtin="n/a"))
    assert fields(product(inLanguage="de-DE"))["language"] == "de-de"


@pytest.mark.parametrize(
    "form", [[4006381333931], {"@value": 4006381333931}, 4006381333931, "4006381333931.0"]
)
def test_numbers_are_kept_however_they_are_written(form: Any) -> None:
    assert fields(product(gtin13=form))["gtin"] == "4006381333931"
    assert fields(product(sku=[77]))["sku"] == fields(product(sku={"@value": 77}))["sku"] == "77"
    offer = {"price": "5", "sku": 77, "gtin": form}
    known = fields({"@type": "Product", "offers": offer})
    assert (known["sku"], known["gtin"]) == ("77", "4006381333931")


@pytest.mark.parametrize(
    ("form", "gtin"),
    [
        ("gtin13:4006381333931", "4006381333931"),
        ("EAN: 4006381333931", "4006381333931"),
        ({"propertyID": "gtin", "value": 4006381333931}, "4006381333931"),
        ([{"name": "Part", "value": "12345678"}, {"name": "EAN", "value": "40123455"}], "40123455"),
        (4006381333931, None),
        ("sku:4006381333931", None),
        ({"value": None}, None),
        ([None, [], True], None),
    ],
)
def test_identifiers_that_say_of_which_kind_they_are(form: Any, gtin: str | None) -> None:
    assert fields(product(productID=form)).get("gtin") == gtin
    assert fields(product(identifier=form)).get("gtin") == gtin
    assert fields(product(identifier=form, gtin="11111111"))["gtin"] == "11111111"


@pytest.mark.parametrize(
    ("head", "language", "country"),
    [
        ('<html lang="de-AT">', "de-at", "AT"),
        ("<HTML class=x LANG=fr>", "fr", None),
        ('<html><meta property="og:locale" content="pt_BR">', "pt-br", "BR"),
        ('<html lang="en"><meta property="og:locale" content="en_GB">', "en", "GB"),
        ('<html><meta http-equiv="content-language" content="it">', "it", None),
        (f'<html lang="de"><link rel=alternate hreflang="de-CH" href="{URL}">', "de", "CH"),
        ('<html lang="de"><link rel=alternate hreflang="de-CH" href="/other">', "de", None),
        ('<html lang="zh-Hant-TW">', "zh-hant-tw", "TW"),
        ('<html lang="{{ lang }}">', None, None),
        ("", None, None),
    ],
)
def test_language_and_country(head: str, language: str | None, country: str | None) -> None:
    found = Offer().extract(Content(URL, head.encode() + b"</head>" + page(product()).body[6:]))
    assert found is not None
    assert (found.fields.get("language"), found.fields.get("country")) == (language, country)


def test_the_fast_part_leaves_to_others_what_they_may_complete() -> None:
    alone = page(product()).body
    assert Offer().extract(Content(URL, alone)) is not None
    for more in (
        b'<meta property="product:price:currency" content="EUR"></head>',
        b'<p itemscope><b itemprop="priceCurrency">EUR</b></p>',
        b'<p typeof="Product"><b property="priceCurrency">EUR</b></p>',
    ):
        assert Offer().extract(Content(URL, more + alone)) is None


def test_products_that_all_claim_the_address_are_a_list_unless_the_title_says_variants() -> None:
    pair = [
        product(str(n), name=f"{name} shelf", url=f"{URL}#{n}")
        for n, name in enumerate(("Oak", "Pine"))
    ]
    assert titled("Joinery", "Shelves", *pair) is None
    shirts = [variant(s, "5", "InStock", url=f"{URL}?size={s}") for s in ("S", "M")]
    assert titled("Reed", "Shirt", *shirts) == "5 InStock"
