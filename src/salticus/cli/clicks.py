"""Take in what readers did: clicks and impressions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings
from salticus.cli.output import bar, clean, print_facts, print_json, steps
from salticus.config import Config
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.signals.counting import ClickFile, ClickFileOptions
    from salticus.signals.tally import LineTally

Format = Literal["csv", "jsonl", "access"]


def clicks_import(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files to count; `-` reads from stdin.")
    ],
    format: Annotated[
        Format | None,
        typer.Option(metavar="FORMAT", help="csv, jsonl or access; the first line tells."),
    ] = None,
    click: Annotated[
        str | None,
        typer.Option(
            help="Of an access log: the requests that are clicks, e.g. '/go?url={url}', or a "
            "regular expression with a group (?P<url>...)."
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="What to put before addresses that begin with /: https://shop.example"),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Count once more what was counted before.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Count clicks and impressions from files: tables, JSON lines, access logs.

    Lines that are wrong, and pages that are not in the store, are reported.
    """
    from salticus.crawl.opening import clock_of
    from salticus.signals.access import click_of
    from salticus.signals.counting import ClickFile, ClickFileOptions
    from salticus.urls import canonical

    chosen = settings(config)
    terms = ClickFileOptions(
        spell=canonical,
        now=int(clock_of(chosen).now().timestamp() * 1e6),
        format=format,
        click=None if click is None else click_of(click),
        base=None if base is None else canonical(base)[0],
        again=again,
    )
    opened = [ClickFile(file) for file in files]
    tallies = asyncio.run(_import(chosen, opened, terms, None if json else _tell))
    if json:
        print_json({"files": [tally.as_json() for tally in tallies]})
    passed = [tally for tally in tallies if tally.earlier and not tally.lines]
    said = "\n".join(map(_earlier, passed))
    if len(passed) == len(tallies):
        raise InputError(f"{said}; nothing was counted; --again counts it once more")
    if passed and not json:
        typer.echo(clean(said))


def _earlier(tally: LineTally) -> str:
    from salticus.views.times import when

    assert tally.earlier is not None
    return f"{tally.file}: counted before, as {tally.earlier.file}, {when(tally.earlier.at)}"


async def _import(
    config: Config,
    files: list[ClickFile],
    terms: ClickFileOptions,
    tell: Callable[[LineTally], None] | None,
) -> list[LineTally]:
    from salticus.crawl.opening import stored
    from salticus.signals.counting import take_in

    sizes = [file.size for file in files]  # a file that is not there is noticed before any counts
    tallies = []
    async with stored(config) as store:
        for file, size in zip(files, sizes, strict=True):
            with _progress(file.name, size) as progress:
                tallies.append(await take_in(store, file, terms, progress))
            if tell is not None:
                tell(tallies[-1])
    return tallies


@contextmanager
def _progress(name: str, size: int) -> Iterator[Callable[[int], None]]:
    if size:
        with bar(size) as show:
            yield show
        return
    with steps() as say:
        yield lambda done: say(f"{name}: {done / 1e6:,.0f} MB")


def _tell(tally: LineTally) -> None:
    from salticus.signals.tally import SHOWN

    if tally.earlier and not tally.lines:
        return
    print_facts(tally.file, tally.as_facts())
    for url, lines in tally.strangers.top(SHOWN):
        typer.echo(clean(f"unknown: {url} ({lines:,})"))
