"""Merchants' feeds: what they state, in the words of visits, and what is wrong with them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from salticus.errors import InputError
from salticus.extract.base import Content
from salticus.extract.offer import Offer
from salticus.extract.price import currency, price
from salticus.extract.words import availability, condition
from salticus.signals import opened
from salticus.signals.merchant import FeedTally, MerchantFeed, Spelling
from salticus.signals.opened import Opened
from salticus.types import Told, Value
from salticus.urls import without_tracking

SPELLING = Spelling(price, currency, availability, condition)
AT = int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp() * 1e6)
HEADER = "id\ttitle\tlink\tprice\tavailability"

Make = Callable[[str | bytes], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(body: str | bytes) -> Path:
        path = tmp_path / "shop.tsv"
        path.write_bytes(body.encode() if isinstance(body, str) else body)
        return path

    return made


def feed(path: Path, *, keep_tracking: bool = False) -> MerchantFeed:
    file = Opened(path, path.name)
    return MerchantFeed(file, SPELLING, origin="shop", at=AT, keep_tracking=keep_tracking)


def told(path: Path) -> list[Told]:
    return list(feed(path).told())


def texts(path: Path) -> list[str]:
    return [row.value.text for row in told(path)]


def tally(path: Path) -> FeedTally:
    return feed(path).check()


def row(**cells: str) -> str:
    """A table of one row, in the order given."""
    return "\t".join(cells) + "\n" + "\t".join(cells.values()) + "\n"


LINK = "https://shop.example/1"


def test_a_row_says_all_it_knows(make: Make) -> None:
    body = row(
        id="1",
        title="Black  tea",
        link=LINK,
        price="19.90 EUR",
        availability="in_stock",
        brand="Leaf",
        google_product_category="Food > Tea",
        condition="new",
        gtin="4006381333931",
        item_group_id="g1",
        colour="black",
    )
    fields = {
        "price": "19.9",
        "currency": "EUR",
        "availability": "InStock",
        "title": "Black tea",
        "brand": "Leaf",
        "category": "Food > Tea",
        "condition": "NewCondition",
        "id": "1",
        "gtin": "4006381333931",
        "group": "g1",
    }
    assert told(make(body)) == [Told(LINK, AT, "shop", Value("offer", "19.9 EUR InStock", fields))]


def test_a_feed_says_it_in_the_words_of_a_visit(make: Make) -> None:
    page = b"""<script type="application/ld+json">{"@type": "Product", "name": "Tea", "offers":
      {"@type": "Offer", "price": "19.90", "priceCurrency": "EUR",
       "availability": "https://schema.org/InStock"}}</script>"""
    seen = Offer().extract(Content(LINK, page))
    value = getattr(seen, "value", seen)
    assert isinstance(value, Value)
    assert texts(make(f"{HEADER}\n1\tTea\t{LINK}\t19.90 EUR\tin stock\n")) == [value.text]


@pytest.mark.parametrize(
    ("said", "code", "expected"),
    [
        ("19.99 EUR", "", "19.99 EUR"),
        ("EUR 19.99", "", "19.99 EUR"),
        ("19.99 eur", "", "19.99 EUR"),
        ("19,99 EUR", "", "19.99 EUR"),
        ("1.299,00 EUR", "", "1299 EUR"),
        ("1,299.00 USD", "", "1299 USD"),
        ("19.00", "GBP", "19 GBP"),
        ("19.00", "", "19"),
        ("€19.50", "", "19.5 EUR"),
        ("0.00 EUR", "", "0 EUR"),
        ("1299 JPY", "", "1299 JPY"),
    ],
)
def test_prices(make: Make, said: str, code: str, expected: str) -> None:
    assert texts(make(row(link=LINK, price=said, currency=code))) == [expected]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("in stock", "InStock"),
        ("in_stock", "InStock"),
        ("out of stock", "OutOfStock"),
        ("out_of_stock", "OutOfStock"),
        ("preorder", "PreOrder"),
        ("backorder", "BackOrder"),
        ("yes", "InStock"),
        ("0", "OutOfStock"),
        ("17", "InStock"),
        ("https://schema.org/SoldOut", "SoldOut"),
        ("perhaps", ""),
        ("", ""),
    ],
)
def test_availability(make: Make, said: str, expected: str) -> None:
    (text,) = texts(make(row(link=LINK, price="5 EUR", availability=said)))
    assert text == f"5 EUR {expected}".strip()


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        ("", "4 EUR"),
        ("2026-11-01T00:00+0100/2026-12-01T00:00+0100", "4 EUR"),
        ("2026-11-17T00:00Z/2026-12-01T00:00Z", "5 EUR"),
        ("2026-10-01T00:00Z/2026-11-16T12:00Z", "5 EUR"),
        ("2026-11-16T12:00Z/2026-11-16T12:01Z", "4 EUR"),
        ("soon", "4 EUR"),
    ],
)
def test_a_sale_counts_while_it_is_on(make: Make, dates: str, expected: str) -> None:
    cells = {"link": LINK, "price": "5 EUR", "sale_price": "4 EUR"}
    assert texts(make(row(**cells, sale_price_effective_date=dates))) == [expected]


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tables(make: Make, delimiter: str, end: str) -> None:
    rows = [
        ["ID", "Product Name", "Product URL", "Price", "Stock Status"],
        ["1", f'"a ""good"" {delimiter} tea"', LINK, "5.00 EUR", '"in stock"'],
        [],
        ["2", '"two lines\nof text"', "https://shop.example/2", '"6.00 EUR"', "out of stock"],
    ]
    body = end.join(delimiter.join(cells) for cells in rows)
    found = told(make(body))
    assert [(each.url, each.value.text) for each in found] == [
        (LINK, "5 EUR InStock"),
        ("https://shop.example/2", "6 EUR OutOfStock"),
    ]
    assert found[0].value.fields["title"] == f'a "good" {delimiter.strip()} tea'.replace("  ", " ")


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("cp1252"),
        lambda text: gzip.compress(text.encode()),
        lambda text: b"\n\n" + text.encode(),
    ],
)
def test_encodings(make: Make, encode: Callable[[str], bytes]) -> None:
    body = encode(f"{HEADER}\n1\tCafé crème\t{LINK}\t5 EUR\tin stock\n")
    (found,) = told(make(body))
    assert found.value.fields["title"] == "Café crème"


RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:g="http://base.google.com/ns/1.0">
<channel><title>Shop</title><link>https://shop.example/</link>
<item><title>Tea</title><link>https://shop.example/1?a=1&amp;utm_source=x</link>
<g:id>1</g:id><g:title>Black tea</g:title><g:price>5.00 EUR</g:price>
<g:shipping><g:country>DE</g:country><g:price>3.99 EUR</g:price></g:shipping>
<g:availability>in_stock</g:availability><g:brand><![CDATA[Leaf & Co]]></g:brand></item>
<item><g:id>2</g:id><g:price>6 EUR</g:price></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xmlns:g="http://base.google.com/ns/1.0">
<entry><g:title>Black tea</g:title><link href="https://shop.example/1?a=1"/>
<g:price>5.00 EUR</g:price><g:availability>in stock</g:availability><g:brand>Leaf &amp; Co</g:brand>
</entry></feed>"""


