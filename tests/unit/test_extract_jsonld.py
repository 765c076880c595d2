"""JSON-LD is read from the bytes, mended where that is safe, and never at any price."""

from __future__ import annotations

import pytest

from salticus.extract import jsonld
from salticus.extract.base import Content

MENDED = {"a": "b", "n": "1.50"}


@pytest.mark.parametrize(
    "block",
    [
        b'{"a": "b", "n": 1.50}',
        b'\xef\xbb\xbf{"a": "b", "n": 1.50}',
        b'<!--\n{"a": "b", "n": 1.50}\n-->',
        b'//<![CDATA[\n{"a": "b", "n": 1.50}\n//]]>',
        b'/*<![CDATA[*/ {"a": "b", "n": 1.50} /*]]>*/',
        b'{"a": "b", "n": 1.50 , }',
        b'{"a": "b", "n": 1.50};',
        b'{"a": "b", "n": 1.50}{"c": 1}',
        b'/* one */ {"a": "b", /* "two", * */ "n": 1.50} // three',
        b'{"a": "b", // it is\n"n": 1.50}',
        b'{"a": "b", "n": 1.50, }}',
        b"{&quot;a&quot;: &quot;b&quot;, &quot;n&quot;: 1.50}",
    ],
)
def test_usual_defects_are_mended(block: bytes) -> None:
    assert jsonld.parse(block) == MENDED


def test_strings_survive_mending() -> None:
    said = '[",}", "\\",]", "// <!--", "tab\there",]'
    assert jsonld.parse(said.encode()) == [",}", '",]', "// <!--", "tab\there"]
    assert jsonld.parse(b'["caf\xe9"]') == ["caf\ufffd"]
    escapes = rb'["it\'s", "c:\dir", "\u00e9", "\u00zz", "a\\", "\"", "\/"]'
    assert jsonld.parse(escapes) == ["it's", "c:\\dir", "é", "\\u00zz", "a\\", '"', "/"]


@pytest.mark.parametrize(
    "block", [b"", b"{", b"nonsense", b"{{ x }}", b'{"a": "b', b"[" * 10_000, b'[1,]"' * 20_000]
)
def test_what_cannot_be_mended_is_none(block: bytes) -> None:
    assert jsonld.parse(block) in (None, ["1"])


@pytest.mark.parametrize(
    "piece",
    [
        b"<script ",
        b'<script type="',
        b"<script type=application/ld+json",
        b'<script type="application/ld+json">',
        b'<script a="" \'type=application/ld+json',
        b"application/ld+json",
        b"APPLICATION/LD+JSON ",
        b"<!--",
        b"<!-- <script type='application/ld+json'> ",
        b"type = " * 3 + b" " * 100,
        b"</script",
    ],
)
def test_hostile_pages_end(piece: bytes) -> None:
    """A step that went back over its input would take hours on these."""
    body = piece * (2_000_000 // len(piece))
    opened = b'<script type="application/ld+json">'
    for page in (body, opened + body, body + opened + body + b"</script>"):
        assert jsonld.nodes(Content("http://a.example/", page)) == []


@pytest.mark.parametrize(
    "piece",
    [b'"\\', b'\\"', b", ", b",", b'"', b"//", b"// ", b"/*", b"/* *", b"[", b" ", b"&quot;"],
)
def test_hostile_blocks_end(piece: bytes) -> None:
    block = piece * (jsonld.MAX_REPAIR // len(piece))
    assert jsonld.parse(block) in (None, "")


def test_nodes_are_bounded() -> None:
    page = b'<script type="application/ld+json">%b</script>'
    many = b"[" + b",".join([b"{}"] * 5000) + b"]"
    assert len(jsonld.nodes(Content("http://a.example/", page % many))) < jsonld.MAX_NODES


SCRIPT = b'<script type="application/ld+json">{"name": "a"}</script>'


@pytest.mark.parametrize("plus", [0, 10, jsonld.MAX_HOPS, 5000])
def test_blocks_are_found_among_any_number_of_plus_signs(plus: int) -> None:
    body = b"+" * plus + SCRIPT + b"a+b" * plus + SCRIPT
    assert len(jsonld.nodes(Content("http://a.example/", body))) == 2
    assert jsonld.nodes(Content("http://a.example/", b"+" * plus)) == []


def test_in_a_worker_more_is_read() -> None:
    many = Content("http://a.example/", SCRIPT * (jsonld.MAX_BLOCKS + 1))
    assert jsonld.nodes(many) == []
    assert len(jsonld.nodes(many, jsonld.WIDE)) == jsonld.MAX_BLOCKS + 1


def test_what_a_page_is_about_is_opened_and_what_an_article_is_about_is_not() -> None:
    body = b'<script type="application/ld+json">{"@type": "%b", "about": {"name": "a"}}</script>'
    for kind, found in ((b"WebPage", 2), (b"Article", 1)):
        assert len(jsonld.nodes(Content("http://a.example/", body % kind))) == found


@pytest.mark.parametrize("prefix", ["schema:", "http://schema.org/", "https://schema.org/"])
def test_properties_have_plain_names(prefix: str) -> None:
    context = '"@context": {"schema": "https://schema.org/"}, ' if prefix == "schema:" else ""
    block = f'{{{context}"@type": "{prefix}Product", "{prefix}offers": {{"{prefix}price" : "5"}}}}'
    page = f'<script type="application/ld+json">{block}</script>'.encode()
    node = jsonld.nodes(Content("http://a.example/", page))[0]
    assert node["offers"] == {"price": "5"}
    assert node["@type"] == f"{prefix}Product"


def test_the_end_of_a_script_is_found_in_any_case() -> None:
    body = b'<script type="application/ld+json">{"name": "</b>"}</SCRIPT><script></script>'
    assert jsonld.nodes(Content("http://a.example/", body)) == [{"name": "</b>"}]
