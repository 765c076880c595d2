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
    ],
)
def test_usual_defects_are_mended(block: bytes) -> None:
    assert jsonld.parse(block) == MENDED


def test_strings_survive_mending() -> None:
    said = '[",}", "\\",]", "// <!--", "tab\there",]'
    assert jsonld.parse(said.encode()) == [",}", '",]', "// <!--", "tab\there"]
    assert jsonld.parse(b'["caf\xe9"]') == ["caf\ufffd"]


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


@pytest.mark.parametrize("piece", [b'"\\', b'\\"', b", ", b",", b'"', b"//", b"/*", b"[", b" "])
def test_hostile_blocks_end(piece: bytes) -> None:
    block = piece * (jsonld.MAX_REPAIR // len(piece))
    assert jsonld.parse(block) in (None, "")


def test_nodes_are_bounded() -> None:
    page = b'<script type="application/ld+json">%b</script>'
    many = b"[" + b",".join([b"{}"] * 5000) + b"]"
    assert len(jsonld.nodes(Content("http://a.example/", page % many))) < jsonld.MAX_NODES
