"""Commands of the panel."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings, span
from salticus.cli.output import print_facts, print_json, print_table


def panel_plan(
    pages: Annotated[int, typer.Option(min=1, help="So many pages.")],
    every: Annotated[str, typer.Option(help="How often each is visited, e.g. 4h.")] = "4h",
    days: Annotated[float | None, typer.Option(min=0.0, help="End by itself after this.")] = None,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Choose pages to be watched closely, on a budget of their own.

    Half are drawn evenly, half by clicks, from small and large hosts.
    """
    from salticus.views.panel import plan_panel

    often = span("every", every) or timedelta(hours=4)
    length = None if days is None else timedelta(days=days)
    _print(asyncio.run(plan_panel(settings(config), pages, often, length)), json)


def panel_(context: typer.Context) -> None:
    """Watch a sample of pages closely; alone, show what was found."""
    if context.invoked_subcommand is None:
        panel_show()


def panel_show(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show the panel and what it found."""
    from salticus.views.panel import panel_of

    _print(asyncio.run(panel_of(settings(config))), json)


def panel_end(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """End the panel; what it found stays."""
    from salticus.views.panel import end_panel

    _print(asyncio.run(end_panel(settings(config))), json)


def _print(told: dict[str, Any], json: bool) -> None:
    if json:
        print_json(told)
        return
    strata = told.pop("strata", [])
    for name in ("pages fresh", "clicks fresh"):
        if name in told:
            told[name] = _line(told[name])
    print_facts("panel", told)
    if strata:
        print_table("strata", tuple(strata[0]), [tuple(row.values()) for row in strata])


def _line(fresh: dict[str, float | None]) -> str:
    share, half = fresh["freshness"], fresh["half_width"]
    if share is None or half is None:
        return "not known yet"
    return f"{100 * share:.1f} % ± {100 * half:.1f}"
