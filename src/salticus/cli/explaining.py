"""Commands that explain: is a copy still good, and why is a page visited when it is?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask
from salticus.cli.output import print_json, print_table, print_wrapped
from salticus.cli.showing import Url

if TYPE_CHECKING:
    from salticus.views.fresh import Fresh

Urls = Annotated[list[str], typer.Argument(metavar="URL...", help="URLs of pages.")]


def fresh(urls: Urls, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Tell how likely the copies of pages are still right."""
    from salticus.views import fresh

    found = ask(config, lambda crawl: fresh.fresh(crawl, urls, foresee=True))
    known = [page for page in found if isinstance(page, fresh.Fresh)]
    if json:
        print_json(found)
    elif known:
        header = ("url", "still right", "state", "last visit", "last answer", "next visit")
        print_table("copies", header, map(_row, known))
    wrong = [page for page in found if isinstance(page, fresh.Unknown)]
    for page in wrong:
        typer.echo(f"salticus: {page.error}", err=True)
    if wrong:
        raise typer.Exit(2)


def _row(page: Fresh) -> tuple[Any, ...]:
    due = "none in sight" if page.next_visit is None else page.next_visit.due
    last = (page.last_visit or "never", page.last_answer or "never")
    return (page.url, f"{page.fresh:.1%}", page.state, *last, due)


def why(url: Url, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Explain when a page is visited next, and why then."""
    from salticus.views.reasons import in_words
    from salticus.views.why import why

    told = ask(config, lambda crawl: why(crawl, url))
    if json:
        print_json(told)
        return
    typer.echo(told.url)
    for heading, text in in_words(told):
        typer.echo(f"  {heading}")
        print_wrapped(text, "    ")
