"""Sitemaps as they are found in the wild, and as they are made to hurt."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from salticus.errors import ExtractError
from salticus.extract import source
from salticus.extract.source import MAX_BYTES, MOST_OF_SITEMAP, read_sitemap
from salticus.markup import pieces_of
from salticus.types import Entry
from salticus.types.dates import written

URL = "https://www.shop.example/sitemap.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def micros(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp() * 1e6)  # type: ignore[misc,arg-type]


def urlset(*locs: str, head: str = f"<urlset {NAMESPACE}>") -> bytes:
    urls = "".join(f"<url><loc>{loc}</loc></url>\n" for loc in locs)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{urls}</urlset>'.encode()


def urls(body: bytes, url: str = URL) -> list[str]:
    return [entry.url for entry in read_sitemap(body, url).entries]


def test_a_sitemap_is_complete_and_in_order() -> None:
    locs = [f"https://www.shop.example/{n}" for n in (3, 1, 2)]
    reading = read_sitemap(urlset(*locs, locs[0]), URL)
    assert [entry.url for entry in reading.entries] == locs
    assert reading.complete
    assert reading.fault is None


def test_an_index_names_sources() -> None:
    body = b"""<sitemapindex><sitemap><loc>https://shop.example/a.xml.gz</loc>
        <lastmod>2026-01-02</lastmod></sitemap></sitemapindex>"""
    place = "https://shop.example/a.xml.gz"
    expected = Entry(place, "source", micros(2026, 1, 2), word="lastmod")
    assert read_sitemap(body, URL).entries == (expected,)


def test_news_have_a_title_and_a_time() -> None:
    body = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
        xmlns:xhtml="http://www.w3.org/1999/xhtml">
      <url><loc>https://www.shop.example/n</loc>
        <xhtml:link rel="alternate" hreflang="de" href="https://www.shop.example/de"/>
        <image:image><image:loc>https://www.shop.example/i.jpg</image:loc>
          <image:title>a picture</image:title></image:image>
        <news:news><news:publication><news:name>The News</news:name></news:publication>
          <news:publication_date>2026-03-04T05:06:07Z</news:publication_date>
          <news:title>Tea &amp; milk</news:title></news:news></url></urlset>"""
    at = micros(2026, 3, 4, 5, 6, 7)
    assert read_sitemap(body, URL).entries == (
        Entry("https://www.shop.example/n", None, at, "Tea & milk", "lastmod"),
    )


@pytest.mark.parametrize(
    "head",
    [
        "<urlset>",
        '<urlset xmlns="http://www.google.com/schemas/sitemap/0.84">',
        '<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9">',
        '<urlset xmlns="nonsense" foo:bar="1">',
    ],
)
def test_namespaces_do_not_matter(head: str) -> None:
    body = urlset("https://www.shop.example/a", head=head)
    body = body.replace(b"</urlset>", b"</s:urlset>") if head.startswith("<s:") else body
    assert urls(body) == ["https://www.shop.example/a"]


