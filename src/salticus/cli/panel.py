"""Commands of the panel."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask, span
from salticus.cli.output import facts_of, print_facts, print_json, print_table, table_of

if TYPE_CHECKING:
    from salticus.views.panel import PanelView


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
    _print(ask(config, lambda crawl: plan_panel(crawl, pages, often, length)), json)


def panel_(context: typer.Context) -> None:
    """Watch a sample of pages closely; alone, show what was found."""
    if context.invoked_subcommand is None:
        panel_show()


def panel_show(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show the panel and what it found."""
    from salticus.views.panel import panel

    _print(ask(config, panel), json)


def panel_end(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """End the panel; what it found stays."""
    from salticus.views.panel import end_panel

    _print(ask(config, end_panel), json)


def _print(told: PanelView, json: bool) -> None:
    if json:
        print_json(told)
        return
    facts = facts_of(told)
    strata = facts.pop("strata", [])
    for name in {"pages fresh", "clicks fresh"} & facts.keys():
        facts[name] = facts[name].words()
    print_facts("panel", facts)
    if strata:
        print_table("strata", *table_of(strata))
