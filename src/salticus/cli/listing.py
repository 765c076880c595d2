"""Commands about many pages: list them, edit them, forget them."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from salticus.cli.options import (
    DEFAULT,
    ConfigFile,
    Json,
    OfHost,
    OfKind,
    OfTag,
    PageKind,
    Pattern,
    settings,
    span,
)
from salticus.cli.output import print_columns, print_json
from salticus.config import Config
from salticus.errors import InputError
from salticus.views.words import counted

if TYPE_CHECKING:
    from salticus.store.base import Edit, PageState, Query

_SHOWN = 100  # pages that are listed if nothing is said
_NAMED = 10  # pages that are named before they are forgotten

Sort = Literal["url", "added", "last_visit", "last_change", "changes", "failures", "demand"]
State = Literal["new", "well", "failing", "gone", "paused", "unlisted", "moved"]
OfStatus = Annotated[
    str | None,
    typer.Option("--status", help="Only those whose last visit ended so: ok, gone, timeout, ..."),
]
OfState = Annotated[
    State | None,
    typer.Option(
        "--state", metavar="STATE", help="new, well, failing, gone, paused, unlisted or moved."
    ),
]


def pages(
    pattern: Pattern = None,
    tag: OfTag = None,
    host: OfHost = None,
    kind: OfKind = None,
    status: OfStatus = None,
    state: OfState = None,
    sort: Annotated[
        Sort,
        typer.Option(
            metavar="WHAT",
            help="By url, added, last_visit, last_change, changes, failures or demand.",
        ),
    ] = "url",
    desc: Annotated[bool, typer.Option("--desc", help="The other way round.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="List at most so many.")] = _SHOWN,
    set_tag: Annotated[
        list[str] | None, typer.Option(help="Edit: give them this label; may be repeated.")
    ] = None,
    drop_tag: Annotated[
        list[str] | None, typer.Option(help="Edit: take this label away; may be repeated.")
    ] = None,
    set_kind: Annotated[
        PageKind | None,
        typer.Option(metavar="KIND", help="Edit: how they are read from now on."),
    ] = None,
    set_max_interval: Annotated[
        str | None, typer.Option(help="Edit: no longer between visits, e.g. 1d; none clears it.")
    ] = None,
    set_demand: Annotated[float | None, typer.Option(min=0, help="Edit: clicks a day.")] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Edit: visit them no more.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Edit: visit them again.")] = False,
    all_: Annotated[
        bool, typer.Option("--all", help="Yes, edit every page; needed if nothing chooses some.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """List pages that fit, or edit them all at once.

    The options whose help begins with "Edit" change the pages.
    """
    from salticus.store.base import Edit, Query

    if pause and resume:
        raise InputError("--pause and --resume exclude each other")
    query = Query(
        url=_pattern(pattern),
        host=host,
        tag=tag,
        kind=kind,
        status=status,
        state=state,
        sort=sort,
        descending=desc,
        limit=limit,
    )
    edit = Edit(
        add_tags=tuple(set_tag or ()),
        remove_tags=tuple(drop_tag or ()),
        kind=set_kind,
        max_interval=_days(set_max_interval),
        demand=set_demand,
        paused=pause if pause or resume else None,
    )
    chosen = settings(config)
    if edit != Edit():
        _edited(chosen, query, edit, everything=all_, json=json)
    else:
        _listed(chosen, query, json=json)


def _pattern(text: str | None) -> str | None:
    from salticus.views.listing import pattern

    return None if text is None else pattern(text)


def _days(text: str | None) -> float | None:
    if text == "none":
        return math.inf
    limit = span("set-max-interval", text)
    return None if limit is None else limit / timedelta(days=1)


def _chooses(query: Query) -> bool:
    """Whether a query asks for some pages only."""
    conditions = (query.url, query.host, query.tag, query.kind, query.status, query.state)
    return any(each is not None for each in conditions)


def _edited(config: Config, query: Query, edit: Edit, *, everything: bool, json: bool) -> None:
    if not _chooses(query) and not everything:
        raise InputError("this would edit every page; choose some, or say --all")
    count = asyncio.run(_edit(config, query, edit))
    if json:
        print_json({"edited": count})
    else:
        typer.echo(f"{counted(count, 'page')} edited")


async def _edit(config: Config, query: Query, edit: Edit) -> int:
    from salticus.crawl.opening import stored

    async with stored(config) as store:
        return await store.edit(query, edit)


def _listed(config: Config, query: Query, *, json: bool) -> None:
    from salticus.crawl.opening import clock_of
    from salticus.views.listing import HEADER, as_json, as_row

    found = asyncio.run(_find(config, [query]))
    if json:
        print_json([as_json(page) for page in found])
        return
    now = int(clock_of(config).now().timestamp() * 1e6)
    if found:
        print_columns(HEADER, [as_row(page, now) for page in found])
    else:
        typer.echo(
            "no page fits" if _chooses(query) else "there are no pages yet; see `salticus add`"
        )
    if len(found) == query.limit:
        typer.echo(f"(the first {query.limit:,}; --limit shows more)", err=True)


async def _find(config: Config, queries: list[Query]) -> list[PageState]:
    """Pages that fit any of the queries, each once."""
    from salticus.crawl.opening import stored

    found: dict[int, PageState] = {}
    async with stored(config) as store:
        for query in queries:
            found |= {page.page: page for page in await store.find(query)}
    return list(found.values())


def forget(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(help="URLs, parts of them, or patterns: `*` stands for anything."),
    ] = None,
    tag: OfTag = None,
    host: OfHost = None,
    kind: OfKind = None,
    state: OfState = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; otherwise only say what goes.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Delete pages with all that is known of them.

    Values, visits and content go; there is no way back. Without --yes nothing
    is deleted: it says what would go, and exits with 1.
    """
    from salticus.store.base import Query

    urls = [_pattern(text) for text in patterns] if patterns else [None]
    queries = [Query(url=url, host=host, tag=tag, kind=kind, state=state) for url in urls]
    if not all(map(_chooses, queries)):
        raise InputError("say which pages: a URL or pattern, --tag, --host, --kind or --state")
    chosen = settings(config)
    found = asyncio.run(_find(chosen, queries))
    count = asyncio.run(_forget(chosen, queries)) if yes else 0
    if json:
        print_json({"forgotten": count, "urls": [page.url for page in found]})
    else:
        _tell_forgotten(found, count, yes=yes)
    if found and not yes:
        raise typer.Exit(1)


async def _forget(config: Config, queries: list[Query]) -> int:
    from salticus.crawl.opening import stored

    async with stored(config) as store:
        return sum([await store.forget(query) for query in queries])


def _tell_forgotten(found: list[PageState], count: int, *, yes: bool) -> None:
    if not found:
        typer.echo("no page fits; nothing was forgotten")
        return
    if yes:
        typer.echo(f"{counted(count, 'page')} forgotten")
        return
    visits = counted(sum(page.visits for page in found), "visit")
    changes = counted(sum(page.changes for page in found), "change")
    typer.echo(f"{counted(len(found), 'page')} would go, with {visits} and {changes}:")
    for page in found[:_NAMED]:
        typer.echo(f"  {page.url}")
    if len(found) > _NAMED:
        typer.echo(f"  and {len(found) - _NAMED:,} more")
    typer.echo("nothing was deleted; say --yes to do it")
