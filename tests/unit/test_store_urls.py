"""One page has one URL."""

from __future__ import annotations

import pytest

from salticus.errors import InputError
from salticus.urls import canonical


@pytest.mark.parametrize(
    ("given", "url", "host"),
    [
        ("HTTP://Shop.Example", "http://shop.example/", "shop.example"),
        ("https://shop.example:443/a?b=c#d", "https://shop.example/a?b=c", "shop.example"),
        ("http://shop.example:443/", "http://shop.example:443/", "shop.example:443"),
        (" http://shop.example/x/../y\n", "http://shop.example/y", "shop.example"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC", "xn--bcher-kva.example"),
        ("http://[::1]:8080/", "http://[::1]:8080/", "[::1]:8080"),
        ("http://2130706433/", "http://127.0.0.1/", "127.0.0.1"),
        ("http://me:secret@shop.example/", "http://me:secret@shop.example/", "shop.example"),
    ],
)
def test_spellings_of_one_url_become_one(given: str, url: str, host: str) -> None:
    assert canonical(given) == (url, host)


@pytest.mark.parametrize(
    "url",
    ["", "shop.example", "//shop.example/", "http://", "http://a b/", "http://x:99999/", "\ud800"],
)
def test_what_is_no_url_is_named(url: str) -> None:
    with pytest.raises(InputError) as caught:
        canonical(url)
    assert ascii(url) in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://shop.example/", "mailto:me@shop.example", "file:///etc"])
def test_only_the_web_is_visited(url: str) -> None:
    with pytest.raises(InputError, match="only http and https"):
        canonical(url)
