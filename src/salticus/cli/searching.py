"""Search the local copy, as readers do."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings
from salticus.cli.output import print_columns, print_json

_SHOWN = 20


def search(
    words: Annotated[list[str], typer.Argument(help="Words, all of which must be there.")],
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many.")] = _SHOWN,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Search the local copy: offers with price, last visit and chance of being out of date.

    The last word may be the beginning of one. Nothing is counted as demand.
    """
    from salticus.views.search import as_json, as_table, found

    chosen = settings(config)
    hits = asyncio.run(found(chosen, " ".join(words), limit))
    if json:
        print_json([as_json(hit) for hit in hits])
    elif hits:
        print_columns(*as_table(hits, chosen))
    else:
        typer.echo("nothing was found")
