"""New pages as a stream: those that sources have shown, and if wished those to come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from fnmatch import fnmatchcase

import msgspec

from salticus.crawl.opening import Crawl
from salticus.types import Find
from salticus.views.changes import followed
from salticus.views.times import known, moment, when


class WantedFinds(msgspec.Struct, frozen=True):
    """Which new pages. Conditions that are None do not count; `url` and `source` are patterns
    (``*``, ``?``). `after` is the number of the last one that is known already, `since` a time
    (µs). With `fetched` only those of which a copy is held by then."""

    after: int = 0
    since: int | None = None
    tag: str | None = None
    url: str | None = None
    source: str | None = None
    fetched: bool = False
    limit: int | None = None

    def fits(self, find: Find) -> bool:
        return (
            (self.since is None or find.at >= self.since)
            and (self.tag is None or self.tag in find.tags)
            and (self.url is None or fnmatchcase(find.url, self.url))
            and (self.source is None or fnmatchcase(find.source, self.source))
            and (not self.fetched or find.fetched is not None)
        )


class NewlyFound(msgspec.Struct, frozen=True):
    """A new page. `seq` is the cursor to go on from. Its link appeared on `source` after `since`
    and before it was `found`; `fetched` is when it answered last, None while it did not."""

    seq: int
    found: datetime
    since: datetime
    url: str
    source: str
    tags: tuple[str, ...]
    fetched: datetime | None

    def words(self) -> str:
        """For people, in one line: when, where, by whom."""
        held = "" if self.fetched is None else f", fetched {when(self.fetched)}"
        return f"{when(self.found)}  {self.url}  on {self.source}{held}"


async def finds(
    crawl: Crawl, wanted: WantedFinds | None = None, *, stopped: asyncio.Event | None = None
) -> AsyncIterator[NewlyFound]:
    """New pages in the order in which they were found; with `stopped`, also those to come until it
    is set. To go on where you stopped, ask for those ``after`` the last `seq`."""
    wanted = wanted or WantedFinds()
    left = wanted.limit
    async for find in followed(crawl.store.news, wanted.after, stopped):
        if wanted.fits(find):
            yield _told(find)
            left = None if left is None else left - 1
        if left == 0:
            return


def _told(find: Find) -> NewlyFound:
    return NewlyFound(
        seq=find.seq,
        found=moment(find.at),
        since=moment(find.since),
        url=find.url,
        source=find.source,
        tags=find.tags,
        fetched=known(find.fetched),
    )
