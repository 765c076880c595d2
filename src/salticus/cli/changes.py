"""The command that tells of changes, as they were stored and as they come."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from salticus.cli.options import DEFAULT, ConfigFile, OfKind, OfTag, moment, settings
from salticus.cli.output import print_line, print_now
from salticus.config import Config

if TYPE_CHECKING:
    from salticus.types import Change
    from salticus.views.changes import Wanted

_LOOK_S = 0.5  # between two looks whether anybody reads what we write


def changes(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more, until stopped by Ctrl-C.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(help="Only from this time on: 2h (ago), 3d, 2026-01-31.")
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(min=0, help="Only those after the change with this number (seq)."),
    ] = None,
    tag: OfTag = None,
    kind: OfKind = None,
    url: Annotated[
        str | None, typer.Option(help="Only of this URL, part of one, or pattern with `*`.")
    ] = None,
    first: Annotated[
        bool, typer.Option("--first", help="Also the first value of each page.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="With what is different: price or words.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    human: Annotated[
        bool, typer.Option("--human", help="A short line for people instead of JSON.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Annotated[
        bool, typer.Option("--json", help="JSON, one object a line; it is so without this too.")
    ] = False,
) -> None:
    """Print the changes of pages, and wait for more.

    One JSON object a line, oldest first. With --follow and neither --since nor
    --after, only changes from now on.
    """
    from salticus.crawl.opening import clock_of
    from salticus.views.changes import Wanted, as_json, as_words
    from salticus.views.listing import pattern

    chosen = settings(config)
    start = moment("since", since, clock_of(chosen).now())
    wanted = Wanted(
        after=after or 0,
        since=None if start is None else _micros(start),
        tag=tag,
        kind=kind,
        url=None if url is None else pattern(url),
        first=first,
        limit=limit,
    )

    def tell(change: Change) -> None:
        if human and not json:
            print_now(as_words(change))
        else:
            print_line(as_json(change, diff=diff))

    from_now = follow and after is None and since is None
    try:
        asyncio.run(_tell(chosen, wanted, tell, follow=follow, from_now=from_now))
    except BrokenPipeError:  # whoever read this has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _micros(when: datetime) -> int:
    return int(when.timestamp() * 1e6)


async def _tell(
    config: Config,
    wanted: Wanted,
    tell: Callable[[Change], None],
    *,
    follow: bool,
    from_now: bool,
) -> None:
    from salticus.crawl.opening import stored
    from salticus.views.changes import stream

    async with stored(config) as store:
        if from_now:
            wanted = replace(wanted, after=await store.last_change())
        if not follow:
            async for change in stream(store, wanted):
                tell(change)
            return
        async with _until_stopped() as stopped:
            async for change in stream(store, wanted, stopped):
                tell(change)


@asynccontextmanager
async def _until_stopped() -> AsyncIterator[asyncio.Event]:
    """An event that is set by a signal to end, and when nobody reads our output any more."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    watch = asyncio.create_task(_watch(stopped))
    try:
        yield stopped
    finally:
        watch.cancel()


async def _watch(stopped: asyncio.Event) -> None:
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    while not output.poll(0):  # noqa: ASYNC110 the kernel tells nobody that a reader has left
        await asyncio.sleep(_LOOK_S)
    stopped.set()
