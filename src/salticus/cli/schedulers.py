"""Commands that tell how the schedulers fared."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask, span
from salticus.cli.output import facts_of, print_facts, print_json, print_table, table_of


def insta(
    window: Annotated[str, typer.Option(help="The time looked back on, e.g. 24h or 7d.")] = "24h",
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Tell what became of clicks, and what the visits that the gate saved have found elsewhere."""
    from salticus.views.schedulers import insta
    from salticus.views.times import when

    length = span("window", window) or timedelta(days=1)
    told = ask(config, lambda crawl: insta(crawl, length))
    if json:
        print_json(told)
        return
    facts = facts_of(told)
    print_facts(f"from {when(facts.pop('from'))} to {when(facts.pop('to'))}", facts)


def arms(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show the arms of a bandit: how likely each is drawn, and what its steps earned."""
    from salticus.views.schedulers import SHOWN, arms

    told = ask(config, arms)
    if json:
        print_json(told)
        return
    print_table(f"arms of {told.policy}", *table_of(told.arms))
    steps = [(step.at, step.arm, step.reward) for step in told.steps[-SHOWN:]]
    print_table("last steps", ("at", "arm", "reward"), steps)
