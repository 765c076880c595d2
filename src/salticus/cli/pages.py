"""Commands about the pages: add, list, edit, visit and forget them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from salticus.cli import options, output
from salticus.cli.options import REQUIRED, PageKind, Texts, arg, ask, opt, settings, span, waited
from salticus.config import Config
from salticus.errors import InputError, StoreLocked

if TYPE_CHECKING:
    from salticus.crawl.discovery import Discovered
    from salticus.crawl.opening import Crawl
    from salticus.views.listing import PageState, Query


def add(
    urls: Texts = arg(None, "URLs; `-` reads them from stdin."),
    file: Path | None = opt(None, "A file with one URL a line.", "--file", "-f"),
    sitemap: Texts = opt(None, "Add a sitemap, and every page that it names; may be repeated."),
    feed: Texts = opt(None, "Add a feed (RSS, Atom, JSON), likewise; may be repeated."),
    source: Texts = opt(None, "Add a hub page, or any page that shows new ones, likewise."),
    tag: Texts = options.LABELS,
    kind: PageKind | None = opt(
        None, "offer, article, page, or source: it names other pages.", metavar="KIND"
    ),
    max_interval: str | None = opt(None, "No longer between visits, e.g. 1d."),
    demand: float | None = opt(None, "Clicks a day.", min=0),
    no_visit: bool = opt(False, "Do not read sources now; the crawl will.", "--no-visit"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Add pages, or a sitemap or feed that names them.

    All of them are added, or none if one is not a URL. Sitemaps and feeds are
    read at once, and from then on whenever the crawl visits them.
    """
    from salticus.crawl.manual import NewPage
    from salticus.crawl.manual import add as add_pages

    days = _days("max-interval", max_interval)
    named = [*(sitemap or ()), *(feed or ()), *(source or ())]
    plain = given_urls(urls or [], file) if urls or file or not named else []
    sources = given_urls(named) if named else []
    wanted = [
        NewPage(url, kind=what, tags=tuple(tag or ()), max_interval=days, demand=demand)
        for url, what in [*((url, kind) for url in plain), *((url, "source") for url in sources)]
    ]
    told = output.facts_of(ask(config, add_pages, wanted))
    if not json:
        typer.echo(f"{told['new']:,} new, {told['known']:,} known already")
    sources += plain if kind == "source" else []
    failed = False
    if sources and not no_visit:
        told["sources"], failed = _read(settings(config), sources, json=json)
    if json:
        output.json(told)
    if failed:
        raise typer.Exit(1)


