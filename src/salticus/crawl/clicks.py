"""Files of clicks and impressions, counted into the store of a crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager

import msgspec

from salticus.crawl.opened import Crawl
from salticus.signals.access import click_of
from salticus.signals.counting import ClickFile, ClickFileOptions, take_in
from salticus.signals.tally import SHOWN
from salticus.signals.tally import LineTally as LineTally
from salticus.urls import canonical

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
        spell=canonical,
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
