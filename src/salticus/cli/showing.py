"""Commands that show one page, and what is wrong with hosts."""

from __future__ import annotations

import sys
from itertools import pairwise
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask
from salticus.cli.output import (
    clean,
    facts_of,
    print_facts,
    print_json,
    print_table,
    print_wrapped,
)
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.views.diff import Piece
    from salticus.views.page import Held, Seen

Url = Annotated[str, typer.Argument(help="A page's URL, as it was added.")]

_LAST = 10  # values and visits that are shown
_LONG = 400  # characters of one passage
_COLOURS = {"same": "", "gone": "red strike", "new": "green"}


def show(
    url: Url,
    diffs: Annotated[
        int, typer.Option(min=0, help="Show so many changes of a text word by word.")
    ] = 3,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Show a page: its value, its changes, its last visits."""
    from salticus.views.page import page_of

    page = ask(config, lambda crawl: page_of(crawl, url, diffs=diffs))
    if json:
        print_json(page)
        return
    print_facts(page.url, page.facts)
    if page.values:
        _print_values(page.values, diffs)
    if page.visits:
        _print_visits(page.visits[-_LAST:])


def _print_values(values: list[Held], diffs: int) -> None:
    from salticus.views.diff import move, pieces
    from salticus.views.times import when

    texts: list[str | None] = [None, *(v.value for v in values)]
    moves = [before and move(before, v.value) for before, v in zip(texts, values, strict=False)]
    header = ("from", "value", "difference") if any(moves) else ("from", "value")
    rows = [
        (v.at, shorten(v.value, 200, placeholder=" …"), went.short() if went else "")
        for v, went in zip(values, moves, strict=True)
    ]
    print_table("values", header, [row[: len(header)] for row in rows[-_LAST:]])
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
        piece._replace(text=clean(shorten(piece.text, _LONG, placeholder=" …"))) for piece in found
    ]
    if not sys.stdout.isatty():
        print_wrapped(marked(short), "  ")
        return
    line = Text(" ").join(Text(piece.text, _COLOURS[piece.kind]) for piece in short)
    Console().print(line)


def _print_visits(visits: list[Seen]) -> None:
    changed = {True: "yes", False: "no", None: "?"}
    rows = [(v.at, v.purpose, v.status, changed[v.changed], v.fault or "") for v in visits]
    faulty = any(row[-1] for row in rows)
    header = ("at", "purpose", "status", "changed", *(("fault",) if faulty else ()))
    print_table("last visits", header, [row[: len(header)] for row in rows])


def get(
    url: Url,
    value: Annotated[
        bool, typer.Option("--value", help="The value instead of the content.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Write the latest content of a page to standard output."""
    from salticus.views.page import copy_of

    found = ask(config, lambda crawl: copy_of(crawl, url))
    if json:
        content = (found.content or b"").decode("utf-8", "replace")
        print_json({**facts_of(found), "content": content})
    elif value:
        typer.echo(found.value or "")
    elif found.content is None:
        raise InputError(f"no content of {url} is kept yet; see `salticus show {url}`")
    else:
        sys.stdout.buffer.write(found.content)


def alerts(
    all_: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Show which hosts have a problem, and what to do."""
    from salticus.views.alerts import alerts_of, headline

    found = ask(config, lambda crawl: alerts_of(crawl, past=all_))
    if json:
        print_json(found)
        return
    for alert in found:
        print_wrapped(headline(alert))
        print_wrapped(f"what was seen: {alert.fault}", "  ")
        if alert.advice:
            print_wrapped(alert.advice, "  ")
    if not found:
        typer.echo("no alerts" if all_ else "no open alerts; all hosts are as they should be")
