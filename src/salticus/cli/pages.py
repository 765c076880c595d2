"""Commands that add pages and visit them at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, PageKind, ask, settings, span
from salticus.cli.output import facts_of, print_json, print_wrapped, steps
from salticus.cli.urls import given_urls
from salticus.config import Config
from salticus.errors import StoreLocked
from salticus.views.words import counted

if TYPE_CHECKING:
    from salticus.views.listing import PageState


def add(
    urls: Annotated[
        list[str] | None, typer.Argument(help="URLs; `-` reads them from stdin.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A file with one URL a line.")
    ] = None,
    sitemap: Annotated[
        list[str] | None,
        typer.Option(help="Add a sitemap, and every page that it names; may be repeated."),
    ] = None,
    feed: Annotated[
        list[str] | None,
        typer.Option(help="Add a feed (RSS, Atom, JSON), likewise; may be repeated."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    kind: Annotated[
        PageKind | None,
        typer.Option(metavar="KIND", help="offer, article, page, or source: it names other pages."),
    ] = None,
    max_interval: Annotated[
        str | None, typer.Option(help="No longer between visits, e.g. 1d.")
    ] = None,
    demand: Annotated[float | None, typer.Option(help="Clicks a day.", min=0)] = None,
    no_visit: Annotated[
        bool, typer.Option("--no-visit", help="Do not read sources now; the crawl will.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Add pages, or a sitemap or feed that names them.

    All of them are added, or none if one is not a URL. Sitemaps and feeds are
    read at once, and from then on whenever the crawl visits them.
    """
    from salticus.crawl.adding import NewPage
    from salticus.crawl.adding import add as add_pages

    limit = span("max-interval", max_interval)
    days = None if limit is None else limit / timedelta(days=1)
    named = [*(sitemap or ()), *(feed or ())]
    plain = given_urls(urls or [], file) if urls or file or not named else []
    sources = given_urls(named) if named else []
    wanted = [
        NewPage(url, kind=what, tags=tuple(tag or ()), max_interval=days, demand=demand)
        for url, what in [*((url, kind) for url in plain), *((url, "source") for url in sources)]
    ]
    told = facts_of(ask(config, lambda crawl: add_pages(crawl, wanted)))
    if not json:
        typer.echo(f"{told['new']:,} new, {told['known']:,} known already")
    sources += plain if kind == "source" else []
    failed = False
    if sources and not no_visit:
        told["sources"], failed = _read(settings(config), sources, json=json)
    if json:
        print_json(told)
    if failed:
        raise typer.Exit(1)


def _read(config: Config, sources: list[str], *, json: bool) -> tuple[dict[str, Any], bool]:
    """Read sources now, and tell what they name; True if one of them cannot be read."""
    from salticus.crawl.adding import read_sources

    try:
        with steps() as step:
            step("reading")
            read, found, waiting = asyncio.run(read_sources(config, sources))
    except StoreLocked:
        if not json:
            typer.echo("a crawl is running: it will read them at its next tick")
        return {"read": None}, False
    well = [page for page in read if page.status in ("ok", "not_modified")]
    poor = [page for page in read if page not in well]
    if not json:
        typer.echo(f"{counted(len(well), 'source')} read, {counted(found, 'new page')} found")
        if waiting:
            typer.echo(f"{counted(waiting, 'source')} that they name will be read by the crawl")
        for page in poor:
            print_wrapped(f"{page.url} could not be read: {_why(page)}")
            print_wrapped(f"→ `salticus doctor {page.url}` tells what can be done", "  ")
    faults = {page.url: _why(page) for page in poor}
    told = {"read": len(well), "found": found, "waiting": waiting, "failed": faults}
    return told, bool(poor)


def _why(page: PageState) -> str:
    return f"{page.status or 'it was not visited'}{f': {page.fault}' if page.fault else ''}"


def visit(
    urls: Annotated[list[str], typer.Argument(help="Pages that were added.")],
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Visit pages now.

    These visits are as polite as all others, but not taken from the budget.
    Exit code 1 if one failed. Refused while a crawl is running.
    """
    from salticus.crawl.visiting import visit_now
    from salticus.views.listing import as_json

    chosen = settings(config)
    with steps() as told:
        told("visiting")
        visited = asyncio.run(visit_now(chosen, given_urls(urls)))
    if json:
        print_json([as_json(page) for page in visited])
    for page in () if json else visited:
        print_wrapped(f"{page.url}  {_outcome(page)}")
    if any(page.status not in ("ok", "not_modified") for page in visited):
        raise typer.Exit(1)


def _outcome(page: PageState) -> str:
    """How the last visit of a page ended, in words."""
    if page.status not in ("ok", "not_modified"):
        return f"failed, {_why(page)}"
    value = page.value or page.fault or "no value"
    if page.visits == 1:
        return f"first visit: {value}"
    changed = page.last_change is not None and page.last_change == page.last_visit
    return f"{'changed' if changed else 'unchanged'}: {value}"
