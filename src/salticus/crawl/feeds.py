"""Merchants' feeds, taken into the store of a crawl."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec

from salticus.config import Config
from salticus.crawl.opened import open_crawl
from salticus.crawl.opening import clock_of
from salticus.errors import InputError
from salticus.extract.price import availability, condition, currency, price
from salticus.signals.merchant import MerchantFeed, Spelling
from salticus.signals.opened import Opened
from salticus.store.base import Store
from salticus.types import NewPage
from salticus.urls import canonical

_BATCH = 5_000


class FeedImport(msgspec.Struct, frozen=True):
    """What became of the rows of a feed."""

    file: str
    merchant: str
    rows: int
    new_pages: int
    updated: int
    unchanged: int
    unknown_pages: int
    repeated: int
    bad: int
    fault: str | None
    complaints: list[str]


class FeedTerms(msgspec.Struct, frozen=True):
    """Whose feed it is (None = as the file is called), when it was made (None = now), and what to
    do with its rows."""

    merchant: str | None = None
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    known_only: bool = False
    keep_tracking: bool = False


async def import_feed(config: Config, file: str, terms: FeedTerms) -> FeedImport:
    """Take in a feed (TSV, CSV or XML; ``-`` is standard input); InputError, and nothing stored, if
    more than half of it is bad."""
    with _opened(file) as opened:
        feed = MerchantFeed(
            opened,
            Spelling(canonical, price, currency, availability, condition),
            origin=_origin(terms.merchant, file),
            at=int((terms.at or clock_of(config).now()).timestamp() * 1e6),
            keep_tracking=terms.keep_tracking,
        )
        tally = feed.check()
        async with open_crawl(config) as crawl:
            before = (await crawl.store.summary()).pages
            told, stated = await _tell(crawl.store, feed, terms)
            new = (await crawl.store.summary()).pages - before
    return FeedImport(
        file=feed.file.name,
        merchant=feed.origin,
        rows=tally.rows,
        new_pages=new,
        updated=max(told - new, 0),
        unchanged=stated - told,
        unknown_pages=tally.good - stated,
        repeated=tally.repeated,
        bad=tally.bad,
        fault=tally.fault,
        complaints=tally.complaints,
    )


async def _tell(store: Store, feed: MerchantFeed, terms: FeedTerms) -> tuple[int, int]:
    """Store the statements; how many left something, and how many there were."""
    known = {hash(row["url"]) for row in store.scan("pages")} if terms.known_only else None
    rows = (row for row in feed.told() if known is None or hash(row.url) in known)
    left = stated = 0
    while batch := list(islice(rows, _BATCH)):
        left += await store.told(batch)
        stated += len(batch)
        if terms.tags:
            await store.add([NewPage(row.url, tags=terms.tags) for row in batch], at=feed.at)
    return left, stated


def _origin(merchant: str | None, file: str) -> str:
    name = merchant if merchant is not None else "" if file == "-" else Path(file).name
    if merchant is None:
        name = name.partition(".")[0]
    name = " ".join(name.split())[:100]
    if not name or not name.isprintable():
        raise InputError("whose feed is it? name the merchant with --merchant")
    return name


@contextmanager
def _opened(file: str) -> Iterator[Opened]:
    """The file; standard input is copied first, since feeds are read twice."""
    if file.startswith(("http://", "https://")):
        raise InputError(f"{file}: feeds are read from files; download it first: curl -LO '{file}'")
    if file != "-":
        yield Opened(Path(file))
        return
    with tempfile.NamedTemporaryFile(prefix="salticus-feed-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Opened(Path(copy.name), "standard input")
