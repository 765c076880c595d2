"""Laws of what reads strangers' lists: sitemaps, feeds, links, merchants' feeds."""

from __future__ import annotations

import csv
import gzip
import io
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.sax.saxutils import escape

from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from salticus.errors import ExtractError, InputError
from salticus.extract import clutter, links, source
from salticus.extract.address import MAX_URL, address, addresses, parsed, site
from salticus.extract.base import Content
from salticus.extract.clutter import bare, is_list_part, without_session
from salticus.extract.links import MAX_TITLE, digest, links_of, read_links
from salticus.extract.price import currency, price
from salticus.extract.source import Source
from salticus.extract.words import availability, condition
from salticus.markup import Document, decoded, mended, text_of
from salticus.signals.merchant import MerchantFeed, Spelling
from salticus.signals.opened import Opened
from salticus.types import Entry, Told
from salticus.types.dates import written
from salticus.urls import canonical, without_tracking

URL = "https://www.shop.example/list.xml"
SPELLING = Spelling(price, currency, availability, condition)

MARKUP = st.sampled_from(
    [b"<?xml version='1.0'?>", b"<urlset>", b"</urlset>", b"<url>", b"</url>", b"<loc>", b"</loc>",
     b"/a", b"https://www.shop.example/b", b"<lastmod>2026-01-01</lastmod>", b"<sitemapindex>",
     b"<sitemap>", b"</sitemap>", b"<rss>", b"<channel>", b"<item>", b"</item>", b"<link>",
     b"</link>", b"<feed xmlns='http://www.w3.org/2005/Atom'>", b"<entry>", b"</entry>",
     b"<link href='/c' rel='alternate'/>", b"<guid>", b"</guid>", b"<![CDATA[", b"]]>", b"<!--",
     b"-->", b"<!DOCTYPE x [", b"<!ENTITY a '&a;'>", b"]>", b"&a;", b"&amp;", b"&", b"&#0;", b"<",
     b">", b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\xff", b"\x1f\x8b", b"{", b'"items":[',
     b'{"url":', b'"/d"', b"}", b"]", b"<a href='/e'>", b"<base href='//x.example'>",
     b"<a href=", b"\n"]
)  # fmt: skip
BODIES = st.lists(MARKUP | st.binary(max_size=6), max_size=40).map(b"".join)
BODIES = BODIES | BODIES.map(gzip.compress)
URLS = st.text(max_size=20) | st.sampled_from([URL, "http://[::1", "ftp://a.example/", ""])

PATHS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
LISTED = st.lists(
    PATHS.map(lambda path: canonical("https://www.shop.example/p/" + path)[0]), unique=True
)

FUZZ = settings(deadline=None, max_examples=80)


def obeys(read: Callable[[], tuple[Entry, ...]], most: int, url: str) -> None:
    """The laws of every list of entries."""
    fault = ""
    entries: tuple[Entry, ...] = ()
    try:
        entries = read()
    except ExtractError as error:
        fault = str(error)
    if fault:
        assert fault.startswith(url), "law: an error names the source"
        assert len(fault) < 1000
        return
    assert entries == read(), "law: same body, same entries"
    assert len(entries) <= most
    assert len({entry.url for entry in entries}) == len(entries), "law: each once"
    for entry in entries:
        assert canonical(entry.url)[0] == entry.url, "law: one spelling"
        assert len(entry.url) <= MAX_URL
        assert entry.title is None or 0 < len(entry.title) <= MAX_TITLE
        assert entry.at is None or isinstance(entry.at, int)
        entry.url.encode()


@given(BODIES, URLS)
@FUZZ
def test_any_bytes_as_a_sitemap(body: bytes, url: str) -> None:
    obeys(lambda: source.read_sitemap(body, url).entries, source.MOST_OF_SITEMAP, url)


@given(BODIES, URLS)
@FUZZ
def test_any_bytes_as_a_feed(body: bytes, url: str) -> None:
    obeys(lambda: source.read_feed(body, url).entries, source.MOST_OF_FEED, url)


@given(BODIES, URLS, st.sampled_from([None, "utf-16", "gbk", "nonsense"]))
@FUZZ
def test_any_bytes_as_a_page_with_links(body: bytes, url: str, charset: str | None) -> None:
    content = Content(url, body, "text/html", charset)
    obeys(lambda: read_links(content), links.MOST, url)
    assert len(links_of(content)) <= links.MOST


@given(BODIES, URLS)
@FUZZ
def test_any_bytes_as_a_source(body: bytes, url: str) -> None:
    content = Content(url, body)
    obeys(lambda: Source().extract(content).entries, source.MOST_OF_SITEMAP, url)
    try:
        reading = Source().extract(content)
    except ExtractError:
        return
    assert reading.value is not None
    assert reading.value.text == f"{len(reading.entries)} links, {digest(reading.entries)}"
    assert len(reading.value.text) < 100


@given(LISTED, st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]), st.booleans())
@FUZZ
def test_a_sitemap_says_what_was_written(urls: list[str], charset: str, packed: bool) -> None:
    rows = "".join(f"<url><loc>{escape(url)}</loc></url>" for url in urls)
    body = f"<urlset>{rows}</urlset>".encode(charset)
    reading = source.read_sitemap(gzip.compress(body) if packed else body, URL)
    assert [entry.url for entry in reading.entries] == urls
    assert reading.complete == bool(urls)


