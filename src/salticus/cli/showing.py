"""Commands that show what was found: pages, their changes, and what is wrong with hosts."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import typer

from salticus.cli import options, output
from salticus.cli.options import REQUIRED, PageKind, arg, ask, from_options, moment, opt
from salticus.errors import InputError

if TYPE_CHECKING:
    import asyncio

    from salticus.crawl.opening import Crawl
    from salticus.views.diff import Piece
    from salticus.views.page import HeldValue, PageView, Seen
    from salticus.views.search import Found

_LAST = 10  # values and visits that are shown
_LONG = 400  # characters of one passage
_SHORT = 48  # characters of a title
_LOOK_S = 0.5  # between two looks whether anybody reads what we write
_COLOURS = {"same": "", "gone": "red strike", "new": "green"}


def show(
    url: str = options.URL,
    diffs: int = opt(3, "Show so many changes of a text word by word.", min=0),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Show a page: its value, its changes, its last visits."""
    from salticus.views.page import page_of

    def people(page: PageView) -> None:
        output.facts(page.url, page.facts)
        if page.values:
            _print_values(page.values, diffs)
        if page.visits:
            _print_visits(page.visits[-_LAST:])

    output.answer(ask(config, page_of, url, diffs=diffs), json, people)


def _print_values(values: list[HeldValue], diffs: int) -> None:
    from salticus.views.diff import move, pieces
    from salticus.views.times import when

    texts: list[str | None] = [None, *(v.value for v in values)]
    moves = [before and move(before, v.value) for before, v in zip(texts, values, strict=False)]
    header = ("from", "value", "difference") if any(moves) else ("from", "value")
    rows = [
        (v.at, shorten(v.value, 200, placeholder=" …"), went.short() if went else "")
        for v, went in zip(values, moves, strict=True)
    ]
    output.table("values", header, [row[: len(header)] for row in rows[-_LAST:]])
    pairs = list(zip(pairwise(values), moves[1:], strict=True))
    for (old, new), went in pairs[-diffs:] if diffs else ():
        if went is None:
            typer.echo(f"change of {when(new.at)}")
            _print_diff(pieces(old.value, new.value))


def _print_diff(found: list[Piece]) -> None:
    """A text with what is gone and what is new: in colour on a terminal, else in marks."""
    from rich.console import Console
    from rich.text import Text

    from salticus.views.diff import marked

    short = [
        piece._replace(text=output.clean(shorten(piece.text, _LONG, placeholder=" …")))
        for piece in found
    ]
    if not sys.stdout.isatty():
        output.wrapped(marked(short), "  ")
        return
    line = Text(" ").join(Text(piece.text, _COLOURS[piece.kind]) for piece in short)
    Console().print(line)


def _print_visits(visits: list[Seen]) -> None:
    changed = {True: "yes", False: "no", None: "?"}
    rows = [(v.at, v.purpose, v.status, changed[v.changed], v.fault or "") for v in visits]
    faulty = any(row[-1] for row in rows)
    header = ("at", "purpose", "status", "changed", *(("fault",) if faulty else ()))
    output.table("last visits", header, [row[: len(header)] for row in rows])


