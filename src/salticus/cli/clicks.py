"""Take in what readers did: clicks and impressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask
from salticus.cli.output import bar, clean, print_facts, print_json, steps
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.crawl.clicks import LineTally
    from salticus.crawl.opened import Crawl

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
    from salticus.crawl.clicks import ClickReading, count_clicks

    how = ClickReading(format, click, base, again)

    async def counted(crawl: Crawl) -> list[LineTally]:
        tallies = []
        async for tally in count_clicks(crawl, files, how, _progress):
            tallies.append(tally)
            if not json:
                _tell(tally)
        return tallies

    tallies = ask(config, counted)
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


@contextmanager
def _progress(name: str, size: int) -> Iterator[Callable[[int], None]]:
    if size:
        with bar(size) as show:
            yield show
        return
    with steps() as say:
        yield lambda done: say(f"{name}: {done / 1e6:,.0f} MB")


def _tell(tally: LineTally) -> None:
    from salticus.crawl.clicks import strangers

    if tally.earlier and not tally.lines:
        return
    print_facts(tally.file, tally.as_facts())
    for url, lines in strangers(tally):
        typer.echo(clean(f"unknown: {url} ({lines:,})"))
