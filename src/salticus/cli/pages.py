"""Commands about pages: add them, look at them, take them away as data."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings, span
from salticus.cli.output import print_facts, print_json, print_table
from salticus.cli.urls import given_urls
from salticus.config import Config
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.types import NewPage

Url = Annotated[str, typer.Argument(help="A page's URL, as it was added.")]


def add(
    urls: Annotated[
        list[str] | None, typer.Argument(help="URLs; `-` reads them from stdin.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A file with one URL a line.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    kind: Annotated[str | None, typer.Option(help="offer, article or page.")] = None,
    max_interval: Annotated[
        str | None, typer.Option(help="No longer between visits, e.g. 1d.")
    ] = None,
    demand: Annotated[float | None, typer.Option(help="Clicks a day.", min=0)] = None,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Add pages. All of them, or none if one is not a URL."""
    from salticus.types import NewPage

    chosen = settings(config)
    limit = span("max-interval", max_interval)
    days = None if limit is None else limit / timedelta(days=1)
    wanted = [
        NewPage(url, kind=kind, tags=tuple(tag or ()), max_interval=days, demand=demand)
        for url in given_urls(urls or [], file)
    ]
    new = asyncio.run(_add(chosen, wanted))
    if json:
        print_json({"new": new, "known": len(wanted) - new})
    else:
        typer.echo(f"{new:,} new, {len(wanted) - new:,} known already")


async def _add(config: Config, pages: list[NewPage]) -> int:
    from salticus.assemble import clock_of, stored

    async with stored(config) as store:
        return await store.add(pages, at=int(clock_of(config).now().timestamp() * 1e6))


def show(url: Url, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show a page: its value, its state, its history."""
    from salticus.report.page import page_report, when

    page = asyncio.run(page_report(settings(config), url))
    if json:
        print_json(page)
        return
    print_facts(page["url"], page["facts"])
    values = [(when(v["at"]), shorten(v["value"], 200)) for v in page["values"][-10:]]
    print_table("values", ("from", "value"), values)
    visits = [
        (
            when(v["at"]),
            v["purpose"],
            v["status"],
            {True: "yes", False: "no", None: "?"}[v["changed"]],
        )
        for v in page["visits"][-10:]
    ]
    print_table("last visits", ("at", "purpose", "status", "changed"), visits)


def get(
    url: Url,
    value: Annotated[
        bool, typer.Option("--value", help="The value instead of the content.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Write the latest content of a page to standard output."""
    from salticus.report.page import latest

    found = asyncio.run(latest(settings(config), url))
    if json:
        print_json({**found, "content": (found["content"] or b"").decode("utf-8", "replace")})
    elif value:
        typer.echo(found["value"] or "")
    elif found["content"] is None:
        raise InputError(f"no content of {url} is kept yet; see `salticus show {url}`")
    else:
        sys.stdout.buffer.write(found["content"])


def export(
    out: Annotated[Path, typer.Argument(help="A new folder (log) or file (csv, jsonl).")],
    format_: Annotated[
        Literal["log", "csv", "jsonl"], typer.Option("--format", help="Exchange format or rows.")
    ] = "log",
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Export what was visited and learnt: Salticus' log format, CSV or JSON lines."""
    rows = asyncio.run(_export(settings(config), out, format_))
    if json:
        print_json({"out": str(out), "rows": rows})
    else:
        print_facts(f"wrote {out}", rows)


async def _export(
    config: Config, out: Path, format_: Literal["log", "csv", "jsonl"]
) -> dict[str, int]:
    from salticus.assemble import stored
    from salticus.log.write import export_log, export_rows

    async with stored(config) as store:
        if format_ == "log":
            return export_log(store.scan, out, name=Path(config.store).stem)
        return {"visits": export_rows(store.scan("visits"), out, format_)}
