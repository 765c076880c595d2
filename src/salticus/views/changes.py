"""The changes of pages as a stream: those that were stored, and if wished those to come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from fnmatch import fnmatchcase
from textwrap import shorten
from typing import Any, Protocol

import msgspec

from salticus.errors import StoreError
from salticus.types import Change, Value
from salticus.views.diff import difference, in_words
from salticus.views.times import iso, when

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
        """Whether this change is asked for."""
        return (
            (self.first or change.changed is not None)
            and (self.since is None or change.at >= self.since)
            and (self.tag is None or self.tag in change.tags)
            and self._kind(change.after.kind)
            and (self.url is None or fnmatchcase(change.url, self.url))
        )

    def _kind(self, kind: str) -> bool:
        return kind != "source" if self.kind is None else kind == self.kind


class Source(Protocol):
    """Where changes are kept; every store is one."""

    async def changes(self, after: int, *, limit: int = ...) -> list[Change]: ...


async def stream(
    source: Source, wanted: Wanted, stopped: asyncio.Event | None = None
) -> AsyncIterator[Change]:
    """Changes in the order in which they were stored; with `stopped`, on until that is set.

    A store that is busy is asked again.
    """
    left = wanted.limit
    async for change in _all(source, wanted.after, stopped):
        if wanted.fits(change):
            yield change
            left = None if left is None else left - 1
        if left == 0:
            return


async def _all(source: Source, after: int, stopped: asyncio.Event | None) -> AsyncIterator[Change]:
    while stopped is None or not stopped.is_set():
        found = await _asked(source, after, patient=stopped is not None)
        for change in found:
            after = change.seq
            yield change
        if len(found) == CHUNK:
            continue
        if stopped is None:
            return
        await _pause(stopped)


async def _asked(source: Source, after: int, *, patient: bool) -> list[Change]:
    try:
        return await source.changes(after, limit=CHUNK)
    except StoreError as error:
        if patient and any(word in str(error) for word in ("locked", "busy")):
            return []
        raise


async def _pause(stopped: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stopped.wait(), LOOK_S)
    except TimeoutError:
        return


def as_json(change: Change, *, diff: bool = False) -> dict[str, Any]:
    """A change for machines."""
    told: dict[str, Any] = {
        "seq": change.seq,
        "at": iso(change.at),
        "url": change.url,
        "tags": change.tags,
        "kind": change.after.kind,
        "changed": change.changed,
        "before": _value(change.before),
        "after": _value(change.after),
    }
    if diff:
        before = change.before
        told["diff"] = None if before is None else difference(before.text, change.after.text)
    return told


def _value(value: Value | None) -> dict[str, Any] | None:
    return None if value is None else {"value": value.text, "fields": value.fields}


def as_words(change: Change) -> str:
    """A change for people, in one line: when, where, what."""
    if change.before is None:
        what = f"first seen: {change.after.text}"
    else:
        what = in_words(change.before.text, change.after.text)
    return f"{when(change.at)}  {change.url}  {shorten(what, _LONG, placeholder=' …')}"