@pytest.mark.parametrize(
    ("lastmod", "expected"),
    [
        ("2026", micros(2026, 1, 1)),
        ("2026-05", micros(2026, 5, 1)),
        ("2026-05-06", micros(2026, 5, 6)),
        ("2026-05-06T07:08Z", micros(2026, 5, 6, 7, 8)),
        ("2026-05-06T07:08:09+02:00", micros(2026, 5, 6, 5, 8, 9)),
        ("2026-05-06T07:08:09.123456Z", micros(2026, 5, 6, 7, 8, 9) + 123_456),
        ("2026-05-06T07:08:09", micros(2026, 5, 6, 7, 8, 9)),
        ("2026-05-06 07:08:09 UTC", micros(2026, 5, 6, 7, 8, 9)),
        (" 2026-05-06 07:08:09 +0200\n", micros(2026, 5, 6, 5, 8, 9)),
        ("Wed, 06 May 2026 07:08:09 GMT", micros(2026, 5, 6, 7, 8, 9)),
        ("0000-00-00", None),
        ("2026-13-01", None),
        ("yesterday", None),
        ("10:00", None),
        ("Monday", None),
        ("1970-01-01", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("2" * 500, None),
        ("", None),
    ],
)
def test_dates(lastmod: str, expected: int | None) -> None:
    assert written(lastmod) == expected
    loc = "https://www.shop.example/a"
    body = f"<urlset><url><loc>{loc}</loc><lastmod>{lastmod}</lastmod></url></urlset>".encode()
    assert read_sitemap(body, URL).entries == (Entry(loc, None, expected, word="lastmod"),)


def test_plain_text() -> None:
    body = (
        b"\xef\xbb\xbfhttps://www.shop.example/a\r\n\r\nHTTPS://www.shop.example/b#c\nnot a URL\n"
    )
    reading = read_sitemap(body, "https://www.shop.example/sitemap.txt")
    expected = ["https://www.shop.example/a", "https://www.shop.example/b"]
    assert [entry.url for entry in reading.entries] == expected
    assert reading.complete
    assert reading.fault == "1 entries have no web address"


def test_only_the_own_site_counts() -> None:
    body = urlset(
        "https://www.shop.example/a",
        "https://cdn.shop.example/b",
        "https://evil.example/c",
        "https://notshop.example/d",
        "ftp://www.shop.example/e",
        "javascript:alert(1)",
    )
    reading = read_sitemap(body, URL)
    assert [entry.url for entry in reading.entries] == [
        "https://www.shop.example/a",
        "https://cdn.shop.example/b",
    ]
    assert reading.fault == "2 links to other sites were left out; 2 entries have no web address"
    assert reading.complete


def test_relative_and_escaped_urls() -> None:
    body = urlset(
        "/a?x=1&amp;y=2",
        "<![CDATA[https://www.shop.example/b?x=1&y=2]]>",
        "https://www.shop.example/c?x=1&y=2",
        "\n  https://www.shop.example/d e\n",
    )
    assert urls(body) == [
        "https://www.shop.example/a?x=1&y=2",
        "https://www.shop.example/b?x=1&y=2",
        "https://www.shop.example/c?x=1&y=2",
        "https://www.shop.example/d%20e",
    ]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda body: b"\xef\xbb\xbf" + body,
        lambda body: b" \r\n\r\n" + body,
        lambda body: b"Warning: mysql_connect() in line 3 " + body,
        lambda body: body.decode().replace("UTF-8", "UTF-16").encode("utf-16"),
        lambda body: body.replace(b'encoding="UTF-8"', b'encoding="no-such"'),
        lambda body: body.replace(b'encoding="UTF-8"', b'encoding="base64"'),
        lambda body: body + b"\n<!-- made in 0.1 s -->\ngarbage",
        gzip.compress,
    ],
)
def test_odd_wrappings(wrap: Callable[[bytes], bytes]) -> None:
    body = urlset("https://www.shop.example/a", "https://www.shop.example/b")
    assert len(urls(wrap(body))) == 2


def test_invalid_bytes_harm_one_entry_only() -> None:
    body = urlset("https://www.shop.example/a", "/b@", "https://www.shop.example/c")
    reading = read_sitemap(body.replace(b"@", b"\xff\x00\x1f"), URL)
    assert [entry.url for entry in reading.entries] == [
        "https://www.shop.example/a",
        "https://www.shop.example/b%EF%BF%BD",
        "https://www.shop.example/c",
    ]


BARE = "the XML is broken at line 6: StartTag: invalid element name"  # cut after a <


@pytest.mark.parametrize("cut", range(75, 260, 7))
def test_of_a_truncated_sitemap_what_is_whole_counts(cut: int) -> None:
    body = urlset(*(f"https://www.shop.example/page/{n}" for n in range(5)))[: 100 + cut]
    reading = read_sitemap(body, URL)
    whole = body.count(b"</url>")
    assert [entry.url for entry in reading.entries] == [
        f"https://www.shop.example/page/{n}" for n in range(whole)
    ]
    assert not reading.complete
    assert reading.fault in ("the XML ends too early", BARE)