@given(LISTED, st.integers(0, 2000))
@FUZZ
def test_a_sitemap_cut_short_names_the_first_of_its_pages(urls: list[str], cut: int) -> None:
    rows = "".join(f"<url><loc>{escape(url)}</loc></url>" for url in urls)
    body = f"<urlset>{rows}</urlset>".encode()[:cut]
    try:
        reading = source.read_sitemap(body, URL)
    except ExtractError:
        assert b"</url>" not in body
        return
    found = [entry.url for entry in reading.entries]
    assert found == urls[: len(found)]
    assert len(found) == body.count(b"</url>")


@given(LISTED)
@FUZZ
def test_a_feed_says_what_was_written(urls: list[str]) -> None:
    items = "".join(f"<item><link>{escape(url)}</link></item>" for url in urls)
    reading = source.read_feed(f"<rss><channel>{items}</channel></rss>".encode(), URL)
    assert [entry.url for entry in reading.entries] == urls


TEXTS = st.lists(
    st.sampled_from(
        ["&", "&amp;", "&nbsp;", "&#233;", "<![CDATA[", "]]>", "]", "]]", "<b>", "x" * 30]
    )
    | st.text(max_size=5),
    max_size=30,
).map("".join)


@given(TEXTS, st.lists(st.integers(0, 400), max_size=5))
@example("<b>&nbsp;</b>", [6])
@example("junk<![CDATA[", [1])
@FUZZ
def test_where_a_stream_is_cut_does_not_matter(text: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
    assert "".join(mended(pieces)) == "".join(mended([text]))


@given(st.text(max_size=40), st.lists(st.integers(0, 200), max_size=4))
@FUZZ
def test_text_survives_its_way_through_xml(text: str, cuts: list[int]) -> None:
    kept = "".join(mended([f"<b>{escape(text)}</b>"]))
    body = f"<a><b>{escape(text)}</b></a>".encode("utf-8", "replace")
    bounds = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[a:b] for a, b in zip(bounds, bounds[1:], strict=False) if a < b]
    (found,) = [text_of(element) for element in Document(pieces, {"b"})]
    clean = kept[3:-4].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    clean = clean.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    assert found == clean.strip()


@given(st.binary(max_size=60))
@FUZZ
def test_anything_can_be_decoded(body: bytes) -> None:
    "".join(decoded([body])).encode("utf-8")


@given(st.text(max_size=80))
@FUZZ
def test_any_text_is_a_time_or_none(text: str) -> None:
    found = written(text)
    assert found is None or 0 < found < 5 * 10**15


@given(st.integers(633 * 10**12, 4102 * 10**12), st.integers(-14 * 4, 14 * 4))
@FUZZ
def test_times_are_read_back(expected: int, quarters: int) -> None:
    exact = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=expected)
    when = exact.replace(tzinfo=None)
    sign, minutes = "-" if quarters < 0 else "+", abs(quarters) * 15
    zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    local = (when + timedelta(minutes=15 * quarters)).isoformat(timespec="microseconds")
    assert written(local + zone) == expected
    assert written(local.replace("T", " ") + " " + zone) == expected
    assert written(exact.strftime("%a, %d %b %Y %H:%M:%S GMT")) == expected // 10**6 * 10**6


@given(st.text("aZ09?&=;/()sidSES_-", max_size=40))
@FUZZ
def test_taking_sessions_out_is_done_once(path: str) -> None:
    url = canonical("http://a.example/" + path)[0]
    once = without_session(url)
    assert without_session(once) == once
    assert len(once) <= len(url)


