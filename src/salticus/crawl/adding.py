"""Pages that are added by hand, and sources that are read at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from salticus.config import Config
from salticus.crawl.opened import Crawl, open_crawl
from salticus.crawl.visiting import unread_sources, visit_now
from salticus.errors import InputError
from salticus.store.base import PageState
from salticus.types import NewPage as NewPage
from salticus.urls import canonical

_SHOWN = 10  # faults that are named


class Added(msgspec.Struct, frozen=True):
    """How many of the pages given are new, and how many were known already."""

    new: int
    known: int


async def add(crawl: Crawl, pages: Iterable[str | NewPage]) -> Added:
    """Add pages, all of them or none if one is no URL; known ones get what is given of the rest."""
    given = [NewPage(page) if isinstance(page, str) else page for page in pages]
    new = await crawl.store.add(given, at=crawl.micros)
    return Added(new, len(given) - new)


def canonical_urls(entries: Iterable[tuple[str, str]]) -> list[str]:
    """The URLs of (where it stands, text), in canonical form, each once. InputError names every
    entry that is none."""
    bad: list[str] = []
    found: dict[str, None] = {}
    for where, text in entries:
        try:
            found[canonical(text)[0]] = None
        except InputError as error:
            bad.append(f"{where}: {error}{_hint(text)}")
    if bad:
        more = f"\n(and {len(bad) - _SHOWN} more)" if len(bad) > _SHOWN else ""
        raise InputError("nothing was added\n" + "\n".join(bad[:_SHOWN]) + more)
    if not found:
        raise InputError("no URL was given; name some, or use --file, or - for standard input")
    return list(found)


def _hint(text: str) -> str:
    """What was probably meant.

    >>> _hint("shop.example/tea"), _hint("nonsense")
    ('; did you mean https://shop.example/tea ?', '')
    """
    bare = "://" not in text and "." in text and " " not in text
    return f"; did you mean https://{text} ?" if bare else ""


async def read_sources(config: Config, urls: Sequence[str]) -> tuple[list[PageState], int, int]:
    """Visit sources now, and those that they name: their states, how many pages are new by them,
    and how many sources are still to be read."""
    async with open_crawl(config) as crawl:
        before = (await crawl.store.summary()).pages
    visited = await visit_now(config, urls)
    async with open_crawl(config) as crawl:
        found = (await crawl.store.summary()).pages - before
        return visited, found, len(await unread_sources(crawl.store))
