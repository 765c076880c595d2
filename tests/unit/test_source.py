"""What a source is, by its bytes alone."""

from __future__ import annotations

import gzip

import pytest

from salticus.errors import ExtractError
from salticus.extract.base import Content
from salticus.extract.links import not_after
from salticus.extract.source import Source
from salticus.types import Entry, Reading

URL = "https://www.shop.example/list"
SITEMAP = b"<urlset><url><loc>/a</loc><lastmod>2026-01-02</lastmod></url></urlset>"
RSS = b"<?xml version='1.0'?><rss><channel><item><link>/a</link></item></channel></rss>"
BODIES = {
    "sitemap": SITEMAP,
    "sitemap index": b"<sitemapindex><sitemap><loc>/a</loc></sitemap></sitemapindex>",
    "text sitemap": b"https://www.shop.example/a\n",
    "rss": RSS,
    "rss 1.0": b"<rdf:RDF><item><link>/a</link></item></rdf:RDF>",
    "atom": b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/a'/></entry></feed>",
    "json feed": b'{"version": "https://jsonfeed.org/version/1", "items": [{"url": "/a"}]}',
    "html": b"<!DOCTYPE html><html><body><a href='/a'>a</a></body></html>",
}


def read(body: bytes, url: str = URL, kind: str = "") -> Reading:
    return Source().extract(Content(url, body, kind))


@pytest.mark.parametrize("format", BODIES)
@pytest.mark.parametrize("kind", ["", "text/html", "application/xml", "image/png"])
def test_the_body_tells_what_it_is(format: str, kind: str) -> None:
    reading = read(BODIES[format], kind=kind)
    assert reading.value is not None
    assert reading.value.kind == "source"
    assert reading.value.fields["format"] == format
    assert [entry.url for entry in reading.entries] == ["https://www.shop.example/a"]
    assert reading.complete == ("sitemap" in format)


@pytest.mark.parametrize("format", [name for name in BODIES if name != "html"])
@pytest.mark.parametrize(
    "wrap",
    [gzip.compress, lambda b: b"\xef\xbb\xbf\r\n" + b, lambda b: b.decode().encode("utf-16")],
)
def test_wrappings(format: str, wrap: object) -> None:
    if format == "json feed" and wrap is not gzip.compress:
        return  # JSON is UTF-8
    reading = read(wrap(BODIES[format]))  # type: ignore[operator]
    assert reading.value is not None
    assert reading.value.fields["format"] == format


def test_the_value_is_the_list_whatever_its_order() -> None:
    one = b"https://www.shop.example/a\nhttps://www.shop.example/b\n"
    other = b"https://www.shop.example/b\n\nhttps://www.shop.example/a"
    assert read(one).value == read(other).value
    assert read(one).value != read(one + b"https://www.shop.example/c").value
    assert read(SITEMAP).value != read(SITEMAP.replace(b"2026-01-02", b"2026-01-03")).value


def test_the_value_is_short_however_long_the_list() -> None:
    value = read(b"\n".join(b"https://www.shop.example/%d" % n for n in range(10_000))).value
    assert value is not None
    assert value.text.startswith("10000 links, ")
    assert len(value.text) < 60


def test_the_newest_time_is_told() -> None:
    value = read(SITEMAP).value
    assert value is not None
    assert value.fields == {"links": "1", "format": "sitemap", "newest": "2026-01-02T00:00:00Z"}


@pytest.mark.parametrize(
    ("body", "url", "what"),
    [
        (b"", URL, "empty"),
        (b"hello", URL, "text without URLs"),
        (b"\x89PNG\r\n\x1a\n\0\0", URL, "binary"),
        (b"\x1f\x8b\x09\x00nonsense", URL, "a broken gzip stream"),
        (b"<?xml version='1.0'?><svg/>", URL, "XML with the root <svg>"),
        (BODIES["html"], URL + "/sitemap.xml", "an HTML page where the address promises"),
        (b"<!DOCTYPE urlset [<!ENTITY a 'b'>]>" + SITEMAP, URL, "XML with definitions of its own"),
        (b"<html><body>nothing</body></html>", URL, "no links to pages of its site"),
        (b'{"a": 1}', URL, "no page is named in this feed"),
    ],
)
def test_what_is_no_source_is_named(body: bytes, url: str, what: str) -> None:
    with pytest.raises(ExtractError) as error:
        read(body, url)
    assert str(error.value).startswith(f"{url}: ")
    assert what in str(error.value)
    assert "\n" not in str(error.value)


def test_times_ahead_of_the_clock_are_no_times() -> None:
    hour = 3_600_000_000
    now = 1000 * 24 * hour
    given = [Entry(URL, None, now + n * hour, "t") for n in (-1, 23, 25)] + [Entry(URL)]
    assert [entry.at for entry in not_after(given, now)] == [
        now - hour,
        now + 23 * hour,
        None,
        None,
    ]
    assert [entry.title for entry in not_after(given, now)] == ["t", "t", "t", None]