def discover(
    hosts: Texts = arg(None, "Hosts, such as news.example.org; `-` reads them from stdin."),
    file: Path | None = opt(None, "A file with one host a line.", "--file", "-f"),
    known: bool = opt(False, "All sites of which the store has sources.", "--known"),
    tag: Texts = options.LABELS,
    sections: int = opt(20, "Pages linked from the main page to look at, of each host.", min=0),
    dry_run: bool = opt(False, "Show them, and add nothing.", "--dry-run"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Find where hosts show their new pages, and add these sources.

    Looks at the main page and its sections, at feeds and at sitemaps, politely
    and not on the budget. Exit code 1 if a host could not be looked at.
    """
    from salticus.crawl.discovery import add_found, discover

    named = [text for _, text in _lines(hosts or [], file)]
    named += ask(config, _known_sites) if known else []
    if not named:
        raise InputError("no host is given; name some, or use --file or --known")
    with output.steps() as told:
        looked = discover(settings(config), named, sections=sections, told=told)
        found = waited(looked)
    added = 0 if dry_run or not found.hosts else ask(config, add_found, found, tag or ())
    if json:
        output.json(output.facts_of(found) | {"added": added})
    else:
        _print_found(found, "" if dry_run else f", {added:,} of them new; the crawl will read them")
    if found.failed:
        raise typer.Exit(1)


async def _known_sites(crawl: Crawl) -> list[str]:
    from salticus.crawl.retiring import mains_of
    from salticus.views.listing import Query

    return mains_of(await crawl.store.find(Query(kind="source")))


def _print_found(found: Discovered, added: str) -> None:
    """The sites, those with the most new pages first, and their sources."""
    from salticus.views.times import counted

    rows = [
        (one.format, one.links, one.per_day, one.newest, one.by, one.url) for one in found.sources
    ]
    if rows:
        output.columns(("format", "links", "new a day", "newest", "found by", "source"), rows)
    if len(found.hosts) > 1:
        typer.echo("")
        sites = [(host.per_day, host.url) for host in found.hosts]
        output.columns(("new a day", "site"), sites)
    typer.echo(f"{counted(len(rows), 'source')} found{added if rows else ''}")
    for host, fault in found.failed.items():
        output.wrapped(f"{host} could not be looked at: {fault}")


def _days(name: str, text: str | None) -> float | None:
    """The length of time given to the flag `name`, if any, in days."""
    length = span(name, text)
    return None if length is None else length / timedelta(days=1)


def _read(config: Config, sources: list[str], *, json: bool) -> tuple[dict[str, Any], bool]:
    """Read sources now, and tell what they name; True if one of them cannot be read."""
    from salticus.crawl.manual import read_sources
    from salticus.views.times import counted

    try:
        with output.steps() as step:
            step("reading")
            read, found, waiting = waited(read_sources(config, sources))
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
            output.wrapped(f"{page.url} could not be read: {_why(page)}")
            output.wrapped(f"→ `salticus doctor {page.url}` tells what can be done", "  ")
    faults = {page.url: _why(page) for page in poor}
    told = {"read": len(well), "found": found, "waiting": waiting, "failed": faults}
    return told, bool(poor)


def _why(page: PageState) -> str:
    return f"{page.status or 'it was not visited'}{f': {page.fault}' if page.fault else ''}"


def visit(
    urls: list[str] = arg(REQUIRED, "Pages that were added."),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Visit pages now.

    These visits are as polite as all others, but not taken from the budget.
    Exit code 1 if one failed. Refused while a crawl is running.
    """
    from salticus.crawl.manual import visit_now
    from salticus.views.listing import as_json

    chosen = settings(config)
    with output.steps() as told:
        told("visiting")
        visited = waited(visit_now(chosen, given_urls(urls)))
    if json:
        output.json([as_json(page) for page in visited])
    for page in () if json else visited:
        output.wrapped(f"{page.url}  {_outcome(page)}")
    if any(page.status not in ("ok", "not_modified") for page in visited):
        raise typer.Exit(1)


def _outcome(page: PageState) -> str:
    if page.status not in ("ok", "not_modified"):
        return f"failed, {_why(page)}"
    value = page.value or page.fault or "no value"
    if page.visits == 1:
        return f"first visit: {value}"
    changed = page.last_change is not None and page.last_change == page.last_visit
    return f"{'changed' if changed else 'unchanged'}: {value}"


_SHOWN = 100  # pages that are listed if nothing is said
_NAMED = 10  # pages that are named before they are forgotten

Sort = Literal["url", "added", "last_visit", "last_change", "changes", "failures", "demand"]
State = Literal["new", "well", "failing", "gone", "paused", "unlisted", "moved"]
_OF_STATE: State | None = opt(
    None, "new, well, failing, gone, paused, unlisted or moved.", metavar="STATE"
)


def pages(
    pattern: str | None = options.PATTERN,
    tag: str | None = options.OF_TAG,
    host: str | None = options.OF_HOST,
    kind: PageKind | None = options.OF_KIND,
    status: str | None = opt(None, "Only those whose last visit ended so: ok, gone, timeout, ..."),
    state: State | None = _OF_STATE,
    sort: Sort = opt(
        "url",
        "By url, added, last_visit, last_change, changes, failures or demand.",
        metavar="WHAT",
    ),
    desc: bool = opt(False, "The other way round.", "--desc"),
    limit: int = opt(_SHOWN, "List at most so many.", min=1),
    set_tag: Texts = opt(None, "Edit: give them this label; may be repeated."),
    drop_tag: Texts = opt(None, "Edit: take this label away; may be repeated."),
    set_kind: PageKind | None = opt(None, "Edit: how they are read from now on.", metavar="KIND"),
    set_max_interval: str | None = opt(
        None, "Edit: no longer between visits, e.g. 1d; none clears it."
    ),
    set_demand: float | None = opt(None, "Edit: clicks a day.", min=0),
    pause: bool = opt(False, "Edit: visit them no more.", "--pause"),
    resume: bool = opt(False, "Edit: visit them again.", "--resume"),
    all_: bool = opt(False, "Yes, edit every page; needed if nothing chooses some.", "--all"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """List pages that fit, or edit them all at once.

    The options whose help begins with "Edit" change the pages.
    """
    from salticus.views.listing import Edit, edit_pages, query
    from salticus.views.times import counted

    if pause and resume:
        raise InputError("--pause and --resume exclude each other")
    clears = set_max_interval == "none"
    some = {"host": host, "tag": tag, "kind": kind, "status": status, "state": state}
    wanted = query(pattern, **some, sort=sort, descending=desc, limit=limit)
    edit = Edit(
        add_tags=tuple(set_tag or ()),
        remove_tags=tuple(drop_tag or ()),
        kind=set_kind,
        max_interval=math.inf if clears else _days("set-max-interval", set_max_interval),
        demand=set_demand,
        paused=pause if pause or resume else None,
    )
    if edit != Edit():
        count = ask(config, edit_pages, wanted, edit, everything=all_)
        output.answer({"edited": count}, json, f"{counted(count, 'page')} edited")
    else:
        _listed(config, wanted, json=json)


def _listed(config: Path, query: Query, *, json: bool) -> None:
    from salticus.views.listing import HEADER, as_json, as_row, chooses, pages

    async def listed(crawl: Crawl) -> tuple[list[PageState], datetime]:
        return await pages(crawl, query), crawl.now()

    found, now = ask(config, listed)
    if json:
        output.json([as_json(page) for page in found])
        return
    if found:
        output.columns(HEADER, [as_row(page, now) for page in found])
    else:
        none = "there are no pages yet; see `salticus add`"
        typer.echo("no page fits" if chooses(query) else none)
    if len(found) == query.limit:
        typer.echo(f"(the first {query.limit:,}; --limit shows more)", err=True)


def forget(
    patterns: Texts = arg(None, "URLs, parts of them, or patterns: `*` stands for anything."),
    tag: str | None = options.OF_TAG,
    host: str | None = options.OF_HOST,
    kind: PageKind | None = options.OF_KIND,
    state: State | None = _OF_STATE,
    yes: bool = opt(False, "Do it; otherwise only say what goes.", "--yes"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
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
    found = ask(config, pages_of, *queries)
    count = ask(config, forget_pages, queries) if yes else 0
    told = {"forgotten": count, "urls": [page.url for page in found]}
    output.answer(told, json, lambda _: _tell_forgotten(found, count, yes=yes))
    if found and not yes:
        raise typer.Exit(1)


def _tell_forgotten(found: list[PageState], count: int, *, yes: bool) -> None:
    from salticus.views.times import counted

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


def given_urls(words: list[str], file: Path | None = None) -> list[str]:
    """All URLs given, in canonical form, each once. InputError names every line that is none."""
    from salticus.crawl.manual import canonical_urls

    return canonical_urls(_lines(words, file))


def _lines(words: list[str], file: Path | None) -> Iterator[tuple[str, str]]:
    """(where it stands, text) of every entry; blank lines and lines that start with # are not."""
    for number, word in enumerate(words, 1):
        if word == "-":
            yield from _numbered("standard input", sys.stdin)
        else:
            yield f"argument {number}", word
    if file is not None:
        try:
            with file.open(encoding="utf-8") as lines:
                yield from _numbered(str(file), lines)
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 text ({error})") from error


def _numbered(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield f"{name}:{number}", text