@given(st.lists(st.sampled_from(["utm_id=1", "a=1", "sid=2", "GCLID=x", "", "fbclid", "="])))
@FUZZ
def test_taking_trackers_out_is_done_once(parts: list[str]) -> None:
    url = "http://a.example/x?" + "&".join(parts)
    for clean in (without_tracking, bare):
        once = clean(url)
        assert clean(once) == once
        assert canonical(once)[0] == once
        assert "utm_id" not in once
        assert "GCLID" not in once


PIECES = st.sampled_from(
    ["a", "Z9", "b.html", "x-y_z", "~", "/", "//", "/.", "..", "?q=1", "?", "&", "=", ";", "#top",
     "#", ":", "%41", "%2e", "%zz", "(", ")", "@", "'", "[]", "\\", " ", "\t", "\n", "|", "é", "^",
     "{", "+", ",", "!", "$", "*", "x" * 1020]
)  # fmt: skip
TAILS = st.lists(PIECES, max_size=6).map("".join)
HEADS = st.sampled_from(
    ["", "", "/", "/", "//", "//a.example/", "http:", "https://", "http://a.example", "javascript:",
     "https://www.a.example/", "http://A.example/", "https://a.example:443/", "http://a.example:81/",
     "http://u:p@a.example/", "http://1.2/", "http://-.example/", "http://a..b/", "http://x:99999/"]
)  # fmt: skip
RAW_LINKS = st.builds("{}{}".format, HEADS, TAILS)
BASES = st.builds("{}{}".format, HEADS, TAILS)


@given(st.lists(RAW_LINKS, max_size=6), BASES)
@example(["x?", "x//y", "x?#", "/x?", "?q", "x;y?"], "http://a.example/p//q/r;s/t?u/v#w")
@example(["x", "/x", "x/../y"], "http://u:p@a.example/b/")
@settings(deadline=None, max_examples=400)
def test_the_short_way_leads_where_the_long_one_does(raws: list[str], base: str) -> None:
    expected = [parsed(raw.strip(), base) for raw in raws]
    assert [address(raw, base) for raw in raws] == expected
    assert addresses(raws, base) == expected


@given(
    st.lists(RAW_LINKS, min_size=30, max_size=60), st.sampled_from(["https://a.example/n/x", "x"])
)
@example(
    ["http://a.example?x=/b", "/x?", "/x??", "/a%20b", "/n/..", "http://1.2/"], "http://a.example/"
)
@example(["/" + "x" * (MAX_URL - 16), "/b"], "http://a.example/")
@settings(deadline=None, max_examples=60)
def test_many_links_lead_where_each_leads(raws: list[str], base: str) -> None:
    assert addresses(raws, base) == [parsed(raw.strip(), base) for raw in raws]


@given(
    TAILS, st.lists(st.sampled_from(["utm_id=1", "sid=12345678901234567", "a=(1)", "=", "", "b"]))
)
@FUZZ
def test_only_a_path_has_to_be_parsed_again_without_names(path: str, parts: list[str]) -> None:
    url = canonical(f"http://a.example/{path}?{'&'.join(parts)}")[0]
    clean = bare(url)
    if ";" not in url and "(" not in url.partition("?")[0]:
        assert canonical(clean)[0] == clean


PARTS = st.sampled_from(
    ["/", "/page", "/Seite", "pagina", "-", "1", "2026", "/2026/1", "/11", "/blog", "x", "?page=2",
     "?a=1", "&start=", "/page-", "stage", "\N{SUPERSCRIPT TWO}"]
)  # fmt: skip


@given(st.lists(PARTS, max_size=6).map("".join))
@settings(deadline=None, max_examples=300)
def test_parts_of_lists_are_those_of_the_plain_definition(rest: str) -> None:
    url = canonical(f"http://a.example/{rest}")[0]
    path, _, query = url.partition("?")
    path = path.rstrip("/")
    by_path = clutter._BY_PATH.search(path[-clutter._TAIL :]) or clutter._YEAR.fullmatch(path)
    assert is_list_part(url) == bool(by_path or clutter._BY_QUERY.search("&" + query))


@given(st.text("aé0123٣/\0-", max_size=40))
@FUZZ
def test_the_shape_of_a_link_has_one_digit_for_every_number(text: str) -> None:
    assert links._shape(text) == re.sub(r"\d+", "0", text)


