"""Commands about many pages: list them, edit them, forget them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
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
    ask,
    span,
)
from salticus.cli.output import print_columns, print_json
from salticus.errors import InputError
from salticus.views.words import counted

if TYPE_CHECKING:
    from salticus.crawl.opened import Crawl
    from salticus.views.listing import Edit, PageState, Query

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
    from salticus.views.listing import Edit, days, query

    if pause and resume:
        raise InputError("--pause and --resume exclude each other")
    limit_ = "none" if set_max_interval == "none" else span("set-max-interval", set_max_interval)
    wanted = query(
        pattern,
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
        max_interval=days(limit_),
        demand=set_demand,
        paused=pause if pause or resume else None,
    )
    if edit != Edit():
        _edited(config, wanted, edit, everything=all_, json=json)
    else:
        _listed(config, wanted, json=json)


def _edited(config: Path, query: Query, edit: Edit, *, everything: bool, json: bool) -> None:
    from salticus.views.listing import edit_pages

    count = ask(config, lambda crawl: edit_pages(crawl, query, edit, everything=everything))
    if json:
        print_json({"edited": count})
    else:
        typer.echo(f"{counted(count, 'page')} edited")


def _listed(config: Path, query: Query, *, json: bool) -> None:
    from salticus.views.listing import HEADER, as_json, as_row, chooses, pages

    async def listed(crawl: Crawl) -> tuple[list[PageState], datetime]:
        return await pages(crawl, query), crawl.now()

    found, now = ask(config, listed)
    if json:
        print_json([as_json(page) for page in found])
        return
    if found:
        print_columns(HEADER, [as_row(page, now) for page in found])
    else:
        none = "no page fits" if chooses(query) else "there are no pages yet; see `salticus add`"
        typer.echo(none)
    if len(found) == query.limit:
        typer.echo(f"(the first {query.limit:,}; --limit shows more)", err=True)


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
    from salticus.views.listing import chooses, forget_pages, query
    from salticus.views.listing import pages as pages_of

    texts: list[str | None] = [*patterns] if patterns else [None]
    queries = [query(text, host=host, tag=tag, kind=kind, state=state) for text in texts]
    if not all(map(chooses, queries)):
        raise InputError("say which pages: a URL or pattern, --tag, --host, --kind or --state")
    found = ask(config, lambda crawl: pages_of(crawl, *queries))
    count = ask(config, lambda crawl: forget_pages(crawl, queries)) if yes else 0
    if json:
        print_json({"forgotten": count, "urls": [page.url for page in found]})
    else:
        _tell_forgotten(found, count, yes=yes)
    if found and not yes:
        raise typer.Exit(1)


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
