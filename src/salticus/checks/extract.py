"""Laws that every extractor obeys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from salticus.errors import ExtractError
from salticus.extract.base import Content, Extractor
from salticus.types import Reading, Status, Value

_URL = "https://shop.example/kettle"
_ODD = re.compile("[\0\ud800-\udfff]")  # UTF-8 has no lone surrogates
_TYPES = ("", "text/html", "text/html; charset=utf-8", "text/plain", "application/json")
_CHARSETS = (None, "utf-8", "iso-8859-1", "utf-16", "shift_jis", "no-such-charset")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kettle &amp; lid</title>
<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product",
"name": "Kettle \u2615", "offers": {"@type": "Offer", "price": "19.90", "priceCurrency": "EUR",
"availability": "https://schema.org/InStock"}}</script></head>
<body><main><h1>Kettle</h1>
<p>Boils water, and keeps it hot for an hour or two.</p></main></body></html>
""".encode()


def check_extractor(extractor: Extractor) -> None:
    """Run all laws of `Extractor`; AssertionError names the law broken.

    >>> from salticus.extract.offer import Offer
    >>> check_extractor(Offer())
    """
    assert isinstance(extractor.fast, bool), "law: `fast` says whether it may run in the loop"
    usual = (Content(_URL, _PAGE, kind, charset) for kind in _TYPES for charset in _CHARSETS)
    cut_short = (Content(_URL, _PAGE[:end], "text/html") for end in range(len(_PAGE)))
    for content in (*usual, *cut_short, *_noise(), *_hostile()):
        check_content(extractor, content)


def check_content(extractor: Extractor, content: Content) -> None:
    """Run the laws on one page of your own."""
    found = _found(extractor, content)
    assert found == _found(extractor, content), f"law: pure ({content.body[:80]!r})"
    if isinstance(found, Reading):
        check_reading(found)
    elif found is not None:
        _is_value(found)


def check_reading(found: Reading) -> None:
    """Run the laws of a whole `Reading`.

    >>> check_reading(Reading(fault="the page is empty"))
    """
    if found.value is not None:
        _is_value(found.value)
    failed = found.status is not Status.OK
    assert not (failed and found.value), "law: a visit that failed has no value"
    assert not (failed and found.entries), "law: a visit that failed names no pages"
    assert not failed or found.fault, "law: a status that is not OK has a fault that says why"
    for text in (found.fault, found.canonical, *(entry.title for entry in found.entries)):
        assert text is None or text, "law: nothing to say is None, not an empty text"
        assert text is None or not _ODD.search(text), "law: encodable as UTF-8 and without NUL"
    for url in (found.canonical, *(entry.url for entry in found.entries)):
        assert url is None or _address(url), f"law: addresses are absolute and of the web: {url!r}"


def _found(extractor: Extractor, content: Content) -> Value | Reading | None:
    before = bytes(content.body)
    try:
        found = extractor.extract(content)
    except ExtractError:
        return None
    except Exception as error:
        raise AssertionError(
            f"law: raises nothing but ExtractError, not {error!r} ({content.body[:80]!r})"
        ) from error
    assert content.body == before, "law: the content is left as it was"
    return found


def _is_value(found: Value) -> None:
    assert isinstance(found, Value), "law: a Value, a Reading or None"
    assert found.kind, "law: a value has a kind"
    assert found.text, "law: a page without a value gives None, not an empty text"
    assert found.text == found.text.strip(), "law: no space at either end of the text"
    for part in (found.kind, found.text, *found.fields, *found.fields.values()):
        assert isinstance(part, str), f"law: kind, text and fields are text, not {part!r}"
        assert not _ODD.search(part), "law: encodable as UTF-8 and without NUL"


def _address(url: str) -> bool:
    scheme, _, rest = url.partition("://")
    return scheme in ("http", "https") and "#" not in url and rest[:1] not in ("", "/", "?")


def _noise() -> Iterator[Content]:
    random = Random(5)
    for size in (1, 2, 3, 10, 100, 1000, 10_000):
        yield Content(_URL, random.randbytes(size))
        yield Content(_URL, _PAGE[:200] + random.randbytes(size) + _PAGE[200:], "text/html")
        yield Content("http://[", _script(random.randbytes(size)), "text/html")


def _hostile() -> Iterator[Content]:
    deep = 10_000
    for said in (
        b"[" * deep + b"]" * deep,
        b'{"offers":' * deep + b"1" + b"}" * deep,
        b'{"@graph":[' * deep,
        *(_OFFER % price for price in _HOSTILE_PRICES),
        b'{"@type":"Product","name":"\\ud800\\u0000","offers":{"price":"1"}}',
        b'{"@type":"Product","name":"\xff\xfe","offers":{"price":"1"}}',
        b'{"@type":"Product","name":"\x00\x01","offers":{"price":"1"},}',
        b'{"@type":"Product","@id":"#a","offers":{"@id":"#a"},"hasVariant":[{"@id":"#a"}]}',
    ):
        yield Content(_URL, _script(said), "text/html")
    yield Content(_URL, b"<div>" * 1000 + b"deep", "text/html")
    for link in (b"javascript:1", b"//", b"http://", b"http://[::1", b"\xff", b"/" * deep, b"\0"):
        yield Content(_URL, b'<head><link rel="canonical" href="%b"></head><p>Text.' % link)
    yield Content(_URL, b"[" * deep, "application/json")
    yield Content(_URL, b'{"a": 1e999999999, "b": "\\ud800"}', "application/json")
    yield Content(_URL, b"%PDF-1.7\n" + b"1 0 obj<</Kids[1 0 R]>>" * 9, "application/pdf")
    yield Content(_URL, b"&#xD800;&#0;&#x110000;", "text/html")
    yield Content(_URL, b"\0" * deep)
    yield Content("", b"")


_OFFER = b'{"@type":"Product","offers":{"@type":"Offer","price":%b}}'
_HOSTILE_PRICES = (
    b"1e400", b"-1e400", b"1e-400", b"9" * 5000, b"-1", b"NaN", b"Infinity", b"true", b"null",
    b"[]", b"{}", b'""', b'"call us"', b'"\xd9\xa3"', b'"1.2.3,4,5"', b'"' + b"1," * 5000 + b'"',
)  # fmt: skip


def _script(said: bytes) -> bytes:
    return b'<html><script type="application/ld+json">' + said + b"</script><p>Text.</p></html>"