def plainly(content: Content) -> list[str]:
    """The links of an ordinary page without numbers in its URL, one by one."""
    nodes = LexborHTMLParser(content.body).css("a[href]")
    written = dict.fromkeys((node.attributes["href"] or "").strip() for node in nodes)
    own, alike, found = canonical(content.url), Counter[str](), dict.fromkeys([""])
    for raw in written:
        shape, place = re.sub(r"\d+", "0", raw), parsed(raw, content.url)
        file = raw.partition("?")[0].endswith((".jpg", ".pdf.zip"))
        if place is None or raw.startswith("#") or file or alike[shape] >= links.MOST_ALIKE:
            continue
        named = any(mark in place.url for mark in "=;(")
        url = (parsed(bare(place.url), "") or place).url if named else place.url
        if site(place.host) == "a.example" and url not in (*found, own[0]):
            found[url] = None
            alike[shape] += 1
    return list(found)[1 : links.MOST + 1]


SHORT = st.sampled_from(
    ["/", "/n/", "//a.example/", "http://www.a.example/", "http://b.example/", ""]
)
MANY = st.lists(
    st.tuples(SHORT, st.integers(0, 400), st.sampled_from(["", "", "", "-x", ".jpg", "?utm_id=1"])),
    max_size=300,
)


@given(MANY, st.lists(RAW_LINKS, max_size=20))
@settings(deadline=None, max_examples=40)
def test_links_are_those_of_the_plain_definition(
    many: list[tuple[str, int, str]], odd: list[str]
) -> None:
    raws = [f"{start}{number}{end}" for start, number, end in many] + odd
    body = "".join(f'<a href="{raw}">x</a>' for raw in raws).encode()
    content = Content("http://a.example/x/", body, "text/html", "utf-8")
    assert [entry.url for entry in links_of(content)] == plainly(content)


# ------------------------------------------------------------------------------ merchants' feeds


def told(body: bytes) -> list[Told]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "feed"
        path.write_bytes(body)
        made = MerchantFeed(Opened(path, "feed"), SPELLING, origin="shop", at=0)
        tally = made.check()
        rows = list(made.told())
    assert len(rows) == tally.good
    assert tally.rows == tally.good + tally.bad + tally.repeated
    assert len(tally.complaints) == min(tally.bad, 10)
    return rows


CELLS = st.sampled_from(
    [b"link", b"price", b"id", b"availability", b"\t", b",", b";", b"|", b"\n", b"\r", b'"',
     b"5 EUR", b"https://shop.example/1", b"in stock", b"<rss>", b"<item>", b"</item>", b"<link>",
     b"</link>", b"<g:price>", b"</g:price>", b"<!DOCTYPE a [", b"&", b"\0", b"\xff", b"\xff\xfe",
     b"link\tprice\n"]
)  # fmt: skip
FILES = st.lists(CELLS | st.binary(max_size=6), max_size=40).map(b"".join)


@given(FILES | FILES.map(gzip.compress) | FILES.map(lambda body: b"link\tprice\n" + body))
@FUZZ
def test_any_bytes_as_a_merchants_feed(body: bytes) -> None:
    fault, rows = "", []
    try:
        rows = told(body)
    except InputError as error:
        fault = str(error)
    assert not fault or fault.startswith("feed"), "law: an error names the file"
    for row in rows:
        assert canonical(row.url)[0] == row.url
        assert row.value.text.split()[0] == row.value.fields["price"]


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
PRODUCTS = st.lists(
    st.tuples(WORDS, st.integers(0, 10**6), st.sampled_from(["in stock", "out_of_stock", ""])),
    min_size=1,
)


@given(PRODUCTS, st.sampled_from(["\t", ",", ";", "|"]), st.sampled_from(["utf-8", "utf-16"]))
@FUZZ
def test_a_table_says_what_was_written(
    products: list[tuple[str, int, str]], delimiter: str, charset: str
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["title", "link", "price", "availability"])
    for n, (title, cents, stock) in enumerate(products):
        amount = f"{cents // 100}.{cents % 100:02} EUR"
        writer.writerow([title, f"https://shop.example/{n}", amount, stock])
    rows = told(out.getvalue().encode(charset))
    assert [row.url for row in rows] == [f"https://shop.example/{n}" for n in range(len(products))]
    for row, (title, cents, stock) in zip(rows, products, strict=True):
        assert float(row.value.fields["price"]) == cents / 100
        assert row.value.fields.get("availability", "") == availability(stock)
        assert row.value.fields.get("title", "") == " ".join(title.split())