def get(
    url: str = options.URL,
    value: bool = opt(False, "The value instead of the content.", "--value"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Write the latest content of a page to standard output."""
    from salticus.views.page import copy_of

    found = ask(config, copy_of, url)
    if json:
        content = (found.content or b"").decode("utf-8", "replace")
        output.json({**output.facts_of(found), "content": content})
    elif value:
        typer.echo(found.value or "")
    elif found.content is None:
        raise InputError(f"no content of {url} is kept yet; see `salticus show {url}`")
    else:
        sys.stdout.buffer.write(found.content)


def alerts(
    all_: bool = opt(False, "Also those that are over.", "--all"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Show which hosts have a problem, and what to do."""
    from salticus.views.alerts import alerts_of, headline

    found = ask(config, alerts_of, past=all_)
    if json:
        output.json(found)
        return
    for alert in found:
        output.wrapped(headline(alert))
        for said in filter(None, (f"what was seen: {alert.fault}", alert.advice)):
            output.wrapped(said, "  ")
    if not found:
        typer.echo("no alerts" if all_ else "no open alerts; all hosts are as they should be")


def sources(
    limit: int | None = opt(None, "Show at most so many.", min=1),
    cover: bool = opt(False, "How few of them show most of the new pages.", "--cover"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """List the sources, and how many new pages each brings."""
    if cover:
        _print_cover(config, limit, json=json)
        return
    from salticus.views.sources import HEADER, SourcesView, as_row, sources_of

    async def listed(crawl: Crawl) -> tuple[SourcesView, datetime]:
        return await sources_of(crawl), crawl.now()

    told, now = ask(config, listed)
    found = told.sources[:limit]
    if json:
        output.json(found)
    elif found:
        output.columns(HEADER, [as_row(source, now) for source in found])
        typer.echo(f"\nnew links by the hour of the day (UTC): {told.hours}")
    else:
        typer.echo("no sources; `salticus discover HOST` finds those of a site")


def _print_cover(config: Path, limit: int | None, *, json: bool) -> None:
    from salticus.views.sources import cover_of

    steps = ask(config, cover_of)
    if json:
        output.json(steps[:limit])
    elif steps:
        rows = [(n, one.adds, f"{one.share:.1%}", one.url) for n, one in enumerate(steps, 1)]
        output.columns(("sources", "adds", "in all", "source"), rows[:limit])
    else:
        typer.echo("no source has shown a new page yet")


def search(
    words: list[str] = arg(REQUIRED, "Words, all of which must be there."),
    limit: int = opt(20, "Show at most so many.", min=1),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Search the local copy: offers with price, last visit and chance of being out of date.

    The last word may be the beginning of one. Nothing is counted as demand.
    """
    from salticus.views.search import search

    async def found(crawl: Crawl) -> tuple[list[Found], datetime]:
        return await search(crawl, " ".join(words), limit), crawl.now()

    hits, now = ask(config, found)
    if json:
        output.json(hits)
    elif hits:
        output.columns(*_table(hits, now))
    else:
        typer.echo("nothing was found")


def _table(hits: list[Found], now: datetime) -> tuple[list[str], list[list[Any]]]:
    """Header and rows; without the chances if none is known."""
    header = ["price", "stock", "visited", "outdated", "title", "url"]
    rows = [_row(hit, now) for hit in hits]
    if all(hit.outdated is None for hit in hits):
        return [name for name in header if name != "outdated"], [r[:3] + r[4:] for r in rows]
    return header, rows


def _row(hit: Found, now: datetime) -> list[Any]:
    from salticus.views.times import ago

    return [
        " ".join(filter(None, (hit.price, hit.currency))) or "-",
        hit.availability,
        ago(hit.last_visit, now),
        None if hit.outdated is None else f"{hit.outdated:.0%}",
        shorten(hit.title or "-", _SHORT, placeholder="…"),
        hit.url,
    ]


def changes(
    follow: bool = opt(False, "Wait for more, until stopped by Ctrl-C.", "--follow", "-f"),
    since: str | None = opt(None, "Only from this time on: 2h (ago), 3d, 2026-01-31."),
    after: int | None = opt(None, "Only those after the change with this number (seq).", min=0),
    tag: str | None = options.OF_TAG,
    kind: PageKind | None = options.OF_KIND,
    url: str | None = opt(None, "Only of this URL, part of one, or pattern with `*`."),
    first: bool = opt(False, "Also the first value of each page.", "--first"),
    diff: bool = opt(False, "With what is different: price or words.", "--diff"),
    limit: int | None = opt(None, "End after so many.", min=1),
    human: bool = opt(False, "A short line for people instead of JSON.", "--human"),
    config: Path = options.CONFIG,
    json: bool = opt(False, "JSON, one object a line; it is so without this too.", "--json"),
) -> None:
    """Print the changes of pages, and wait for more.

    One JSON object a line, oldest first. With --follow and neither --since nor
    --after, only changes from now on.
    """
    from salticus.views.changes import Wanted, changes
    from salticus.views.listing import pattern

    chosen = {"tag": tag, "kind": kind, "first": first, "limit": limit}
    address = None if url is None else pattern(url)

    async def told(crawl: Crawl) -> None:
        last = await _first(crawl.store.last_change, after, since, follow=follow)
        wanted = from_options(
            Wanted, chosen, after=last, since=_micros(since, crawl.now()), url=address
        )
        async with _until_stopped() if follow else nullcontext() as stopped:
            async for change in changes(crawl, wanted, diff=diff, stopped=stopped):
                output.line(change.words() if human and not json else change)

    _streamed(config, told)


def new(
    follow: bool = opt(False, "Wait for more, until stopped by Ctrl-C.", "--follow", "-f"),
    since: str | None = opt(None, "Only from this time on: 2h (ago), 3d, 2026-01-31."),
    after: int | None = opt(None, "Only those after the find with this number (seq).", min=0),
    tag: str | None = options.OF_TAG,
    url: str | None = opt(None, "Only of this URL, part of one, or pattern with `*`."),
    source: str | None = opt(None, "Only from this source, part of its URL, or pattern."),
    fetched: bool = opt(False, "Only those of which a copy is held.", "--fetched"),
    limit: int | None = opt(None, "End after so many.", min=1),
    human: bool = opt(False, "A short line for people instead of JSON.", "--human"),
    config: Path = options.CONFIG,
    json: bool = opt(False, "JSON, one object a line; it is so without this too.", "--json"),
) -> None:
    """Print the new pages that sources have shown, and wait for more.

    One JSON object a line, oldest first. With --follow and neither --since nor
    --after, only those from now on.
    """
    from salticus.views.finds import WantedFinds, finds
    from salticus.views.listing import pattern

    chosen = {"tag": tag, "fetched": fetched, "limit": limit}
    named = {key: text and pattern(text) for key, text in (("url", url), ("source", source))}

    async def told(crawl: Crawl) -> None:
        last = await _first(crawl.store.last_find, after, since, follow=follow)
        wanted = from_options(
            WantedFinds, chosen | named, after=last, since=_micros(since, crawl.now())
        )
        async with _until_stopped() if follow else nullcontext() as stopped:
            async for find in finds(crawl, wanted, stopped=stopped):
                output.line(find.words() if human and not json else find)

    _streamed(config, told)


async def _first(
    last: Callable[[], Awaitable[int]], after: int | None, since: str | None, *, follow: bool
) -> int:
    """The number after which a stream begins: with nothing said, those to come if we follow."""
    return await last() if follow and after is None and since is None else after or 0


def _micros(since: str | None, now: datetime) -> int | None:
    start = moment("since", since, now)
    return None if start is None else int(start.timestamp() * 1e6)


def _streamed(config: Path, told: Callable[[Crawl], Awaitable[None]]) -> None:
    try:
        ask(config, told)
    except BrokenPipeError:  # whoever read this has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@asynccontextmanager
async def _until_stopped() -> AsyncIterator[asyncio.Event]:
    """An event that is set by a signal to end, and when nobody reads our output any more."""
    import asyncio

    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    watch = asyncio.create_task(_watch(stopped))
    try:
        yield stopped
    finally:
        watch.cancel()


async def _watch(stopped: asyncio.Event) -> None:
    import asyncio

    stdout = select.poll()
    stdout.register(sys.stdout.fileno(), 0)
    while not stdout.poll(0):  # noqa: ASYNC110 the kernel tells nobody that a reader has left
        await asyncio.sleep(_LOOK_S)
    stopped.set()