@pytest.mark.parametrize("body", [RSS, ATOM])
def test_xml(make: Make, body: str) -> None:
    (found,) = told(make(body))
    assert (found.url, found.value.text) == ("https://shop.example/1?a=1", "5 EUR InStock")
    assert found.value.fields["title"] == "Black tea"
    assert found.value.fields["brand"] == "Leaf & Co"


def test_bad_rows_are_counted_and_named(make: Make) -> None:
    body = "\n".join(
        [
            HEADER,
            f"1\tTea\t{LINK}\t5 EUR\tin stock",
            "2\tTea\thttps://shop.example/2\tcall us\tin stock",
            "3\tTea\t\t5 EUR\tin stock",
            "4\tTea\tnot a link\t5 EUR\tin stock",
            "5\tTea\thttps://shop.example/5\t5 EUR\tin stock\tand\tmore",
            "6\tTea\thttps://shop.example/6",
            *(f"{n}\tTea\thttps://shop.example/{n}\t5 EUR\t" for n in range(7, 12)),
        ]
    )
    found = tally(make(body))
    assert (found.rows, found.good, found.bad) == (11, 6, 5)
    assert found.complaints == [
        "shop.tsv:3:4: price 'call us' is not one price; write 19.99 EUR",
        "shop.tsv:4:3: link is empty; every row needs its page's address",
        "shop.tsv:5:3: 'not a link' is not a URL; write https://…",
        "shop.tsv:6: 7 cells, but the header has 5; quote the delimiter",
        "shop.tsv:7:4: price is empty; write 19.99 EUR",
    ]


def test_bad_items_are_named_by_their_line(make: Make) -> None:
    found = tally(make(RSS))
    assert (found.rows, found.bad) == (2, 1)
    assert found.complaints == ["shop.tsv:7: link is empty; every row needs its page's address"]


