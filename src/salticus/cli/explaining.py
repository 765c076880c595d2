"""Commands that explain: is a copy still good, and why is a page visited when it is?"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings
from salticus.cli.output import print_json, print_table, print_wrapped
from salticus.cli.showing import Url

Urls = Annotated[list[str], typer.Argument(metavar="URL...", help="URLs of pages.")]


def fresh(urls: Urls, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Tell how likely the copies of pages are still right."""
    from salticus.views.fresh import fresh_report

    found = asyncio.run(fresh_report(settings(config), urls))
    if json:
        print_json(found)
    else:
        _print_fresh([page for page in found if "error" not in page])
    wrong = [page["error"] for page in found if "error" in page]
    for error in wrong:
        typer.echo(f"salticus: {error}", err=True)
    if wrong:
        raise typer.Exit(2)


def _print_fresh(pages: list[dict[str, Any]]) -> None:
    header = ("url", "still right", "state", "last visit", "last answer", "next visit")
    rows = [
        (
            page["url"],
            f"{page['fresh']:.1%}",
            page["state"],
            _short(page["last_visit"]) or "never",
            _short(page["last_answer"]) or "never",
            _short((page["next_visit"] or {}).get("due")) or "none in sight",
        )
        for page in pages
    ]
    if rows:
        print_table("copies", header, rows)


def _short(time: str | None) -> str:
    return (time or "").replace("T", " ")[:16]


def why(url: Url, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Explain when a page is visited next, and why then."""
    from salticus.views.reasons import in_words
    from salticus.views.why import why_report

    (told,) = asyncio.run(why_report(settings(config), [url]))
    if json:
        print_json(told)
        return
    typer.echo(told["url"])
    for heading, text in in_words(told):
        typer.echo(f"  {heading}")
        print_wrapped(text, "    ")
