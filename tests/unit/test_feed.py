"""Feeds in every format, beside what other readers make of them, and broken ones."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import feedparser
import pytest

from salticus.errors import ExtractError
from salticus.extract.source import MOST_OF_FEED, read_feed
from salticus.types import Entry

URL = "https://news.example/feeds/all.xml"


def micros(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp() * 1e6)  # type: ignore[misc,arg-type]


def entries(body: bytes | str, url: str = URL) -> list[Entry]:
    return list(read_feed(body.encode() if isinstance(body, str) else body, url).entries)


def links(body: bytes | str) -> list[str]:
    return [entry.url for entry in entries(body)]


def rss(*items: str, head: str = '<rss version="2.0"><channel>') -> str:
    inner = "".join(f"<item>{item}</item>" for item in items)
    return f'<?xml version="1.0"?>{head}<title>All</title><link>/</link>{inner}</channel></rss>'


RSS_2 = rss(
    "<title>Tea &amp; milk</title><link>https://news.example/1</link>"
    "<pubDate>Fri, 02 Jan 2026 10:00:00 +0100</pubDate><guid>x</guid>",
    "<title><![CDATA[<b>Two</b>]]></title><link> /2 </link><dc:date>2026-01-03</dc:date>",
)
RSS_091 = """<?xml version="1.0"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"
  "http://my.netscape.com/publish/formats/rss-0.91.dtd">
<rss version="0.91"><channel><title>Old &eacute;</title><link>https://news.example/</link>
<item><title>Caf&eacute;</title><link>https://news.example/1</link></item></channel></rss>"""
RSS_1 = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="https://news.example/"><title>RDF</title><link>https://news.example/</link>
<items><rdf:Seq><rdf:li rdf:resource="https://news.example/1"/></rdf:Seq></items></channel>
<item rdf:about="https://news.example/1"><title>One</title><link>https://news.example/1</link>
<dc:date>2026-01-02T09:00:00Z</dc:date></item>
<item rdf:about="https://news.example/2"><title>Two</title></item></rdf:RDF>"""
ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title><link href="https://news.example/"/>
<entry><title type="html">Tea &amp;amp; &lt;i&gt;milk&lt;/i&gt;</title><id>tag:news.example,1</id>
<link rel="self" href="https://news.example/api/1"/>
<link rel="enclosure" href="https://news.example/1.mp3"/>
<link rel="alternate" type="application/json" href="https://news.example/1.json"/>
<link rel="alternate" type="text/html" href="https://news.example/1"/>
<published>2026-01-01T00:00:00Z</published><updated>2026-01-02T09:00:00Z</updated></entry>
<entry><title>Two</title><id>https://news.example/2</id><updated>2026-01-03T00:00:00Z</updated>
</entry></feed>"""
JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "JSON",
        "items": [
            {
                "id": "1",
                "url": "https://news.example/1",
                "title": "One",
                "date_published": "2026-01-01T00:00:00Z",
                "date_modified": "2026-01-02T10:00:00+01:00",
            },
            {"id": "https://news.example/2", "content_text": "no url"},
            {"id": 3, "url": ["not", "text"], "date_published": 7, "title": {}},
            {"id": "4", "external_url": "/4"},
        ],
    }
)
DAY = micros(2026, 1, 2, 9)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (RSS_2, [("1", DAY, "Tea & milk"), ("2", micros(2026, 1, 3), "Two")]),
        (RSS_091, [("1", None, "Café")]),
        (RSS_1, [("1", DAY, "One"), ("2", None, "Two")]),
        (ATOM, [("1", DAY, "Tea & milk"), ("2", micros(2026, 1, 3), "Two")]),
        (JSON, [("1", DAY, "One"), ("2", None, None), ("4", None, None)]),
    ],
)
def test_formats(body: str, expected: list[tuple[str, int | None, str | None]]) -> None:
    named = [Entry(f"https://news.example/{n}", None, at, title) for n, at, title in expected]
    assert entries(body) == named
    assert entries(gzip.compress(body.encode())) == named
    assert entries("\ufeff \n" + body) == named


@pytest.mark.parametrize("body", [RSS_2, RSS_1, ATOM])
def test_another_reader_finds_the_same_pages(body: str) -> None:
    """The oracle resolves nothing itself, so relative links are compared by their ends."""
    found = feedparser.parse(body.encode())
    said = [
        entry.get("link") or entry.get("id") or "https://news.example/2" for entry in found.entries
    ]
    assert [link.rpartition("/")[2] for link in links(body)] == [
        link.strip().rpartition("/")[2] for link in said
    ]