def test_a_truncated_gzip_stream_is_not_complete() -> None:
    body = gzip.compress(urlset(*(f"https://www.shop.example/{n * 7919}" for n in range(500))))
    reading = read_sitemap(body[: len(body) // 2], URL)
    assert 0 < len(reading.entries) < 500
    assert not reading.complete


def test_an_empty_list_is_never_complete() -> None:
    reading = read_sitemap(b"<urlset/>", URL)
    assert not reading.entries
    assert not reading.complete


BOMB = (
    b"<?xml version='1.0'?><!DOCTYPE urlset [<!ENTITY a 'ha'>"
    + b"".join(b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
    + b"]><urlset><url><loc>https://www.shop.example/&j;</loc></url></urlset>"
)
EXTERNAL = (
    b"<!DOCTYPE urlset [<!ENTITY x SYSTEM 'file:///etc/hostname'>]>"
    b"<urlset><url><loc>https://www.shop.example/&x;</loc></url></urlset>"
)
QUADRATIC = (
    b"<!DOCTYPE urlset [<!ENTITY a '" + b"x" * 100_000 + b"'>]><urlset><url><loc>"
    + b"&a;" * 10_000 + b"</loc></url></urlset>"
)  # fmt: skip
DEFAULTS = (
    b"<!DOCTYPE urlset [<!ATTLIST loc x CDATA '" + b"x" * 50_000 + b"'>]><urlset>"
    + b"<url><loc>https://www.shop.example/</loc></url>" * 1000 + b"</urlset>"
)  # fmt: skip
HIDDEN = b"<!--" + b" " * 70_000 + b"-->" + EXTERNAL


@pytest.mark.parametrize("bomb", [BOMB, EXTERNAL, QUADRATIC, DEFAULTS, HIDDEN])
@pytest.mark.parametrize("encoding", [None, "utf-16"])
def test_bombs_are_refused_by_name(bomb: bytes, encoding: str | None) -> None:
    body = bomb.decode().encode(encoding) if encoding else bomb
    with pytest.raises(ExtractError, match=rf"{URL}: .*(definitions of its own|no XML)"):
        read_sitemap(body, URL)


def test_an_external_dtd_is_not_loaded() -> None:
    body = b"<!DOCTYPE urlset SYSTEM 'http://127.0.0.1:1/s.dtd'>" + urlset("/a")[39:]
    assert urls(body) == ["https://www.shop.example/a"]


def test_undefined_entities_are_text() -> None:
    assert urls(urlset("/a&nbsp;b&who;c")) == ["https://www.shop.example/a%C2%A0b&who;c"]


def test_too_many_urls_are_cut() -> None:
    body = urlset(*(f"/{n}" for n in range(MOST_OF_SITEMAP + 1)))
    reading = read_sitemap(body, URL)
    assert len(reading.entries) == MOST_OF_SITEMAP
    assert not reading.complete
    assert reading.fault == "it names more than 60,000 pages, and was cut"


@pytest.mark.parametrize("body", [b"x\n" * 10**6, b"<urlset>" + b"<url/>" * 10**6])
def test_a_list_of_nothing_is_not_read_to_its_end(body: bytes) -> None:
    with pytest.raises(
        ExtractError, match=f"it was cut; {2 * MOST_OF_SITEMAP} entries have no web address"
    ):
        read_sitemap(body, URL)


def test_a_gzip_bomb_is_cut() -> None:
    body = gzip.compress(urlset("/a")[:-9] + b" " * (MAX_BYTES + 1) + b"</urlset>")
    reading = read_sitemap(body, URL)
    assert [entry.url for entry in reading.entries] == ["https://www.shop.example/a"]
    assert not reading.complete


def test_noise_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What grows in memory is bounded, however long the document."""
    taken: list[int] = []

    def counted(body: bytes) -> Iterator[bytes]:
        for piece in pieces_of(body):
            taken.append(len(piece))
            yield piece

    monkeypatch.setattr(source, "pieces_of", counted)
    body = b"<urlset>" + b"<x/>" * 3_000_000
    with pytest.raises(ExtractError, match="too much in it that says nothing"):
        read_sitemap(body, URL)
    assert sum(taken) < len(body) / 5


def test_depth_is_bounded() -> None:
    with pytest.raises(ExtractError, match="depth"):
        read_sitemap(b"<urlset>" * 100_000, URL)


@pytest.mark.parametrize("body", [b"hello", b"\0\1\2", b"\x1f\x8b\x00broken", b"<", b"&"])
def test_what_is_no_sitemap_is_an_error_that_names_it(body: bytes) -> None:
    with pytest.raises(ExtractError, match=f"^{URL}: "):
        read_sitemap(body, URL)
