"""Commands that bring other people's data in, and ours out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, OfTag, Pattern, ask, settings, span
from salticus.cli.output import print_facts, print_json


def log_convert(
    sources: Annotated[list[Path], typer.Argument(help="Files, or folders of them.")],
    out: Annotated[Path, typer.Argument(help="A new folder for the log.")],
    format_: Annotated[
        str,
        typer.Option("--from", help="prices, scrapy, digests, changedetection or heissepreise."),
    ],
    url_column: Annotated[str | None, typer.Option(help="The column with the URL.")] = None,
    time_column: Annotated[str | None, typer.Option(help="The column with the time.")] = None,
    value_column: Annotated[
        str | None, typer.Option(help="The column with the price, value or digest.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Of times that state none, e.g. Europe/Berlin.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="The time of rows without one; for a single file.")
    ] = None,
    resolution: Annotated[
        str | None, typer.Option(help="How finely times are known, e.g. 1d; found if not given.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the log; OUT's if not given.")] = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="The rows are every change: write values too.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")
    ] = False,
    json: Json = False,
) -> None:
    """Convert other people's data to a log: prices, feeds of Scrapy, digests, and more."""
    from salticus.exchange.convert.base import ConvertOptions
    from salticus.exchange.convert.build import convert_log

    options = ConvertOptions(
        url_column=url_column,
        time_column=time_column,
        value_column=value_column,
        timezone=timezone,
        at=at,
        resolution=span("resolution", resolution),
        name=name,
        complete=complete,
        skip_bad=skip_bad,
    )
    told = convert_log(sources, out, format_, options)
    if json:
        print_json(told)
        return
    origin = told.pop("resolution_from")
    facts = told.pop("rows") | {"resolution": f"{told.pop('resolution')} (from {origin})"}
    print_facts(f"wrote {told.pop('out')}", facts | {k: v for k, v in told.items() if v})


def import_(
    log: Annotated[Path, typer.Argument(help="The folder of a log.")],
    without_values: Annotated[
        bool,
        typer.Option("--without-values", help="Do not compare live visits with the log's values."),
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Warm the store with the pages, visits and clicks of a log."""
    from salticus.crawl.importing import import_log

    new = asyncio.run(import_log(settings(config), log, values=not without_values))
    if json:
        print_json({"log": str(log), "new": new})
    else:
        print_facts(f"imported {log}", {f"new {what}": count for what, count in new.items()})


Format = Literal["log", "csv", "jsonl", "warc"]


def export(
    out: Annotated[Path, typer.Argument(help="A new folder (log) or a file (the others).")],
    pattern: Pattern = None,
    format_: Annotated[
        Format,
        typer.Option("--format", help="Exchange format, rows of visits, or content as WARC."),
    ] = "log",
    tag: OfTag = None,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Export what was visited and learnt, or the content.

    As a log in Salticus' exchange format, as a table of visits (csv, jsonl), or
    as WARC, the web's archive format, with the content that is kept. PATTERN and
    --tag choose a part of the content; the others are exported whole.
    """
    from salticus.views.export import export
    from salticus.views.listing import query

    chosen = query(pattern, tag=tag)
    rows = ask(config, lambda crawl: export(crawl, out, format_, chosen))
    if json:
        print_json({"out": str(out), "rows": rows})
    else:
        print_facts(f"wrote {out}", rows)
