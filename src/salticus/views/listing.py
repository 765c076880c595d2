"""Many pages at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from textwrap import shorten
from typing import Any

import msgspec

from salticus.crawl.opening import Crawl
from salticus.errors import InputError
from salticus.store.nouns import Edit as Edit
from salticus.store.nouns import PageState as PageState
from salticus.store.nouns import Query as Query
from salticus.urls import canonical
from salticus.views.times import ago, iso, known

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


def query(pattern_: str | None = None, **conditions: Any) -> Query:
    """Which pages: those whose URL fits what people write for it, and the other conditions."""
    return Query(url=None if pattern_ is None else pattern(pattern_), **conditions)


def chooses(query: Query) -> bool:
    """Whether a query asks for some pages only."""
    conditions = (query.url, query.host, query.tag, query.kind, query.status, query.state)
    return any(each is not None for each in conditions)


async def pages(crawl: Crawl, *queries: Query) -> list[PageState]:
    """Pages that fit any of the queries, each once."""
    found: dict[int, PageState] = {}
    for query in queries or (Query(),):
        found |= {page.page: page for page in await crawl.store.find(query)}
    return list(found.values())


async def edit_pages(crawl: Crawl, query: Query, edit: Edit, *, everything: bool = False) -> int:
    """Edit all pages that fit; how many. InputError if that is every page and nobody said so."""
    if not chooses(query) and not everything:
        raise InputError("this would edit every page; choose some, or say --all")
    return await crawl.store.edit(query, edit)


async def forget_pages(crawl: Crawl, queries: Sequence[Query]) -> int:
    """Delete all pages that fit, with everything known of them; how many."""
    return sum([await crawl.store.forget(query) for query in queries])


def as_row(page: PageState, now: datetime) -> tuple[Any, ...]:
    """A page for people: the columns of `HEADER`. What a feed says is marked; it is there if it is
    newer than the last answer."""
    value = f"feed: {page.told.value.text}" if page.told else page.value or "-"
    return (
        page.kind,
        page.state,
        shorten(value, _SHORT, placeholder="…"),
        ago(known(page.last_visit), now),
        ago(known(page.last_change), now),
        page.changes,
        page.url,
    )


def as_json(page: PageState) -> dict[str, Any]:
    """A page for machines: all that is known, with its state in one word."""
    known = {**msgspec.structs.asdict(page), "state": page.state}
    return known | {name: iso(known[name]) for name in _TIMES}
