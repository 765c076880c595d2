"""Commands that tell how the schedulers fared."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings, span
from salticus.cli.output import print_facts, print_json, print_table


def insta(
    window: Annotated[str, typer.Option(help="The time looked back on, e.g. 24h or 7d.")] = "24h",
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Tell what became of clicks, and what the visits that the gate saved have found elsewhere."""
    from salticus.views.schedulers import insta_of

    told = asyncio.run(insta_of(settings(config), span("window", window) or timedelta(days=1)))
    if json:
        print_json(told)
    else:
        print_facts(f"from {told.pop('from')} to {told.pop('to')}", told)


def arms(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show the arms of a bandit: how likely each is drawn, and what its steps earned."""
    from salticus.views.schedulers import SHOWN, arms_of

    told = asyncio.run(arms_of(settings(config)))
    if json:
        print_json(told)
        return
    rows = told["arms"]
    print_table(f"arms of {told['policy']}", tuple(rows[0]), [tuple(row.values()) for row in rows])
    steps = [(s["at"], s["arm"], s["reward"]) for s in told["steps"][-SHOWN:]]
    print_table("last steps", ("at", "arm", "reward"), steps)
