"""Commands that tell how fresh the copy is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask, span
from salticus.cli.output import facts_of, print_facts, print_json, print_table, print_wrapped

if TYPE_CHECKING:
    from salticus.views.freshness import Freshness


def freshness(
    window: Annotated[str, typer.Option(help="The time looked back on, e.g. 24h or 7d.")] = "24h",
    plot: Annotated[
        Path | None, typer.Option(help="Write a chart of all days to this .html, .svg or .png.")
    ] = None,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Estimate how fresh the copy is, without bias, from exploring visits.

    By pages and by clicks, each with an interval that holds in 95 % of the cases. With
    `freshness_target` in the settings, also the budget that it needs.
    """
    from salticus.views import freshness
    from salticus.views.times import plain

    length = span("window", window) or timedelta(days=1)
    told = ask(config, lambda crawl: freshness.freshness(crawl, length))
    if plot is not None:
        from salticus.charts.freshness import write_chart

        past = ask(config, lambda crawl: freshness.freshness_over_time(crawl, length))
        write_chart(plain(past), plot)
    if json:
        print_json(told)
    else:
        _print(told)


def _print(told: Freshness) -> None:
    from salticus.views.times import when

    rows = [
        (f"by {name}", *map(_percent, (share.freshness, share.low, share.high, share.model)))
        for name, share in (("pages", told.pages), ("clicks", told.clicks))
    ]
    title = f"freshness from {when(told.start)} to {when(told.end)}"
    print_table(title, ("", "estimate", "95 % from", "to", "predictor alone"), rows)
    rest = ("exploring visits", "of them failed", "share of the visits", "found over foretold")
    facts = facts_of(told)
    print_facts("it rests on", {name: facts[name] for name in rest})
    if told.pages.half_width is None:
        print_wrapped(
            "no exploring visit in this time; is `explore` above 0, and the crawl running?"
        )
    if "target" in facts:
        print_wrapped(facts["target"].words())


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
