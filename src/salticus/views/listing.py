"""Many pages at a glance."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

import msgspec

from salticus.errors import InputError
from salticus.store.base import PageState
from salticus.urls import canonical
from salticus.views.times import ago, iso

HEADER = ("kind", "state", "value", "visited", "changed", "changes", "url")

_TIMES = ("added", "last_visit", "last_answer", "last_change")
_SHORT = 24  # characters of a value


def pattern(text: str) -> str:
    """What people write for some pages, as a pattern of whole URLs.

    A URL means itself, a pattern is taken as it is, and anything else is a part of the URL.

    >>> pattern("HTTP://Shop.example"), pattern("https://a.example/*"), pattern("shop")
    ('http://shop.example/', 'https://a.example/*', '*shop*')
    """
    if "://" not in text and not text.startswith("*"):
        return f"*{text}" if text.endswith("*") else f"*{text}*"
    if "*" in text:
        return text
    try:
        return canonical(text)[0]
    except InputError:
        return text


def as_row(page: PageState, now: int) -> tuple[Any, ...]:
    """A page for people: the columns of `HEADER`."""
    return (
        page.kind,
        page.state,
        shorten(_value(page), _SHORT, placeholder="…"),
        ago(page.last_visit, now),
        ago(page.last_change, now),
        page.changes,
        page.url,
    )


def as_json(page: PageState) -> dict[str, Any]:
    """A page for machines: all that is known, with its state in one word."""
    known = {**msgspec.structs.asdict(page), "state": page.state}
    return known | {name: iso(known[name]) for name in _TIMES}


def _value(page: PageState) -> str:
    """What a feed says, marked, if that is newer than the last answer; else what was seen."""
    return f"feed: {page.told.value.text}" if page.told else page.value or "-"
