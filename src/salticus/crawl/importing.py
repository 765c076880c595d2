"""Files that are imported into a crawl: logs, readers' clicks, merchants' feeds."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.opening import Crawl, clock_of, open_crawl, stored
from salticus.crawl.parts import make_parts
from salticus.crawl.snapshot import Snapshot, no_plan
from salticus.errors import InputError
from salticus.extract.price import currency, price
from salticus.extract.words import availability, condition
from salticus.observe import digest
from salticus.predict.base import Retraces
from salticus.signals.clicks import click_of
from salticus.signals.counting import SHOWN, ClickFile, ClickFileOptions, take_in
from salticus.signals.counting import LineTally as LineTally
from salticus.signals.merchant import MerchantFeed, Spelling
from salticus.signals.opened import Opened
from salticus.store.base import Store
from salticus.types import NewPage
from salticus.urls import canonical

_LESSON = 50_000  # stored visits that are learnt at a time
_BATCH = 5_000  # rows of a feed that are stored at a time


async def import_log(config: Config, folder: Path, *, values: bool = True) -> dict[str, int]:
    """Warm the store with a log: its pages, its visits, its clicks; how many were new.

    All of it or nothing: InputError says what is wrong with the log, StoreLocked that a crawler
    runs on the store. What the visits teach of change rates is learnt once they are stored.
    """
    from salticus.exchange.folder import Log
    from salticus.exchange.past import ImportedHistory

    past = ImportedHistory(Log(folder), digest, values=values)
    past.check()
    clock = clock_of(config)
    async with stored(config) as store, store.lock():
        at = int(clock.now().timestamp() * 1e6)
        loaded = await store.load(past.pages(), past.visits, at=at, most=past.most)
        await _teach(config, clock, store, range(loaded.first, loaded.end))
    return {"pages": loaded.pages, "visits": loaded.visits}


async def _teach(config: Config, clock: Clock, store: Store, visits: range) -> None:
    """Let the predictor learn stored visits, and keep what it has learnt for the next run."""
    parts = make_parts(config, clock, store)
    snapshot = Snapshot(parts.named(), store)
    recalled = await snapshot.recall()
    for start in visits[::_LESSON]:
        numbers = np.arange(start, min(start + _LESSON, visits.stop))
        parts.predictor.learn(await store.outcomes(numbers))
    if visits:
        for part in (parts.predictor, parts.followed):
            if isinstance(part, Retraces):
                part.rebuild()  # imported visits may lie before known ones
        await snapshot.save(None if recalled else no_plan(clock.now()))


# ---------------------------------------------------------------------------------- readers' clicks

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Given the name and size (bytes, 0 = unknown) of a file, what is told of the bytes read so far."""


class ClickReading(msgspec.Struct, frozen=True):
    """How files are read: csv, jsonl or access (None = the first line tells); the requests of an
    access log that are clicks; what to put before addresses that begin with a slash; whether to
    count once more what was counted before."""

    format: str | None = None
    click: str | None = None
    base: str | None = None
    again: bool = False


async def count_clicks(
    crawl: Crawl, files: Sequence[str], how: ClickReading, progress: Progress
) -> AsyncIterator[LineTally]:
    """Count files one after the other; ``-`` is standard input."""
    terms = ClickFileOptions(
        now=crawl.micros,
        format=how.format,
        click=None if how.click is None else click_of(how.click),
        base=None if how.base is None else canonical(how.base)[0],
        again=how.again,
    )
    opened = [ClickFile(file) for file in files]
    sizes = [file.size for file in opened]  # one that is not there is noticed before any counts
    for file, size in zip(opened, sizes, strict=True):
        with progress(file.name, size) as told:
            yield await take_in(crawl.store, file, terms, told)


def strangers(tally: LineTally) -> list[tuple[str, int]]:
    """Unknown pages that were clicked most, and how often."""
    return tally.strangers.top(SHOWN)


# --------------------------------------------------------------------------------- merchants' feeds


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
    """Whose feed it is (None = as its file is called), of when (None = now), and what to do."""

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
            Spelling(price, currency, availability, condition),
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
    own = "" if file == "-" else Path(file).name.partition(".")[0]
    name = " ".join((own if merchant is None else merchant).split())[:100]
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
