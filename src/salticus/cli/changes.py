"""The command that tells of changes, as they were stored and as they come."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, OfKind, OfTag, ask, moment
from salticus.cli.output import print_line, print_now

if TYPE_CHECKING:
    from salticus.crawl.opened import Crawl
    from salticus.views.changes import Changed, Wanted

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
    from salticus.views.changes import Wanted, cursor
    from salticus.views.listing import pattern

    def tell(change: Changed) -> None:
        if human and not json:
            print_now(change.words())
        else:
            print_line(change)

    async def told(crawl: Crawl) -> None:
        start = moment("since", since, crawl.now())
        from_now = follow and after is None and since is None
        wanted = Wanted(
            after=await cursor(crawl) if from_now else after or 0,
            since=None if start is None else int(start.timestamp() * 1e6),
            tag=tag,
            kind=kind,
            url=None if url is None else pattern(url),
            first=first,
            limit=limit,
        )
        await _tell(crawl, wanted, tell, follow=follow, diff=diff)

    try:
        ask(config, told)
    except BrokenPipeError:  # whoever read this has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _tell(
    crawl: Crawl, wanted: Wanted, tell: Callable[[Changed], None], *, follow: bool, diff: bool
) -> None:
    from salticus.views.changes import changes

    async with _until_stopped() if follow else nullcontext() as stopped:
        async for change in changes(crawl, wanted, diff=diff, stopped=stopped):
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
