"""Commands that tell how fresh the copy is."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings, span
from salticus.cli.output import print_facts, print_json, print_table, print_wrapped


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
    from salticus.views.freshness import freshness_of, freshness_over_time

    read, length = settings(config), span("window", window) or timedelta(days=1)
    told = asyncio.run(freshness_of(read, length))
    if plot is not None:
        from salticus.charts.freshness import write_chart

        write_chart(asyncio.run(freshness_over_time(read, length)), plot)
    if json:
        print_json(told)
    else:
        _print(told)


def _print(told: dict[str, Any]) -> None:
    from salticus.views.freshness import target_in_words

    names = ("freshness", "low", "high", "model")
    rows = [
        (f"by {name}", *(_percent(told[name][n]) for n in names)) for name in ("pages", "clicks")
    ]
    title = f"freshness from {told['from']} to {told['to']}"
    print_table(title, ("", "estimate", "95 % from", "to", "predictor alone"), rows)
    rest = ("exploring visits", "of them failed", "share of the visits", "found over foretold")
    print_facts("it rests on", {name: told[name] for name in rest})
    if told["pages"]["half_width"] is None:
        print_wrapped(
            "no exploring visit in this time; is `explore` above 0, and the crawl running?"
        )
    if told.get("target"):
        print_wrapped(target_in_words(told["target"]))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
