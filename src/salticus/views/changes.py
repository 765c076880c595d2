"""The changes of pages as a stream: those that were stored, and if wished those to come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from textwrap import shorten
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from salticus.crawl.opening import Crawl
from salticus.errors import StoreError
from salticus.store.base import ChangeStore
from salticus.types import Change
from salticus.views.diff import difference, in_words
from salticus.views.times import moment, when

CHUNK = 1000
_LONG = 300  # characters of a line for people
LOOK_S = 0.5  # between two looks into the store


class Wanted(msgspec.Struct, frozen=True):
    """Which changes. Conditions that are None do not count; `url` is a pattern (``*``, ``?``).

    `after` is the number of the last change that is known already, `since` a time (µs). With
    `first` the first value of a page counts as well. Sources change whenever they name another
    page; they count only if they are asked for by `kind`.
    """

    after: int = 0
    since: int | None = None
    tag: str | None = None
    kind: str | None = None
    url: str | None = None
    first: bool = False
    limit: int | None = None

    def fits(self, change: Change) -> bool:
        kind = change.after.kind
        return (
            (self.first or change.changed is not None)
            and (self.since is None or change.at >= self.since)
            and (self.tag is None or self.tag in change.tags)
            and (kind != "source" if self.kind is None else kind == self.kind)
            and (self.url is None or fnmatchcase(change.url, self.url))
        )


async def stream(
    store: ChangeStore, wanted: Wanted, stopped: asyncio.Event | None = None
) -> AsyncIterator[Change]:
    """Changes in the order in which they were stored; with `stopped`, on until that is set, and a
    store that is busy is asked again."""
    left = wanted.limit
    async for change in followed(store.changes, wanted.after, stopped):
        if wanted.fits(change):
            yield change
            left = None if left is None else left - 1
        if left == 0:
            return


class Numbered(Protocol):
    """A row that is known by its number."""

    @property
    def seq(self) -> int: ...


R = TypeVar("R", bound=Numbered, covariant=True)


class Rows(Protocol[R]):
    """Asks a store for rows with a number above `after`, in order."""

    def __call__(self, after: int, *, limit: int) -> Awaitable[Sequence[R]]: ...


async def followed(
    rows: Rows[R], after: int, stopped: asyncio.Event | None = None
) -> AsyncIterator[R]:
    """All rows after that one; with `stopped`, also those to come until it is set."""
    while stopped is None or not stopped.is_set():
        found = await _asked(rows, after, patient=stopped is not None)
        for row in found:
            after = row.seq
            yield row
        if len(found) == CHUNK:
            continue
        if stopped is None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), LOOK_S)


async def _asked(rows: Rows[R], after: int, *, patient: bool) -> Sequence[R]:
    try:
        return await rows(after, limit=CHUNK)
    except StoreError as error:
        if patient and any(word in str(error) for word in ("locked", "busy")):
            return []
        raise


class Side(msgspec.Struct, frozen=True):
    """A value before or after a change."""

    value: str
    fields: dict[str, str]


class Changed(msgspec.Struct, frozen=True):
    """A change of a page. `seq` is the cursor to go on from; `changed` and `before` are None for
    the first value of a page. `content` is what the page is now, if asked for and kept."""

    seq: int
    at: datetime
    url: str
    tags: tuple[str, ...]
    kind: str
    changed: bool | None
    before: Side | None
    after: Side
    diff: dict[str, Any] | None | UnsetType = UNSET
    content: bytes | None | UnsetType = UNSET
    content_type: str | None | UnsetType = UNSET

    def words(self) -> str:
        """For people, in one line: when, where, what."""
        before, after = self.before, self.after.value
        what = f"first seen: {after}" if before is None else in_words(before.value, after)
        return f"{when(self.at)}  {self.url}  {shorten(what, _LONG, placeholder=' …')}"


async def changes(
    crawl: Crawl,
    wanted: Wanted | None = None,
    *,
    content: bool = False,
    diff: bool = False,
    stopped: asyncio.Event | None = None,
) -> AsyncIterator[Changed]:
    """Changes in the order in which they were stored; with `stopped`, also those to come until it
    is set. To go on where you stopped, ask for those ``after`` the last `seq`."""
    async for change in stream(crawl.store, wanted or Wanted(), stopped):
        told = _told(change, diff=diff)
        if content:
            body, kind = await crawl.store.content(change.page) or (None, None)
            told = msgspec.structs.replace(told, content=body, content_type=kind)
        yield told


def _told(change: Change, *, diff: bool) -> Changed:
    before, after = change.before, change.after
    different: dict[str, Any] | None | UnsetType = UNSET
    if diff:
        different = None if before is None else difference(before.text, after.text)
    return Changed(
        seq=change.seq,
        at=moment(change.at),
        url=change.url,
        tags=change.tags,
        kind=after.kind,
        changed=change.changed,
        before=None if before is None else Side(before.text, before.fields),
        after=Side(after.text, after.fields),
        diff=different,
    )