def test_more_than_half_bad_is_an_error(make: Make) -> None:
    rows = ["1\ta\thttps://shop.example/1\t5 EUR\t", *(f"{n}\tb\t\t\t" for n in range(20))]
    with pytest.raises(InputError) as error:
        tally(make("\n".join([HEADER, *rows])))
    first, *named = str(error.value).splitlines()
    assert first == "shop.tsv: 20 of 21 rows are bad; nothing was imported"
    assert len(named) == 10


def test_of_several_rows_of_a_page_the_first_counts(make: Make) -> None:
    path = make(f"{HEADER}\n1\ta\t{LINK}?utm_medium=x\t5 EUR\t\n2\tb\t{LINK}\t6 EUR\t\n")
    assert texts(path) == ["5 EUR"]
    assert (tally(path).rows, tally(path).good, tally(path).repeated) == (2, 1, 1)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (f"{LINK}?utm_source=a&utm_Campaign=b", LINK),
        (f"{LINK}?a=1&amp;b=2", f"{LINK}?a=1&b=2"),
        (f"{LINK}?a=1&gclid=x#top", f"{LINK}?a=1"),
        (f"{LINK}?copy=1&reg=2", f"{LINK}?copy=1&reg=2"),
        ("HTTPS://Shop.Example/1", LINK),
    ],
)
def test_links_are_those_of_pages(make: Make, link: str, expected: str) -> None:
    assert [each.url for each in told(make(row(link=link, price="5 EUR")))] == [expected]
    assert without_tracking(without_tracking(link)) == without_tracking(link)


def test_tracking_may_be_kept(make: Make) -> None:
    path = make(row(link=f"{LINK}?utm_source=a", price="5 EUR"))
    assert [each.url for each in feed(path, keep_tracking=True).told()] == [f"{LINK}?utm_source=a"]


def test_the_canonical_link_stands_in(make: Make) -> None:
    assert [each.url for each in told(make(row(canonical_link=LINK, price="5 EUR")))] == [LINK]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "empty"),
        (b"PK\x03\x04zip", "a zip archive; unpack it first"),
        (b"a,b\n1,2\n", "no column for link and price in 'a,b'"),
        (b"link\nhttps://shop.example/\n", "no column for price"),
        (HEADER.encode(), "0 of 0 rows are bad"),
        (b"<html><body>404</body></html>", "no products: its root is <html>"),
        (b"<!DOCTYPE rss [<!ENTITY a 'b'>]><rss><item/></rss>", "definitions of its own"),
        (gzip.compress(RSS.encode())[:-20], "broken gzip"),
        (b"\x1f\x8b\x09broken", "broken gzip"),
        (b"link,price\n" + b"x" * 2_000_000, "a line of a million characters"),
    ],
)
def test_what_is_no_feed_is_named(make: Make, body: bytes, complaint: str) -> None:
    with pytest.raises(InputError) as error:
        tally(make(body))
    assert str(error.value).startswith("shop.tsv")
    assert complaint in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"shop.tsv: cannot be read: No such file"):
        tally(tmp_path / "shop.tsv")


def test_a_quote_that_is_not_closed_costs_one_row(make: Make) -> None:
    rows = [f"{n}\tTea\thttps://shop.example/{n}\t5 EUR\tin stock" for n in range(4000)]
    rows[5] = '5\t"Tea\thttps://shop.example/5\t5 EUR\tin stock'
    found = tally(make("\n".join([HEADER, *rows])))
    assert found.bad == 1
    assert "is a quote not closed?" in found.complaints[0]
    assert found.complaints[0].startswith("shop.tsv:7: ")
    assert found.good > 1000


def test_a_file_cut_short_is_told(make: Make) -> None:
    found = tally(make(RSS[: RSS.index("<item><g:id>2")]))
    assert (found.good, found.fault) == (1, "the XML ends too early")


def test_a_feed_is_read_as_a_stream(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row is there before the second piece of the file is read."""
    path = make(
        HEADER + "".join(f"\n{n}\tTea\thttps://a.example/{n}\t5 EUR\t" for n in range(9000))
    )
    rows = feed(path).told()
    monkeypatch.setattr(opened, "MAX_TEXT_LINE", 10)  # what is read from now on is refused
    with pytest.raises(InputError, match="a line of a million"):
        next(rows)
    monkeypatch.undo()
    rows = feed(path).told()
    assert next(rows).url == "https://a.example/0"
    monkeypatch.setattr(opened, "MAX_TEXT_LINE", 10)
    with pytest.raises(InputError, match="a line of a million"):
        list(rows)
