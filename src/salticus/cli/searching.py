"""Search the local copy, as readers do."""

from __future__ import annotations

from datetime import datetime
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask
from salticus.cli.output import print_columns, print_json

if TYPE_CHECKING:
    from salticus.crawl.opened import Crawl
    from salticus.views.search import Found

_SHOWN = 20
_SHORT = 48  # characters of a title


def search(
    words: Annotated[list[str], typer.Argument(help="Words, all of which must be there.")],
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many.")] = _SHOWN,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Search the local copy: offers with price, last visit and chance of being out of date.

    The last word may be the beginning of one. Nothing is counted as demand.
    """
    from salticus.views.search import search

    async def found(crawl: Crawl) -> tuple[list[Found], datetime]:
        return await search(crawl, " ".join(words), limit), crawl.now()

    hits, now = ask(config, found)
    if json:
        print_json(hits)
    elif hits:
        print_columns(*_table(hits, now))
    else:
        typer.echo("nothing was found")


def _table(hits: list[Found], now: datetime) -> tuple[list[str], list[list[Any]]]:
    """Header and rows; without the chances if none is known."""
    header = ["price", "stock", "visited", "outdated", "title", "url"]
    rows = [_row(hit, now) for hit in hits]
    if all(hit.outdated is None for hit in hits):
        return [name for name in header if name != "outdated"], [r[:3] + r[4:] for r in rows]
    return header, rows


def _row(hit: Found, now: datetime) -> list[Any]:
    from salticus.views.times import ago

    return [
        " ".join(filter(None, (hit.price, hit.currency))) or "-",
        hit.availability,
        ago(hit.last_visit, now),
        None if hit.outdated is None else f"{hit.outdated:.0%}",
        shorten(hit.title or "-", _SHORT, placeholder="…"),
        hit.url,
    ]
