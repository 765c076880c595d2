"""Commands about merchants' feeds: take one in, and say how far they can be trusted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask, day, settings
from salticus.cli.output import facts_of, print_facts, print_json, print_table
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.views.merchants import MerchantView

_UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


def feed_import(
    file: Annotated[str, typer.Argument(help="A TSV, CSV or XML file; `-` reads from stdin.")],
    merchant: Annotated[
        str | None, typer.Option(help="Whose feed it is; the file's name if not given.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="When it was made, e.g. 2026-11-16T06:00Z; now if not given.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    known_only: Annotated[
        bool, typer.Option("--known-only", help="Leave out pages that are not in the store.")
    ] = False,
    keep_tracking: Annotated[
        bool, typer.Option("--keep-tracking", help="Leave utm_source and the like in links.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Take in a merchant's feed: values without a visit. Nothing if more than half of it is bad."""
    from salticus.crawl.feeds import FeedTerms, import_feed

    terms = FeedTerms(merchant, day("at", at), tuple(tag or ()), known_only, keep_tracking)
    done = asyncio.run(import_feed(settings(config), file, terms))
    if json:
        print_json(done)
        return
    facts = {name.replace("_", " "): fact for name, fact in facts_of(done).items()}
    del facts["complaints"]
    print_facts(f"imported {facts.pop('file')}", facts)
    for complaint in done.complaints:
        typer.echo(complaint)


def feed_report(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """How accurate merchants' feeds are, and by how much they lag, as visits found them."""
    from salticus.views.merchants import merchants

    found = ask(config, merchants)
    if json:
        print_json(found)
        return
    if not found:
        raise InputError("no merchant's feed was imported yet; see `salticus feed import --help`")
    header = ("merchant", "rows", "pages", "visits", "accuracy", "price", "changes", "lag", "90 %")
    print_table("merchants' feeds", header, map(_row, found))
    unchecked = sum(each.unchecked_pages for each in found)
    if unchecked:
        typer.echo(f"{unchecked:,} pages are not yet checkable: no visit came after they were told")


def _row(known: MerchantView) -> tuple[Any, ...]:
    counts = (known.merchant, known.rows, known.pages, known.visits)
    shares = (known.accuracy, known.price_accuracy, known.changes)
    return (*counts, *shares, _span(known.lag_median_s), _span(known.lag_p90_s))


def _span(bounds: list[float | None] | None) -> str | None:
    """Bounds of a lag for people.

    >>> _span([-3600.0, 5400.0]), _span([60.0, None]), _span(None)
    ('-60 min to 90 min', '1 min to never', None)
    """
    return None if bounds is None else " to ".join(map(_length, bounds))


def _length(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    unit, size = next(((u, s) for u, s in _UNITS if abs(seconds) >= 2 * s), ("min", 60))
    return f"{seconds / size:.0f} {unit}"