def test_a_feed_is_never_complete() -> None:
    for body in (RSS_2, RSS_1, ATOM, JSON):
        assert not read_feed(body.encode(), URL).complete


def test_links_to_other_sites_are_kept_without_their_trackers() -> None:
    link = "https://other.example/a?id=7&amp;utm_source=rss&amp;utm_medium=feed#top"
    assert links(rss(f"<link>{link}</link>")) == ["https://other.example/a?id=7"]
    assert links(rss("<link>https://other.example/a?</link>")) == ["https://other.example/a?"]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("<guid>https://news.example/g</guid>", ["https://news.example/g"]),
        ('<guid isPermaLink="true">https://news.example/g</guid>', ["https://news.example/g"]),
        ('<guid isPermaLink="false">https://news.example/g</guid>', []),
        ("<guid>tag:news.example,1</guid>", []),
        ("<title>no link</title>", []),
        ("<link></link><guid>https://news.example/g</guid>", ["https://news.example/g"]),
        ("<link>mailto:a@news.example</link>", []),
        ("<link>http://[::1</link>", []),
        (
            "<feedburner:origLink>https://news.example/o</feedburner:origLink>"
            "<link>https://feedproxy.example/~r/1</link>",
            ["https://news.example/o"],
        ),
    ],
)
def test_which_link_counts(item: str, expected: list[str]) -> None:
    assert links(rss(item)) == expected


def test_xml_base() -> None:
    body = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://b.example/x/">
      <entry xml:base="y/"><link href="a"/></entry><entry><link href="b"/></entry>
      <entry><link xml:base="/z/" href="c"/></entry><entry><link href="/d"/></entry></feed>"""
    expected = ["http://b.example/x/y/a", "http://b.example/x/b", "http://b.example/z/c"]
    assert links(body) == [*expected, "http://b.example/d"]


def test_relative_links_are_relative_to_the_feed() -> None:
    assert links(rss("<link>a</link>", "<link>../b</link>")) == [
        "https://news.example/feeds/a",
        "https://news.example/b",
    ]


@pytest.mark.parametrize("text", ["10:00", "Monday", "now", "2026-02-30", "1" * 300, "", "٣٢"])
def test_what_is_no_time_is_none_today_and_tomorrow(text: str) -> None:
    (entry,) = entries(rss(f"<link>/1</link><pubDate>{text}</pubDate>"))
    assert entry.at is None


def test_a_broken_feed_is_read_as_far_as_it_goes() -> None:
    body = rss("<title>A & B</title><link>/1?a=1&b=2</link>", "<link>/2</link>", "<link>/3</link>")
    cut = body[: body.index("/3") + 1]
    reading = read_feed(cut.encode(), URL)
    assert [entry.url for entry in reading.entries] == [
        "https://news.example/1?a=1&b=2",
        "https://news.example/2",
    ]
    assert reading.fault == "the XML ends too early"


def test_an_article_about_entities_is_an_article() -> None:
    text = "<![CDATA[<!DOCTYPE x [<!ENTITY a 'b'>]>&a;]]>"
    (entry,) = entries(rss(f"<link>/1</link><description>{text}</description>"))
    assert entry.url == "https://news.example/1"


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE rss [<!ENTITY a 'ha'>]>" + RSS_2[21:].encode(),
        b"<!DOCTYPE rss [<!ENTITY a SYSTEM 'file:///etc/hostname'>]><rss><item>&a;</item></rss>",
        b"{" * 100_000,
        b'{"items":' * 1000,
        b'{"items": [{"url": "https://news.example/1"}',
        b'{"items": 3}',
        b'{"version": "https://jsonfeed.org/version/1"}',
        b"<rss><channel><item><link>/1",
        b"no feed",
        b"",
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_it(body: bytes) -> None:
    with pytest.raises(ExtractError, match=f"^{URL}: "):
        read_feed(body, URL)


def test_an_empty_feed_is_no_error() -> None:
    assert read_feed(rss().encode(), URL).entries == ()


def test_too_many_entries_are_cut() -> None:
    body = (
        "<rss>"
        + "".join(f"<item><link>/{n}</link></item>" for n in range(MOST_OF_FEED + 5))
        + "</rss>"
    )
    reading = read_feed(body.encode(), URL)
    assert len(reading.entries) == MOST_OF_FEED
    assert reading.fault == "it names more than 10,000 pages, and was cut"
